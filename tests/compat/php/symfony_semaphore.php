<?php

// symfony/semaphore and symfony/rate-limiter: permits with weights, expiry and refresh; windows and
// buckets in a cache on the server, which the lock of symfony/lock guards. clock.php moves the time. The
// argument selects the client.

declare(strict_types=1);

require __DIR__ . '/clock.php';
require __DIR__ . '/steps.php';
require 'Symfony/Component/Semaphore/autoload.php';
require 'Symfony/Component/RateLimiter/autoload.php';
require 'Symfony/Component/Cache/autoload.php';
require 'Symfony/Component/Lock/autoload.php';
require 'Predis/autoload.php';

use Symfony\Component\Cache\Adapter\RedisAdapter;
use Symfony\Component\Lock\LockFactory;
use Symfony\Component\Lock\Store\RedisStore as LockStore;
use Symfony\Component\RateLimiter\RateLimiterFactory;
use Symfony\Component\RateLimiter\Storage\CacheStorage;
use Symfony\Component\Semaphore\SemaphoreFactory;
use Symfony\Component\Semaphore\Store\RedisStore;

use function Holdfast\Clock\advance;

function connected(string $kind): Redis|Predis\Client
{
    if ($kind === 'predis') {
        return new Predis\Client(['host' => HOST, 'port' => PORT]);
    }
    $client = new Redis();
    $client->connect(HOST, PORT, EVENT_LIMIT_S);
    return $client;
}

function permits(SemaphoreFactory $factory, $client): void
{
    $all = array_map(fn () => $factory->createSemaphore('s', 3, 1, 60), range(1, 4));
    step('acquire up to the limit', array_map(fn ($each) => $each->acquire(), $all),
        [true, true, true, false]);
    step('its two keys', [$client->zcard('{s}:time'), $client->zcard('{s}:weight')], [3, 3]);
    $left = $client->ttl('{s}:time');
    step('the keys end after the last permit', $left > 60 && $left <= 70, true);
    step('acquire again', [$all[0]->acquire(), $client->zcard('{s}:time')], [true, 3]);
    $all[1]->release();
    step('a released permit goes to the next', [$all[3]->acquire(), $all[1]->isAcquired()], [true, false]);
    advance(40);
    $all[0]->refresh();
    advance(30);
    $late = $factory->createSemaphore('s', 3, 2, 60);
    step('permits expire, the refreshed does not', [$late->acquire(), $client->zcard('{s}:time'),
        $all[0]->isAcquired()], [true, 2, true]);
    step('a late refresh', error_of(fn () => $all[2]->refresh()),
        'Symfony\Component\Semaphore\Exception\SemaphoreExpiredException: The semaphore "s" has expired: '
        . 'the script returns a positive number.');
}

function weights(SemaphoreFactory $factory, $client): void
{
    [$heavy, $light, $other] = array_map(fn (int $weight) => $factory->createSemaphore('w', 5, $weight, 60),
        [3, 2, 1]);
    step('weights', [$heavy->acquire(), $light->acquire(), $other->acquire()], [true, true, false]);
    $lightest = $client->zrange('{w}:weight', 0, 0)[0];
    step('the weights are scores', (int) $client->zscore('{w}:weight', $lightest), 2);
    $light->release();
    step('the light one makes room for one', $other->acquire(), true);
    $heavy->release();
    $other->release();
    step('no key remains', [$client->exists('{w}:weight'), $client->exists('{w}:time')], [0, 0]);
}

// The outcomes of several requests for a token.
function taken($limiter, int $count): array
{
    return array_map(fn () => $limiter->consume()->isAccepted(), range(1, $count));
}

function limiters($client): void
{
    $storage = new CacheStorage(new RedisAdapter($client, 'limits'));
    $locks = new LockFactory(new LockStore($client));
    $make = fn (array $config) => (new RateLimiterFactory($config + ['id' => $config['policy']], $storage,
        $locks))->create('me');
    $fixed = $make(['policy' => 'fixed_window', 'limit' => 2, 'interval' => '1 hour']);
    step('fixed window', taken($fixed, 3), [true, true, false]);
    advance(3601);
    step('the next fixed window', taken($fixed, 1), [true]);
    $sliding = $make(['policy' => 'sliding_window', 'limit' => 4, 'interval' => '1 hour']);
    step('sliding window', taken($sliding, 5), [true, true, true, true, false]);
    advance(3600 + 1800 + 5);
    step('half of the old window counts', taken($sliding, 4), [true, true, true, false]);
    $bucket = $make(['policy' => 'token_bucket', 'limit' => 3,
        'rate' => ['interval' => '1 hour', 'amount' => 2]]);
    step('token bucket', taken($bucket, 4), [true, true, true, false]);
    advance(3601);
    step('after its refill', taken($bucket, 3), [true, true, false]);
    $bucket->reset();
    step('after its reset', taken($bucket, 1), [true]);
    step('no lock remains', $client->exists('fixed_window-me'), 0);
}

function main(string $kind): void
{
    $client = connected($kind);
    $factory = new SemaphoreFactory(new RedisStore($client));
    permits($factory, $client);
    weights($factory, $client);
    limiters($client);
}

main($argv[1]);
