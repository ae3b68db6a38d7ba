<?php

// Debian's phpredis: the extension as a client, a lock built with it, and its session handler with locks.

declare(strict_types=1);

require __DIR__ . '/steps.php';

function client(): Redis
{
    $r = new Redis();
    $r->connect(HOST, PORT, EVENT_LIMIT_S);
    return $r;
}

// Returns the result of a call and the error that phpredis stored (some end with a zero byte).
function with_error(Redis $r, callable $call): array
{
    $r->clearLastError();
    return [$call(), $r->getLastError() === null ? null : rtrim($r->getLastError(), "\0")];
}

function all_bytes(): string
{
    return implode('', array_map('chr', range(0, 255)));
}

function handshake(Redis $r): void
{
    step('ping', [$r->ping(), $r->ping('text'), $r->isConnected()], [true, 'text', true]);
    step('echo of all bytes', $r->echo(all_bytes()) === all_bytes(), true);
    step('select', [$r->select(3), $r->set('only-here', 'x'), $r->select(0), $r->exists('only-here')],
        [true, true, true, 0]);
    step('database 99', with_error($r, fn () => $r->select(99)), [false, 'ERR DB index is out of range']);
    step('client name', [$r->client('setname', 'a-name'), $r->client('getname')], [true, 'a-name']);
    step('client list', array_column($r->client('list'), 'name'), ['a-name']);
    step('info', [(int) $r->info()['redis_version'] >= 7, $r->info('replication')['role']],
        [true, 'master']);
    step('time', abs((int) $r->time()[0] - time()) < 60, true);
    step('auth', error_of(fn () => client()->auth(['nobody', 'x'])),
        'RedisException: WRONGPASS invalid username-password pair or user is disabled.');
    step('close', [$r->close(), $r->connect(HOST, PORT), $r->ping()], [true, true, true]);
    step('persistent', [$r->pconnect(HOST, PORT), $r->ping(), $r->close(), $r->connect(HOST, PORT)],
        [true, true, true, true]);
}

function strings(Redis $r): void
{
    step('set, get', [$r->set('s', "a\r\n\0b"), $r->get('s'), $r->get('none')], [true, "a\r\n\0b", false]);
    step('binary', [$r->set(all_bytes(), all_bytes()), $r->get(all_bytes()) === all_bytes(),
        $r->del(all_bytes())],
        [true, true, 1]);
    $big = str_repeat(hash('sha256', 'seed', true), 150000);
    step('4.8 MB there and back', [$r->set('big', $big), $r->get('big') === $big, $r->unlink('big')],
        [true, true, 1]);
    step('set nx, xx', [$r->set('s', 'x', ['nx']), $r->set('t', 'x', ['xx']), $r->set('t', '1', ['nx'])],
        [false, false, true]);
    step('setnx, getset', [$r->setnx('t', 'x'), $r->getSet('t', '2')], [false, '1']);
    step('mset, mget', [$r->mset(['a' => '1', 'b' => '2']), $r->mget(['a', 'none', 'b'])],
        [true, ['1', false, '2']]);
    step('msetnx', [$r->msetnx(['a' => '9', 'c' => '9']), $r->msetnx(['c' => '3'])], [false, true]);
    step('counters', [$r->incr('n'), $r->incrBy('n', 10), $r->decr('n'), $r->decrBy('n', 20),
        $r->incrByFloat('n', 0.5)], [1, 11, 10, -10, -9.5]);
    step('append, setrange, getrange', [$r->append('app', 'abcd'), $r->setRange('app', 6, 'z'),
        $r->getRange('app', 1, 5), $r->strlen('app')], [4, 7, "bcd\0\0", 7]);
    step('raw', [$r->rawCommand('GETDEL', 'a'), $r->rawCommand('GETEX', 'b', 'PX', '9000')], ['1', '2']);
}

function expiry(Redis $r): void
{
    step('set px', [$r->set('e', 'x', ['px' => 30000]), $r->pttl('e') > 29000, $r->ttl('e')],
        [true, true, 30]);
    step('set ex', [$r->set('e', 'x', 20), $r->ttl('e'), $r->set('e', 'x'), $r->ttl('e'), $r->ttl('none')],
        [true, 20, true, -1, -2]);
    step('expire', [$r->expire('e', 50), $r->ttl('e'), $r->pexpire('e', 9000), $r->ttl('e'),
        $r->expire('none', 1)], [true, 50, true, 9, false]);
    step('expireat, persist', [$r->expireAt('e', 4102444800), $r->pexpireAt('e', 4102444800000),
        $r->persist('e'), $r->persist('e')], [true, true, true, false]);
    step('setex, psetex', [$r->setex('f', 10, '1'), $r->psetex('f', 20000, '1'), $r->ttl('f')],
        [true, true, 20]);
    step('an expire time of zero', with_error($r, fn () => $r->setex('f', 0, 'x')),
        [false, "ERR invalid expire time in 'setex' command"]);
    $r->set('short', 'x', ['px' => 40]);
    step('it goes', until('expiry', fn () => $r->get('short') === false), true);
}

function keys(Redis $r): void
{
    $r->flushAll();
    foreach (range(0, 299) as $i) {
        $all["key:$i"] = $i;
    }
    step('mset of 300', $r->mset($all), true);
    $r->setOption(Redis::OPT_SCAN, Redis::SCAN_RETRY);
    $found = [];
    $cursor = null;
    while ($part = $r->scan($cursor, 'key:*', 40)) {
        $found = array_merge($found, $part);
    }
    step('scan', count(array_unique($found)), 300);
    $some = $r->keys('key:29[01]');
    sort($some);
    step('keys', $some, ['key:290', 'key:291']);
    step('exists, del', [$r->exists('key:1', 'none'), $r->del('key:1', 'none')], [1, 1]);
    step('type', [$r->type('key:2') === Redis::REDIS_STRING, $r->type('none') === Redis::REDIS_NOT_FOUND],
        [true, true]);
    step('rename', [$r->rename('key:2', 'new'), $r->renameNx('new', 'key:3'), $r->rename('none', 'x')],
        [true, false, false]);
    step('object, randomkey', [$r->object('encoding', 'new'), is_string($r->randomKey())], ['int', true]);
    step('swapdb', [$r->swapdb(0, 9), $r->dbSize(), $r->swapdb(0, 9), $r->dbSize()], [true, 0, true, 299]);
    step('flush', [$r->flushDB(), $r->dbSize()], [true, 0]);
}

function hashes(Redis $r): void
{
    step('hset', [$r->hSet('h', 'f', "\0\377"), $r->hSet('h', 'f', '1'),
        $r->hMSet('h', ['g' => 2, 'i' => 3])],
        [1, 0, true]);
    step('hget', [$r->hGet('h', 'f'), $r->hGet('h', 'x'), $r->hMGet('h', ['g', 'x'])],
        ['1', false, ['g' => '2', 'x' => false]]);
    step('hgetall', [$r->hGetAll('h'), $r->hGetAll('none')], [['f' => '1', 'g' => '2', 'i' => '3'], []]);
    step('hkeys, hvals, hlen', [$r->hKeys('h'), $r->hVals('h'), $r->hLen('h'), $r->hExists('h', 'f'),
        $r->hSetNx('h', 'f', '9')], [['f', 'g', 'i'], ['1', '2', '3'], 3, true, false]);
    step('hincrby', [$r->hIncrBy('h', 'f', 5), $r->hIncrByFloat('h', 'f', 0.5), $r->hStrLen('h', 'f')],
        [6, 6.5, 3]);
    step('hdel', [$r->hDel('h', 'f', 'x'), $r->hDel('h', 'g', 'i'), $r->exists('h')], [1, 2, 0]);
    foreach (range(0, 1999) as $i) {
        $large["f$i"] = $i;
    }
    $r->hMSet('large', $large);
    $found = [];
    $cursor = null;
    while ($part = $r->hScan('large', $cursor, null, 50)) {
        $found += $part;
    }
    step('hscan', count($found), 2000);
}

function errors(Redis $r): void
{
    $r->hSet('h', 'f', 'v');
    $r->set('s', 'text');
    step('wrong type', with_error($r, fn () => $r->get('h')), [false, WRONG_TYPE]);
    step('not an integer', with_error($r, fn () => $r->incr('s')),
        [false, 'ERR value is not an integer or out of range']);
    step('unknown command', with_error($r, fn () => $r->rawCommand('NOSUCH', 'a')),
        [false, "ERR unknown command 'NOSUCH', with args beginning with: 'a' "]);
    step('the connection lives', with_error($r, fn () => $r->get('s')), ['text', null]);
}

function options(Redis $r): void
{
    $r->setOption(Redis::OPT_PREFIX, 'pre:');
    step('prefix', [$r->set('k', 'v'), $r->keys('*'), $r->eval("return KEYS[1]", ['k'], 1)],
        [true, ['pre:k'], 'pre:k']);
    $r->setOption(Redis::OPT_PREFIX, '');
    $r->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_IGBINARY);
    step('igbinary', [$r->set('o', ['a' => [1, null]]), $r->get('o')], [true, ['a' => [1, null]]]);
    $r->setOption(Redis::OPT_SERIALIZER, Redis::SERIALIZER_NONE);
    step('slowlog, config', [$r->config('SET', 'slowlog-max-len', '9'),
        $r->config('GET', 'slowlog-max-len'),
        $r->slowlog('reset'), $r->slowlog('len')], [true, ['slowlog-max-len' => '9'], true, 0]);
    step('wait, role', [$r->wait(0, 10), $r->role()], [0, ['master', 0, []]]);
}

function pipelines(Redis $r): void
{
    $r->flushAll();
    step('a pipeline', $r->pipeline()->set('p', 1)->incr('p')->hSet('ph', 'f',
        'v')->hGetAll('ph')->get('none')->exec(),
        [true, 2, 1, ['f' => 'v'], false]);
    step('an error in it', $r->pipeline()->incr('p')->incr('ph')->incr('p')->exec(), [3, false, 4]);
    $p = $r->pipeline();
    for ($i = 0; $i < 10000; $i++) {
        $p->incr('many');
    }
    step('10,000 at once', $p->exec()[9999], 10000);
    step('multi', $r->multi()->set('m', 1)->incr('m')->get('m')->exec(), [true, 2, '2']);
    step('an error of execution', $r->multi()->incr('m')->hGet('m', 'f')->exec(), [3, false]);
    step('discard', [$r->multi()->set('m', 9)->discard(), $r->get('m')], [true, '3']);
    $other = client();
    step('watch', [$r->watch('m'), $r->multi()->set('m', 4)->exec()], [true, [true]]);
    step('watch, changed', [$r->watch('m'), $other->incr('m'), $r->multi()->set('m', 9)->exec(),
        $r->get('m')],
        [true, 5, false, '5']);
    step('unwatch', [$r->watch('m'), $other->incr('m'), $r->unwatch(), $r->multi()->get('m')->exec()],
        [true, 6, true, ['6']]);
    $r->set('short', 'x', ['px' => 300]);
    $r->watch('short');
    until('expiry', fn () => !$other->exists('short'));
    step('watch sees an expiry', $r->multi()->get('m')->exec(), false);
}

function scripts(Redis $r): void
{
    $r->script('flush');
    $sha = sha1(COMPARE_AND_DELETE);
    $r->set('k', 'v');
    step('not loaded', [$r->script('exists', $sha),
        with_error($r, fn () => $r->evalSha($sha, ['k', 'v'], 1))],
        [[0], [false, NO_SCRIPT]]);
    step('load', [$r->script('load', COMPARE_AND_DELETE) === $sha,
        $r->script('exists', $sha, str_repeat('0', 40))],
        [true, [1, 0]]);
    step('evalsha', [$r->evalSha($sha, ['k', 'x'], 1), $r->evalSha($sha, ['k', 'v'], 1)], [0, 1]);
    step('eval', $r->eval("return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}", ["k\0", "\377"],
        1),
        [1, 3, 1, false, ["k\0", "\377"], true]);
    step('an error', error_of(fn () => $r->eval("return redis.error_reply('MY own')")),
        'RedisException: MY own');
    step('in a pipeline', $r->pipeline()->evalSha($sha, ['k', 'v'], 1)->eval('return 7')->exec(), [0, 7]);
}

function pubsub(Redis $r): void
{
    $child = in_background(function () {
        $publisher = client();
        until('subscribers', fn () => $publisher->pubsub('numsub', ['one', 'two']) === ['one' => 1,
            'two' => 1]);
        $told = [$publisher->publish('one', "a\r\n\0"), $publisher->publish('none', 'x')];
        $publisher->multi()->publish('two', '2')->publish('one', 'end')->exec();
        until('patterns', fn () => $publisher->pubsub('numpat') === 1);
        $told[] = $publisher->publish('jobs.1', 'end');
        return $told === [1, 0, 1] ? 0 : 1;
    });
    $heard = [];
    $told = function ($c, ...$parts) use (&$heard) {
        $heard[] = $parts;
        if (end($parts) === 'end') {
            $c->close(); // the only way to end subscribe(); it causes an error
        }
    };
    step('subscribe', error_of(fn () => client()->subscribe(['one', 'two'], $told)),
        'RedisException: Connection closed');
    step('messages', $heard, [['one', "a\r\n\0"], ['two', '2'], ['one', 'end']]);
    step('psubscribe', error_of(fn () => client()->psubscribe(['jobs.*'], $told)),
        'RedisException: Connection closed');
    step('a pattern', end($heard), ['jobs.*', 'jobs.1', 'end']);
    step('the publisher got the number', status_of($child), 0);
    step('no subscribers', [$r->pubsub('numpat'), until('an end', fn () => $r->pubsub('channels') === [])],
        [0, true]);
}

// The lock of many PHP programs.
final class Mutual
{
    public function __construct(private Redis $redis, private string $name, private string $owner)
    {
    }

    public function lock(int $ttl_ms): bool
    {
        return $this->redis->set($this->name, $this->owner, ['nx', 'px' => $ttl_ms]);
    }

    public function unlock(): int
    {
        return $this->script(COMPARE_AND_DELETE);
    }

    public function extendTo(int $ttl_ms): int
    {
        return $this->script(COMPARE_AND_PEXPIRE, $ttl_ms);
    }

    private function script(string $text, mixed ...$arguments): int
    {
        $words = [$this->name, $this->owner, ...$arguments];
        $this->redis->clearLastError();
        $got = $this->redis->evalSha(sha1($text), $words, 1);
        $missing = str_starts_with((string) $this->redis->getLastError(), 'NOSCRIPT');
        return $missing ? $this->redis->eval($text, $words, 1) : $got;
    }
}

function locks(Redis $r): void
{
    $mine = new Mutual($r, 'res', 'me');
    $theirs = new Mutual(client(), 'res', "you\0\377");
    step('acquire', [$mine->lock(30000), $r->pttl('res') > 29000], [true, true]);
    step('contention', $theirs->lock(30000), false);
    step('extend', [$mine->extendTo(60000), $r->pttl('res') > 59000, $theirs->extendTo(1)], [1, true, 0]);
    step('release', [$theirs->unlock(), $mine->unlock(), $mine->unlock(), $theirs->lock(30000)],
        [0, 1, 0, true]);
    step('after script flush', [$r->script('flush'), $theirs->unlock()], [true, 1]);
    $mine->lock(40);
    step('expiry lets the next in', until('expiry', fn () => $theirs->lock(30000)), true);
    step('release of a lost lock', [$mine->unlock(), $r->get('res'), $theirs->unlock()],
        [0, "you\0\377", 1]);
}

// 12 processes. A counter on the server shows each holder whether it is the only one.
function fight(Redis $r): void
{
    $children = array_map(fn ($number) => in_background(function () use ($number) {
        $mine = client();
        $lock = new Mutual($mine, 'fought', "process $number");
        $alone = true;
        for ($i = 0; $i < 10; $i++) {
            until('the lock', fn () => $lock->lock(60000));
            $alone = $mine->incr('inside') === 1 && $alone;
            $mine->incr('entered');
            $mine->decr('inside');
            $lock->unlock();
        }
        return $alone ? 0 : 1;
    }), range(1, 12));
    step('12 processes, one at a time', [array_sum(array_map('status_of', $children)), $r->get('entered')],
        [0, '120']);
}

// phpredis's session handler has its own lock on the session: SET NX PX, and a script for the release.
function sessions(Redis $r): void
{
    ini_set('session.save_handler', 'redis');
    ini_set('session.save_path', 'tcp://' . HOST . ':' . PORT . '?prefix=sess:');
    ini_set('session.use_cookies', '0');
    ini_set('session.cache_limiter', '');
    ini_set('redis.session.locking_enabled', '1');
    ini_set('redis.session.lock_retries', '3');
    ini_set('redis.session.lock_wait_time', '5000');
    ini_set('redis.session.lock_expire', '30');
    session_id('abc');
    $begun = session_start();
    $_SESSION['n'] = 1;
    $held = $r->exists('sess:abc_LOCK');
    $ttl = $r->ttl('sess:abc_LOCK');
    session_write_close();
    $stored = $r->get('sess:abc');
    $left = $r->exists('sess:abc_LOCK');
    $r->set('sess:abc_LOCK', 'another', ['nx', 'px' => 30000]);
    @session_start();
    $told = error_get_last()['message'];
    $_SESSION['n'] = 2;
    @session_write_close();
    $kept = [$r->get('sess:abc'), $r->get('sess:abc_LOCK'), $r->del('sess:abc_LOCK')];
    $again = session_start();
    $value = $_SESSION['n'];
    session_destroy();
    step('session', [$begun, $held, $ttl, $stored, $left], [true, 1, 30, 'n|i:1;', 0]);
    step('session locked by another', [$told, $kept],
        ['session_start(): Acquire of session lock was not successful', ['n|i:1;', 'another', 1]]);
    step('session read again', [$again, $value, $r->exists('sess:abc', 'sess:abc_LOCK')], [true, 1, 0]);
}

function main(): void
{
    $r = client();
    $r->flushAll();
    // The sessions first: they must begin before anything is printed.
    foreach (['sessions', 'handshake', 'strings', 'expiry', 'keys', 'hashes', 'errors', 'options',
        'pipelines',
        'scripts', 'pubsub', 'locks', 'fight'] as $part) {
        $part($r);
    }
    if (HOLDFAST) {
        $lock = new Mutual($r, 'mix', 'lib');
        mixing('mix', fn () => $lock->lock(30000), fn () => $lock->unlock());
    }
}

main();
