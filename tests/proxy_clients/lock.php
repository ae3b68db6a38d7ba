<?php

// Locks of PHP programs. Arguments: the ports of two proxies, and the kind: Laravel's cache lock with
// Predis or phpredis (laravel-predis, laravel-phpredis), or a lock by hand (predis, phpredis).

declare(strict_types=1);

require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Predis/autoload.php';

use Illuminate\Cache\RedisLock;
use Illuminate\Redis\RedisManager;

const RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then "
    . "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";

interface Lock
{
    public function acquire(): bool;
    public function extend(): bool;
    public function release(): bool;
}

final class LaravelLock implements Lock
{
    private RedisLock $lock;

    public function __construct(string $kind, int $port, string $owner)
    {
        $server = ['host' => '127.0.0.1', 'port' => $port, 'database' => 0];
        $redis = (new RedisManager(null, $kind, ['default' => $server]))->connection();
        $this->lock = new RedisLock($redis, 'job', 30, $owner);
    }

    public function acquire(): bool
    {
        return (bool) $this->lock->get();
    }

    // It cannot extend: it only asks for its owner.
    public function extend(): bool
    {
        return $this->lock->owner() !== '';
    }

    public function release(): bool
    {
        return $this->lock->release();
    }
}

final class LockByHand implements Lock
{
    private Redis|Predis\Client $redis;

    public function __construct(string $kind, int $port, private string $owner)
    {
        if ($kind === 'predis') {
            $this->redis = new Predis\Client(['host' => '127.0.0.1', 'port' => $port]);
        } else {
            $this->redis = new Redis();
            $this->redis->connect('127.0.0.1', $port);
        }
    }

    public function acquire(): bool
    {
        $done = $this->redis instanceof Redis
            ? $this->redis->set('job', $this->owner, ['nx', 'px' => 30000])
            : $this->redis->set('job', $this->owner, 'PX', 30000, 'NX');
        return (bool) $done;
    }

    public function extend(): bool
    {
        return (bool) $this->run(EXTEND, '40000');
    }

    public function release(): bool
    {
        return (bool) $this->run(RELEASE);
    }

    private function run(string $script, string ...$more): mixed
    {
        return $this->redis instanceof Redis
            ? $this->redis->eval($script, ['job', $this->owner, ...$more], 1)
            : $this->redis->eval($script, 1, 'job', $this->owner, ...$more);
    }
}

function say(string $what, bool $value): void
{
    echo $what, ' ', $value ? 'true' : 'false', "\n";
}

function wait_for_the_test(): void
{
    echo "ready\n";
    fgets(STDIN);
}

[, $one_port, $two_port, $kind] = $argv;
$made = str_starts_with($kind, 'laravel-') ? LaravelLock::class : LockByHand::class;
$kind = str_replace('laravel-', '', $kind);
$one = new $made($kind, (int) $one_port, 'one');
$two = new $made($kind, (int) $two_port, 'two');
say('held', $one->acquire());
say('other', $two->acquire());
wait_for_the_test();
say('extended', $one->extend());
say('other', $two->acquire());
say('released', $one->release());
wait_for_the_test();
say('other', $two->acquire());
say('released', $two->release());
