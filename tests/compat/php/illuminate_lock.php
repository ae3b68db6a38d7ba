<?php

// Laravel's cache lock, cache store and limiters, as an application gets them from Cache::lock(),
// Redis::throttle() and Redis::funnel(). clock.php moves the time of the limiters. The argument selects
// the client.

declare(strict_types=1);

require __DIR__ . '/clock.php';
require __DIR__ . '/steps.php';
require 'Illuminate/Cache/autoload.php';
require 'Illuminate/Redis/autoload.php';
require 'Predis/autoload.php';

use Illuminate\Cache\RedisLock;
use Illuminate\Cache\RedisStore;
use Illuminate\Redis\RedisManager;

use function Holdfast\Clock\advance;

function connections(string $kind): RedisManager
{
    $server = ['host' => HOST, 'port' => PORT, 'database' => 0];
    return new RedisManager(null, $kind, ['default' => $server, 'second' => $server]);
}

function locks($one, $two): void
{
    $lock = new RedisLock($one, 'res', 30, 'me');
    $other = new RedisLock($two, 'res', 30, 'you');
    step('acquire', [$lock->acquire(), $one->ttl('res'), $one->get('res')], [true, 30, 'me']);
    step('contention', [$other->acquire(), $lock->acquire(), $other->get()], [false, false, false]);
    step('owner', [$lock->owner(), strlen((new RedisLock($one, 'x', 1))->owner())], ['me', 16]);
    step('release', [$other->release(), $lock->release(), $lock->release(), $one->exists('res')],
        [false, true, false, 0]);
    step('get with a callback', [$lock->get(fn () => $other->get()), $one->exists('res')], [false, 0]);
    step('get, an error in the callback',
        [error_of(fn () => $lock->get(fn () => throw new LogicException('no'))),
        $one->exists('res')], ['LogicException: no', 0]);
    $forever = new RedisLock($one, 'res', 0, 'me');
    step('without an end', [$forever->acquire(), $one->ttl('res'), $other->acquire(), $forever->release()],
        [true, -1, false, true]);
    step('force release', [$lock->acquire(), $other->forceRelease(), $one->exists('res'), $lock->release()],
        [true, null, 0, false]);
    $binary = new RedisLock($one, "res\0\377", 30, "\0\r\n\377");
    step('binary', [$binary->acquire(), $two->get("res\0\377"), $binary->release()],
        [true, "\0\r\n\377", true]);
    step('after script flush', [$lock->acquire(), (bool) $one->script('flush'), $lock->release()],
        [true, true, true]);
}

function loss($one, $two): void
{
    $short = new RedisLock($one, 'res', 1, 'me');
    $next = (new RedisLock($two, 'res', 30, 'you'))->betweenBlockedAttemptsSleepFor(10);
    step('expiry lets the next in', [$short->acquire(), $next->block(15)], [true, true]);
    step('release of a lost lock', [$short->release(), $one->get('res'), $next->release()],
        [false, 'you', true]);
}

function blocking(string $kind, $one): void
{
    $lock = new RedisLock($one, 'res', 30, 'me');
    $lock->acquire();
    $wait = function (int $seconds) use ($kind) {
        $mine = connections($kind)->connection();
        return (new RedisLock($mine, 'res', 30, 'you'))->betweenBlockedAttemptsSleepFor(10)
            ->block($seconds, fn () => $mine->get('res'));
    };
    step('block, in vain', error_of(fn () => $wait(1)),
        'Illuminate\Contracts\Cache\LockTimeoutException: ');
    $child = in_background(fn () => $wait(15) === 'you' ? 0 : 1);
    step('release', $lock->release(), true);
    step('block gets it', status_of($child), 0);
    step('and lets it go', $one->exists('res'), 0);
}

function store(RedisStore $store, $one): void
{
    step('a lock of the store', [$store->lock('job', 10, 'me')->get(), $one->get('cache:job'),
        $store->lock('job', 10, 'you')->get(), $store->restoreLock('job', 'me')->release()],
        [true, 'me', false, true]);
    step('put, get', [$store->put('a', ['x' => 1], 10), $store->get('a'), $one->ttl('cache:a'),
        $store->get('none')],
        [true, ['x' => 1], 10, null]);
    step('put many', [$store->putMany(['b' => 'two', 'c' => 3], 10), $store->many(['b', 'none', 'c'])],
        [true, ['b' => 'two', 'none' => null, 'c' => '3']]);
    step('add, by a script', [$store->add('d', 'x', 10), $store->add('d', 'y', 10), $store->get('d')],
        [true, false, 'x']);
    step('counters', [$store->increment('n'), $store->increment('n', 5), $store->decrement('n', 2)],
        [1, 6, 4]);
    step('forever, forget', [$store->forever('e', 1.5), $one->ttl('cache:e'), $store->forget('e'),
        $store->forget('e')], [true, -1, true, false]);
    step('flush', [$store->flush(), $store->get('a')], [true, null]);
}

function limiters($one): void
{
    $throttle = fn () => $one->throttle('throttle')->allow(2)->every(60)
        ->then(fn () => 'ran', fn () => 'throttled');
    step('throttle', [$throttle(), $throttle(), $throttle()], ['ran', 'ran', 'throttled']);
    advance(61);
    step('throttle, the next window', [$throttle(), $one->hget('throttle', 'count')], ['ran', '1']);
    $funnel = fn ($inside) => $one->funnel('funnel')->limit(2)->releaseAfter(60)->block(0)
        ->then($inside, fn () => 'full');
    step('funnel', $funnel(fn () => [$one->exists('funnel1'), $one->ttl('funnel1'),
        $funnel(fn () => $funnel(fn () => 'a third'))]), [1, 60, 'full']);
    step('funnel, after its end', [$one->exists('funnel1'), $one->exists('funnel2')], [0, 0]);
}

// 10 processes. A counter on the server shows each holder whether it is the only one.
function fight(string $kind, $one): void
{
    $children = array_map(fn () => in_background(function () use ($kind) {
        $mine = connections($kind)->connection();
        $alone = true;
        for ($i = 0; $i < 10; $i++) {
            $alone = (new RedisLock($mine, 'fought', 60))->betweenBlockedAttemptsSleepFor(2)->block(15,
                fn () => $mine->incr('inside') === 1 && $mine->incr('entered') && !$mine->decr('inside'))
                && $alone;
        }
        return $alone ? 0 : 1;
    }), range(1, 10));
    step('10 processes, one at a time', [array_sum(array_map('status_of', $children)),
        $one->get('entered')],
        [0, '100']);
}

function main(string $kind): void
{
    $connections = connections($kind);
    [$one, $two] = [$connections->connection(), $connections->connection('second')];
    $one->flushall();
    locks($one, $two);
    loss($one, $two);
    blocking($kind, $one);
    store(new RedisStore($connections, 'cache'), $one);
    limiters($one);
    fight($kind, $one);
    if (HOLDFAST) {
        $lock = new RedisLock($one, 'mix', 30, 'lib');
        mixing('mix', fn () => $lock->acquire(), fn () => $lock->release());
    }
}

main($argv[1]);
