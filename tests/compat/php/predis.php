<?php

// Debian's Predis as a client, and a lock built with it.

declare(strict_types=1);

require __DIR__ . '/steps.php';
require 'Predis/autoload.php';

use Predis\Client;
use Predis\Collection\Iterator;
use Predis\Command\ScriptCommand;

const ABORTED = 'Predis\Transaction\AbortedMultiExecException: '
    . 'The current transaction has been aborted by the server.';

final class CompareAndDelete extends ScriptCommand
{
    public function getKeysCount()
    {
        return 1;
    }

    public function getScript()
    {
        return COMPARE_AND_DELETE;
    }
}

final class CompareAndPexpire extends ScriptCommand
{
    public function getKeysCount()
    {
        return 1;
    }

    public function getScript()
    {
        return COMPARE_AND_PEXPIRE;
    }
}

function client(array $parameters = [], array $options = []): Client
{
    return new Client(['host' => HOST, 'port' => PORT, 'read_write_timeout' => EVENT_LIMIT_S] + $parameters,
        $options);
}

// Returns replies as plain values: Predis makes a status an object.
function plain(mixed $value): mixed
{
    return match (true) {
        is_array($value) => array_map('plain', $value),
        is_object($value) => (string) $value,
        default => $value,
    };
}

function handshake(Client $r): void
{
    step('ping', [plain($r->ping()), $r->ping('text'), $r->isConnected()], ['PONG', 'text', true]);
    $all = implode('', array_map('chr', range(0, 255)));
    step('echo of all bytes', $r->echo($all) === $all, true);
    $other = client(['database' => 3]);
    step('set in database 3', [plain($other->set('only-here', 'x')), $r->exists('only-here')], ['OK', 0]);
    step('database 99', explode(' [', error_of(fn () => client(['database' => 99])->ping()))[0],
        'Predis\Connection\ConnectionException: `SELECT` failed: ERR DB index is out of range');
    step('client name', [plain($r->client('setname', 'a-name')), $r->client('getname')], ['OK', 'a-name']);
    step('client list', in_array('a-name', array_column($r->client('list'), 'name')), true);
    step('info', [(int) $r->info()['Server']['redis_version'] >= 7,
        $r->info('replication')['Replication']['role']],
        [true, 'master']);
    step('time', abs((int) $r->time()[0] - time()) < 60, true);
    step('quit', [$other->quit(), $other->isConnected(), plain($other->ping())], [null, false, 'PONG']);
}

function strings(Client $r): void
{
    $all = implode('', array_map('chr', range(0, 255)));
    step('set, get', [plain($r->set('s', "a\r\n\0b")), $r->get('s'), $r->get('none')],
        ['OK', "a\r\n\0b", null]);
    step('binary', [plain($r->set($all, $all)), $r->get($all) === $all, $r->del($all)], ['OK', true, 1]);
    $big = str_repeat(hash('sha256', 'seed', true), 150000);
    step('4.8 MB there and back', [plain($r->set('big', $big)), $r->get('big') === $big, $r->del('big')],
        ['OK', true, 1]);
    step('set nx, xx', [$r->set('s', 'x', 'NX'), $r->set('t', 'x', 'XX'),
        plain($r->set('t', '1', 'PX', 9000, 'NX'))],
        [null, null, 'OK']);
    step('setnx, getset', [$r->setnx('t', 'x'), $r->getset('t', '2')], [0, '1']);
    step('mset, mget', [plain($r->mset(['a' => 1, 'b' => 2])), $r->mget('a', 'none', 'b'),
        $r->msetnx(['c' => 3])],
        ['OK', ['1', null, '2'], 1]);
    step('counters', [$r->incr('n'), $r->incrby('n', 10), $r->decr('n'), $r->decrby('n', 20),
        $r->incrbyfloat('n', 0.5)], [1, 11, 10, -10, '-9.5']);
    step('append, setrange, getrange', [$r->append('app', 'abcd'), $r->setrange('app', 6, 'z'),
        $r->getrange('app', 1, 5), $r->strlen('app')], [4, 7, "bcd\0\0", 7]);
    step('raw', [$r->executeRaw(['GETDEL', 'a']), $r->executeRaw(['GET']),
        $r->executeRaw(['NOSUCH', 'a'])], ['1', "ERR wrong number of arguments for 'get' command",
        "ERR unknown command 'NOSUCH', with args beginning with: 'a' "]);
}

function expiry(Client $r): void
{
    step('setex, psetex', [plain($r->setex('e', 10, '1')), plain($r->psetex('e', 20000, '1')), $r->ttl('e'),
        $r->pttl('e') > 19000, $r->ttl('none')], ['OK', 'OK', 20, true, -2]);
    step('expire', [$r->expire('e', 50), $r->ttl('e'), $r->pexpire('e', 9000), $r->ttl('e'),
        $r->expire('none', 1)],
        [1, 50, 1, 9, 0]);
    step('expireat, persist', [$r->expireat('e', 4102444800), $r->pexpireat('e', 4102444800000),
        $r->persist('e'),
        $r->persist('e'), $r->ttl('e')], [1, 1, 1, 0, -1]);
    step('an expire time of zero', error_of(fn () => $r->setex('f', 0, 'x')),
        "Predis\Response\ServerException: ERR invalid expire time in 'setex' command");
    $r->set('short', 'x', 'PX', 40);
    step('it goes', until('expiry', fn () => $r->get('short') === null), true);
}

function keys_and_hashes(Client $r): void
{
    $r->flushall();
    for ($i = 0; $i < 300; $i++) {
        $all["key:$i"] = $i;
    }
    $r->mset($all);
    step('scan', count(array_unique(iterator_to_array(new Iterator\Keyspace($r, 'key:*', 40), false))),
        300);
    step('exists, del, type', [$r->exists('key:1'), $r->del(['key:1', 'none']), plain($r->type('key:2'))],
        [1, 1, 'string']);
    step('rename', [plain($r->rename('key:2', 'new')), $r->renamenx('new', 'key:3'),
        error_of(fn () => $r->rename('none', 'x'))],
        ['OK', 0, 'Predis\Response\ServerException: ERR no such key']);
    step('randomkey, dbsize, flush', [is_string($r->randomkey()), $r->dbsize(), plain($r->flushdb())],
        [true, 299, 'OK']);
    step('hset', [$r->hset('h', 'f', "\0\377"), $r->hset('h', 'f', '1'),
        plain($r->hmset('h', ['g' => 2, 'i' => 3]))],
        [1, 0, 'OK']);
    step('hget', [$r->hget('h', 'f'), $r->hget('h', 'x'), $r->hmget('h', 'g', 'x'), $r->hgetall('h')],
        ['1', null, ['2', null], ['f' => '1', 'g' => '2', 'i' => '3']]);
    step('hkeys, hvals, hlen', [$r->hkeys('h'), $r->hvals('h'), $r->hlen('h'), $r->hexists('h', 'f'),
        $r->hsetnx('h', 'f', 9)], [['f', 'g', 'i'], ['1', '2', '3'], 3, 1, 0]);
    step('hincrby', [$r->hincrby('h', 'f', 5), $r->hincrbyfloat('h', 'f', 0.5), $r->hstrlen('h', 'f')],
        [6, '6.5', 3]);
    step('hdel', [$r->hdel('h', ['f', 'x']), $r->hdel('h', ['g', 'i']), $r->exists('h')], [1, 2, 0]);
    for ($i = 0; $i < 2000; $i++) {
        $large["f$i"] = $i;
    }
    $r->hmset('large', $large);
    step('hscan', count(iterator_to_array(new Iterator\HashKey($r, 'large'))), 2000);
}

function pipelines(Client $r): void
{
    $r->flushall();
    $body = function ($p) {
        $p->set('p', 1);
        $p->incr('p');
        $p->hset('ph', 'f', 'v');
        $p->hgetall('ph');
        $p->get('none');
    };
    step('a pipeline', plain($r->pipeline($body)), ['OK', 2, 1, ['f' => 'v'], null]);
    step('an atomic one', plain($r->pipeline(['atomic' => true], $body)), ['OK', 2, 0, ['f' => 'v'], null]);
    $quiet = client([], ['exceptions' => false]);
    step('an error in one', plain($quiet->pipeline(fn ($p) => [$p->incr('p'), $p->incr('ph'),
        $p->incr('p')])),
        [3, WRONG_TYPE, 4]);
    step('10,000 at once', $r->pipeline(function ($p) {
        for ($i = 0; $i < 10000; $i++) {
            $p->incr('many');
        }
    })[9999], 10000);
}

function transactions(Client $r): void
{
    step('multi', plain($r->transaction(fn ($t) => [$t->set('m', 1), $t->incr('m'), $t->get('m')])),
        ['OK', 2, '2']);
    step('an error of execution', error_of(fn () => $r->transaction(fn ($t) => [$t->incr('m'),
        $t->hget('m', 'f')])),
        'Predis\Response\ServerException: ' . WRONG_TYPE);
    step('an error in the program discards', [error_of(fn () => $r->transaction(function ($t) {
        $t->set('m', 9);
        throw new LogicException('no');
    })), $r->get('m')], ['LogicException: no', '3']);
    $other = client();
    $tries = 0;
    $once = function ($t) use ($other, &$tries) {
        $value = (int) $t->get('m');
        if (++$tries < 3) {
            $other->incr('m');
        }
        $t->multi();
        $t->set('m', $value * 10);
    };
    step('watch, and again where it was changed',
        [plain($r->transaction(['cas' => true, 'watch' => 'm', 'retry' => 5],
        $once)), $tries, $r->get('m')], [['OK'], 3, '50']);
    $tries = 0;
    step('watch, changed', error_of(fn () => $r->transaction(['cas' => true, 'watch' => 'm'], $once)),
        ABORTED);
    $r->set('short', 'x', 'PX', 300);
    step('watch sees an expiry', error_of(fn () => $r->transaction(['cas' => true, 'watch' => 'short'],
        function ($t) use ($other) {
            $t->get('short'); // Predis sends WATCH with the first command
            until('expiry', fn () => !$other->exists('short'));
            $t->multi();
            $t->get('m');
        })), ABORTED);
}

function scripts(Client $r): void
{
    $r->script('flush');
    $sha = sha1(COMPARE_AND_DELETE);
    $r->set('k', 'v');
    step('not loaded', [$r->script('exists', $sha), error_of(fn () => $r->evalsha($sha, 1, 'k', 'v'))],
        [[0], 'Predis\Response\ServerException: ' . NO_SCRIPT]);
    $r->getProfile()->defineCommand('cad', CompareAndDelete::class);
    $r->getProfile()->defineCommand('cap', CompareAndPexpire::class);
    step('a command of a script, after NOSCRIPT',
        [$r->cad('k', 'x'), $r->cap('k', 'v', 9000), $r->cad('k', 'v')],
        [0, 1, 1]);
    step('load', [$r->script('load', COMPARE_AND_DELETE) === $sha,
        $r->script('exists', $sha, str_repeat('0', 40))],
        [true, [1, 0]]);
    step('eval', plain($r->eval("return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}", 1, "k\0",
        "\377")),
        [1, 3, 1, null, ["k\0", "\377"], 'FINE']);
    step('an error', error_of(fn () => $r->eval("return redis.error_reply('MY own')", 0)),
        'Predis\Response\ServerException: MY own');
}

function pubsub(Client $r): void
{
    $loop = client()->pubSubLoop(['subscribe' => ['one', 'two'], 'psubscribe' => ['jobs.*']]);
    $next = fn () => array_values(array_filter((array) $loop->current(), fn ($part) => $part !== null));
    step('subscribe', [$next(), $next(), $next()],
        [['subscribe', 'one', 1], ['subscribe', 'two', 2], ['psubscribe', 'jobs.*', 3]]);
    step('publish', [$r->publish('one', "a\r\n\0"), $r->publish('jobs.1', 'x'), $r->publish('none', 'x')],
        [1, 1, 0]);
    step('messages', [$next(), $next()], [['message', 'one', "a\r\n\0"],
        ['pmessage', 'jobs.*', 'jobs.1', 'x']]);
    step('channels and subscribers', [$r->pubsub('numsub', 'one', 'none'), $r->pubsub('numpat')],
        [['one' => 1, 'none' => 0], 1]);
    step('publish in a transaction', $r->transaction(fn ($t) => [$t->publish('one', '1'),
        $t->publish('two', '2')]),
        [1, 1]);
    step('they come', [$next(), $next()], [['message', 'one', '1'], ['message', 'two', '2']]);
    $loop->ping('there?');
    step('ping while subscribed', $next(), ['pong', 'there?']);
    $loop->unsubscribe('one', 'two');
    $loop->punsubscribe('jobs.*');
    step('unsubscribe', [$next(), $next(), $next()],
        [['unsubscribe', 'one', 2], ['unsubscribe', 'two', 1], ['punsubscribe', 'jobs.*', 0]]);
    $monitor = client()->monitor();
    $r->set('seen', 'a "b"');
    $seen = $monitor->current();
    step('monitor', [$seen->command, $seen->arguments], ['SET', '"seen" "a \"b\""']);
}

function locks(Client $r): void
{
    $theirs = client();
    $acquire = fn ($c, $owner, $ms = 30000) => plain($c->set('res', $owner, 'PX', $ms, 'NX'));
    step('acquire', [$acquire($r, 'me'), $r->pttl('res') > 29000, $acquire($theirs, 'you')],
        ['OK', true, null]);
    step('extend', [$r->cap('res', 'me', 60000), $r->pttl('res') > 59000, $r->cap('res', 'you', 1)],
        [1, true, 0]);
    step('release', [$r->cad('res', 'you'), $r->cad('res', 'me'), $r->cad('res', 'me'),
        $acquire($theirs, "\0\377")],
        [0, 1, 0, 'OK']);
    step('after script flush', [plain($r->script('flush')), $r->cad('res', "\0\377")], ['OK', 1]);
    $acquire($r, 'me', 40);
    step('expiry lets the next in', until('expiry', fn () => $acquire($theirs, 'you')), 'OK');
    step('release of a lost lock', [$r->cad('res', 'me'), $r->get('res'), $r->cad('res', 'you')],
        [0, 'you', 1]);
    $clients = array_map(fn () => client(), range(1, 100));
    step('100 connections', array_sum(array_map(fn ($c) => $c->incr('many-clients'), $clients)), 5050);
}

function main(): void
{
    $r = client();
    $r->flushall();
    foreach (['handshake', 'strings', 'expiry', 'keys_and_hashes', 'pipelines', 'transactions', 'scripts',
        'pubsub',
        'locks'] as $part) {
        $part($r);
    }
    if (HOLDFAST) {
        mixing('mix', fn () => plain($r->set('mix', 'lib', 'PX', 30000, 'NX')) === 'OK',
            fn () => $r->cad('mix', 'lib'));
    }
}

main();
