<?php

// symfony/lock's RedisStore: exclusive and shared locks, promotion, expiry, stores of three servers, and
// the lock of an old version on the same key. The library keeps its locks in sorted sets. The argument
// selects the client.

declare(strict_types=1);

require __DIR__ . '/steps.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Predis/autoload.php';

use Symfony\Component\Lock\Exception\LockAcquiringException;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\CombinedStore;
use Symfony\Component\Lock\Store\RedisStore;
use Symfony\Component\Lock\Strategy\ConsensusStrategy;

function connected(string $kind, int $database = 0): Redis|Predis\Client
{
    if ($kind === 'predis') {
        return new Predis\Client(['host' => HOST, 'port' => PORT, 'database' => $database]);
    }
    $client = new Redis();
    $client->connect(HOST, PORT, EVENT_LIMIT_S);
    $client->select($database);
    return $client;
}

// The type of a key as text, which phpredis gives as a number.
function type_of($client, string $key): string
{
    $type = $client->type($key);
    return is_int($type) ? [Redis::REDIS_NOT_FOUND => 'none', Redis::REDIS_STRING => 'string',
        Redis::REDIS_ZSET => 'zset'][$type] : (string) $type;
}

function locks(LockFactory $one, LockFactory $two, $client): void
{
    [$lock, $other] = [$one->createLock('res', 30), $two->createLock('res', 30)];
    step('acquire', [$lock->acquire(), type_of($client, 'res'), $client->zcard('res')], [true, 'zset', 2]);
    $left = $client->pttl('res');
    step('the key expires with the lock', $left > 20000 && $left <= 30000, true);
    step('contention', [$other->acquire(), $other->isAcquired(), $lock->isAcquired()],
        [false, false, true]);
    step('acquire again', [$lock->acquire(), $client->zcard('res')], [true, 2]);
    $lock->refresh(60);
    $left = $client->pttl('res');
    step('refresh', [$left > 50000 && $left <= 60000, $lock->getRemainingLifetime() > 50], [true, true]);
    $other->release();
    step('release of another owner', $lock->isAcquired(), true);
    $lock->release();
    step('release', [$lock->isAcquired(), $client->exists('res')], [false, 0]);
    step('the next acquires', $other->acquire(), true);
    $other->release();
    $binary = $one->createLock("res\0\377", 30);
    step('binary names', [$binary->acquire(), $two->createLock("res\0\377", 30)->acquire()], [true, false]);
    $binary->release();
}

function shared(LockFactory $one, LockFactory $two, $client): void
{
    [$a, $b, $writer] = array_map(fn ($factory) => $factory->createLock('doc', 30), [$one, $two, $two]);
    step('two readers', [$a->acquireRead(), $b->acquireRead(), $client->zcard('doc')], [true, true, 2]);
    step('a writer waits for both', $writer->acquire(), false);
    step('promotion needs to be the only reader', $a->acquire(), false);
    $b->release();
    step('promotion', [$a->acquire(), $client->zscore('doc', '__write__') !== false], [true, true]);
    step('no reader beside a writer', $b->acquireRead(), false);
    step('demotion', [$a->acquireRead(), $b->acquireRead()], [true, true]);
    $a->release();
    $b->release();
    step('the writer, after the readers', [$writer->acquire(), $client->zcard('doc')], [true, 2]);
    $writer->release();
    step('no key remains', $client->exists('doc'), 0);
}

function expiry(LockFactory $one, LockFactory $two, $client): void
{
    $late = $one->createLock('short', 0.05, false);
    $late->acquire();
    $next = $two->createLock('short', 30);
    step('expiry lets the next in', until('the next acquires', fn () => $next->acquire()), true);
    step('the late holder', [error_of(fn () => $late->refresh(30)), $next->isAcquired()],
        ['Symfony\Component\Lock\Exception\LockConflictedException: ', true]);
    $late->release();
    step('its release does not touch the next holder', $next->isAcquired(), true);
    $next->release();
}

function blocking(string $kind, LockFactory $one): void
{
    $lock = $one->createLock('wait', 30);
    $lock->acquire();
    $child = in_background(function () use ($kind) {
        $mine = new LockFactory(new RedisStore(connected($kind)));
        $waiting = $mine->createLock('wait', 30);
        return $waiting->acquire(true) ? 0 : 1;
    });
    $lock->release();
    step('a waiter gets it after the release', status_of($child), 0);
}

// Three databases stand for three servers.
function majority(string $kind): void
{
    $clients = array_map(fn (int $database) => connected($kind, $database), [1, 2, 3]);
    $store = fn () => new CombinedStore(array_map(fn ($client) => new RedisStore($client), $clients),
        new ConsensusStrategy());
    [$lock, $other] = array_map(fn ($each) => (new LockFactory($each))->createLock('q', 30),
        [$store(), $store()]);
    step('a majority of three', [$lock->acquire(), $other->acquire()], [true, false]);
    $clients[0]->del('q');
    step('one server has lost it', [$lock->isAcquired(), $other->acquire()], [true, false]);
    $lock->release();
    step('release on all', [array_sum(array_map(fn ($client) => $client->exists('q'), $clients)),
        $other->acquire()], [0, true]);
    $other->release();
}

function other_types(LockFactory $one, $client): void
{
    $client->set('old', 'token of version 5.1');
    step('a lock of an old version is a refusal', [$one->createLock('old', 30)->acquire(),
        $client->get('old')], [false, 'token of version 5.1']);
    $client->rpush('list', ['x']);
    try {
        $error = $one->createLock('list', 30)->acquire();
    } catch (LockAcquiringException $failure) {
        $error = substr($failure->getPrevious()->getMessage(), 0, 9);
    }
    step('another type is an error', $error, 'WRONGTYPE');
}

// 8 processes. A counter on the server shows each holder whether it is the only one.
function fight(string $kind, $client): void
{
    $children = array_map(fn () => in_background(function () use ($kind) {
        $mine = connected($kind);
        $alone = true;
        $factory = new LockFactory(new RedisStore($mine));
        for ($i = 0; $i < 5; $i++) {
            $lock = $factory->createLock('fought', 60);
            until('the lock', fn () => $lock->acquire());
            $alone = $mine->incr('inside') === 1 && $mine->incr('entered') && !$mine->decr('inside')
                && $alone;
            $lock->release();
        }
        return $alone ? 0 : 1;
    }), range(1, 8));
    step('8 processes, one at a time', [array_sum(array_map('status_of', $children)),
        $client->get('entered')], [0, '40']);
}

function beside_lock(LockFactory $one): void
{
    $line = new Line();
    $lock = $one->createLock('mix', 30);
    native('the library has no lock of LOCK', [$line->ask('LOCK mix me 10000')[0], $lock->acquire()],
        ['me', false]);
    native('after UNLOCK', [$line->ask('UNLOCK mix me'), $lock->acquire()], [1, true]);
    native('LOCK takes no sorted set', str_contains($line->ask('LOCK mix me 10000'), 'WRONGTYPE'), true);
    $lock->release();
    native('after the release', $line->ask('LOCK mix me 10000')[0], 'me');
}

function main(string $kind): void
{
    $client = connected($kind);
    [$one, $two] = array_map(fn ($each) => new LockFactory(new RedisStore($each)),
        [$client, connected($kind)]);
    locks($one, $two, $client);
    shared($one, $two, $client);
    expiry($one, $two, $client);
    blocking($kind, $one);
    majority($kind);
    other_types($one, $client);
    fight($kind, $client);
    if (HOLDFAST) {
        beside_lock($one);
    }
}

main($argv[1]);
