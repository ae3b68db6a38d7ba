#!/usr/bin/perl
# Debian's Redis.pm as a client, and the lock that Perl programs build with it.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use IO::Socket::INET;
use Redis;
use Redis::Hash;
use Time::HiRes qw(sleep time);

use constant EVENT_LIMIT_S => 20;
use constant COMPARE_AND_DELETE =>
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
use constant COMPARE_AND_PEXPIRE => "if redis.call('get', KEYS[1]) == ARGV[1] then "
    . "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0";
use constant WRONG_TYPE => 'WRONGTYPE Operation against a key holding the wrong kind of value';
use constant NO_SCRIPT  => 'NOSCRIPT No matching script. Please use EVAL.';

my $all_bytes = pack('C*', 0 .. 255);
$| = 1;

# Returns a value on one line, strings with all their bytes.
sub shown {
    my ($value) = @_;
    return 'undef' unless defined $value;
    return '[' . join(', ', map { shown($_) } @$value) . ']' if ref $value eq 'ARRAY';
    return '{' . join(', ', map { "$_ => " . shown($value->{$_}) } sort keys %$value) . '}' if ref $value;
    my $text = $value;
    $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ge;
    return qq("$text");
}

# Prints `name: outcome`, the same on every run. The outcome is a list. Ends the program if it is not the
# expected one.
sub step {
    my ($name, $got, @expected) = @_;
    my ($shown, $wanted) = map { join ', ', map { shown($_) } @$_ } $got, \@expected;
    print "$name: $shown\n";
    die "$name: expected $wanted, got $shown\n" if $shown ne $wanted;
}

# A step with commands of Holdfast, which only its side of the comparison runs.
sub native {
    my ($name, @rest) = @_;
    step("native: $name", @rest);
}

# Returns the error of a call, without the position in this program.
sub error_of {
    my ($call) = @_;
    my @got = eval { $call->() };
    return 'no error but ' . shown(\@got) unless $@;
    return $@ =~ s/,?\s+at \S+ line \d+.*//sr;
}

sub until_true {
    my ($what, $condition) = @_;
    my $end = time + EVENT_LIMIT_S;
    while (time < $end) {
        my $got = $condition->();
        return $got if $got;
        sleep 0.005;
    }
    die "$what: did not happen in @{[EVENT_LIMIT_S]} s\n";
}

sub client {
    return Redis->new(server => "$ENV{HOST}:$ENV{PORT}", read_timeout => EVENT_LIMIT_S, @_);
}

sub handshake {
    my ($r) = @_;
    step('ping', [$r->ping], 'PONG');
    step('echo of all bytes', [$r->echo($all_bytes) eq $all_bytes], 1);
    my $other = client(name => 'a-name', on_connect => sub { $_[0]->select(3) });
    step('name, database', [$other->client_getname, $other->set('only-here', 'x'), $r->exists('only-here')],
        'a-name', 'OK', 0);
    step('database 99', [error_of(sub { $r->select(99) })], '[select] ERR DB index is out of range');
    my $info = $r->info;
    step('info', [$info->{redis_version} =~ /^[7-9]\./ ? 1 : 0, $info->{role}, exists $info->{db3} ? 1 : 0],
        1, 'master', 1);
    step('time', [abs(($r->time)[0] - time) < 60], 1);
    step('client list', [scalar $r->client_list =~ /name=a-name/], 1);
    step('quit', [$other->quit], 1);
    step('and closed', [error_of(sub { $other->get('x') })], 'Not connected to any server');
    my $stubborn = client(reconnect => EVENT_LIMIT_S, every => 1000, name => 'stubborn');
    $r->client_kill('ID', $stubborn->client('id'));
    step('killed, and connects again', [$stubborn->ping, $stubborn->client_getname], 'PONG', 'stubborn');
}

sub strings {
    my ($r) = @_;
    step('set, get', [$r->set('s', "a\r\n\0b"), $r->get('s'), $r->get('none')], 'OK', "a\r\n\0b", undef);
    step('binary', [$r->set($all_bytes, $all_bytes), $r->get($all_bytes) eq $all_bytes,
        $r->del($all_bytes)],
        'OK', 1, 1);
    my $big = $all_bytes x 20_000;
    step('5 MB there and back', [$r->set('big', $big), $r->get('big') eq $big, $r->unlink('big')], 'OK', 1,
        1);
    step('set nx, xx', [$r->set('s', 'x', 'NX'), $r->set('t', 'x', 'XX'),
        $r->set('t', 1, 'PX', 9000, 'NX')],
        undef, undef, 'OK');
    step('setnx, getset, getdel', [$r->setnx('t', 'x'), $r->getset('t', 2), $r->getdel('t')], 0, 1, 2);
    step('mset, mget', [$r->mset(a => 1, b => 2), $r->mget('a', 'none', 'b')], 'OK', 1, undef, 2);
    step('counters', [$r->incr('n'), $r->incrby('n', 10), $r->decr('n'), $r->incrbyfloat('n', 0.5)], 1, 11,
        10, 10.5);
    step('append, setrange, getrange', [$r->append('app', 'abcd'), $r->setrange('app', 6, 'z'),
        $r->getrange('app', 1, 5), $r->strlen('app')], 4, 7, "bcd\0\0", 7);
    step('wrong type', [$r->hset('h', 'f', 'v'), error_of(sub { $r->get('h') })], 1, '[get] ' . WRONG_TYPE);
    step('not an integer', [error_of(sub { $r->incr('s') })],
        '[incr] ERR value is not an integer or out of range');
    step('unknown command', [error_of(sub { $r->nosuch('a') })],
        q([nosuch] ERR unknown command 'NOSUCH', with args beginning with: 'a' ));
    step('the connection lives', [$r->get('s')], "a\r\n\0b");
}

sub expiry {
    my ($r) = @_;
    step('set px', [$r->set('e', 'x', 'PX', 30_000), $r->pttl('e') > 29_000, $r->ttl('e')], 'OK', 1, 30);
    step('expire', [$r->expire('e', 100, 'NX'), $r->expire('e', 100, 'GT'), $r->ttl('e'), $r->persist('e'),
        $r->ttl('e'), $r->ttl('none')], 0, 1, 100, 1, -1, -2);
    step('setex, psetex', [$r->setex('f', 10, 1), $r->psetex('f', 20_000, 1), $r->ttl('f')], 'OK', 'OK',
        20);
    step('an expire time of zero', [error_of(sub { $r->setex('f', 0, 'x') })],
        "[setex] ERR invalid expire time in 'setex' command");
    $r->set('short', 'x', 'PX', 40);
    step('it goes', [until_true('expiry', sub { !defined $r->get('short') })], 1);
}

sub keys_and_hashes {
    my ($r) = @_;
    $r->flushall;
    $r->mset(map { ("key:$_" => $_) } 0 .. 299);
    my ($cursor, %found) = (0);
    do {
        ($cursor, my $part) = $r->scan($cursor, 'MATCH', 'key:*', 'COUNT', 40);
        $found{$_}++ for @$part;
    } while ($cursor);
    step('scan', [scalar keys %found], 300);
    step('keys', [sort $r->keys('key:29[01]')], 'key:290', 'key:291');
    step('exists, del, type', [$r->exists('key:1'), $r->del('key:1', 'none'), $r->type('key:2')], 1, 1,
        'string');
    step('rename', [$r->rename('key:2', 'new'), $r->renamenx('new', 'key:3'),
        error_of(sub { $r->rename('x', 'y') })],
        'OK', 0, '[rename] ERR no such key');
    step('hset', [$r->hset('h', 'f', "\0\xff"), $r->hmset('h', f => 1, g => 2), $r->hsetnx('h', 'f', 9)], 1,
        'OK', 0);
    step('hget', [$r->hget('h', 'f'), $r->hget('h', 'x'), $r->hmget('h', 'g', 'x'), {$r->hgetall('h')}],
        1, undef, 2, undef, {f => 1, g => 2});
    step('hincrby', [$r->hincrby('h', 'f', 5), $r->hincrbyfloat('h', 'f', 0.5), $r->hlen('h'),
        $r->hkeys('h')],
        6, 6.5, 2, 'f', 'g');
    step('hdel', [$r->hdel('h', 'f', 'x'), $r->hdel('h', 'g'), $r->exists('h')], 1, 1, 0);
    step('flush', [$r->flushdb, $r->dbsize], 'OK', 0);
}

# The module's own hashes that are tied to keys of the server.
sub tied_hash {
    my ($r) = @_;
    tie my %hash, 'Redis::Hash', 'tied', server => "$ENV{HOST}:$ENV{PORT}";
    $hash{one} = 1;
    $hash{two} = 'x';
    delete $hash{one};
    step('tied hash', [exists $hash{one} ? 1 : 0, $hash{two}, [keys %hash], $r->get('tied:two')], 0, 'x',
        ['two'], 'x');
}

sub pipelines {
    my ($r) = @_;
    my @replies;
    my $note = sub { push @replies, [@_] };
    $r->set('p', 1, $note);
    $r->incr('p', $note);
    $r->hget('p', 'f', $note);
    $r->mget('p', 'none', $note);
    step('sent, not read', [scalar @replies], 0);
    $r->wait_all_responses;
    step('a pipeline', \@replies, ['OK', undef], [2, undef], [undef, WRONG_TYPE], [[2, undef], undef]);
    my $last;
    $r->incr('many', sub { $last = $_[0] }) for 1 .. 10_000;
    $r->wait_all_responses;
    step('10,000 at once', [$last], 10_000);
}

sub transactions {
    my ($r) = @_;
    my $other = client();
    step('multi', [$r->multi, $r->set('m', 1), $r->incr('m'), [$r->exec]], 'OK', 'QUEUED', 'QUEUED',
        ['OK', 2]);
    step('watch', [$r->watch('m'), $r->multi, $r->incr('m'), $r->exec], 'OK', 'OK', 'QUEUED', 3);
    step('watch, changed', [$r->watch('m'), $other->incr('m'), $r->multi, $r->set('m', 9), scalar $r->exec,
        $r->get('m')], 'OK', 4, 'OK', 'QUEUED', undef, 4);
    step('discard, unwatch', [$r->watch('m'), $r->multi, $r->set('m', 9), $r->discard, $r->unwatch,
        $r->get('m')],
        'OK', 'OK', 'QUEUED', 'OK', 'OK', 4);
    step('an error of queueing', [$r->multi, error_of(sub { $r->set('m') }), error_of(sub { $r->exec })],
        'OK',
        "[set] ERR wrong number of arguments for 'set' command",
        '[exec] EXECABORT Transaction discarded because of previous errors.');
    $r->set('short', 'x', 'PX', 300);
    $r->watch('short');
    until_true('expiry', sub { !$other->exists('short') });
    step('watch sees an expiry', [$r->multi, $r->get('m'), scalar $r->exec], 'OK', 'QUEUED', undef);
}

sub scripts {
    my ($r) = @_;
    my $sha = sha1_hex(COMPARE_AND_DELETE);
    step('not loaded', [$r->script_flush, error_of(sub { $r->evalsha($sha, 1, 'k', 'v') })],
        'OK', '[evalsha] ' . NO_SCRIPT);
    step('load', [$r->script_load(COMPARE_AND_DELETE) eq $sha, $r->script_exists($sha, '0' x 40)], 1, 1, 0);
    step('evalsha', [$r->set('k', 'v'), $r->evalsha($sha, 1, 'k', 'x'), $r->evalsha($sha, 1, 'k', 'v')],
        'OK', 0, 1);
    step('eval', [$r->eval("return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}", 1, "k\0",
        "\xff")],
        1, 3, 1, undef, ["k\0", "\xff"], 'FINE');
    step('an error', [error_of(sub { $r->eval("return redis.error_reply('MY own')", 0) })],
        '[eval] MY own');
}

sub pubsub {
    my ($r) = @_;
    my $listener = client();
    my @heard;
    my $note = sub { push @heard, [@_[0 .. 2]] };
    $listener->subscribe('one', 'two', $note);
    $listener->psubscribe('jobs.*', $note);
    step('publish', [$r->publish('one', "a\r\n\0"), $r->publish('jobs.1', 'x'), $r->publish('none', 'x')],
        1, 1, 0);
    while (@heard < 2) { $listener->wait_for_messages(1) }
    step('messages', \@heard, ["a\r\n\0", 'one', 'one'], ['x', 'jobs.1', 'jobs.*']);
    step('subscribers', [$r->pubsub('numsub', 'one', 'none'), $r->pubsub('numpat')], 'one', 1, 'none', 0,
        1);
    step('a command while subscribed', [error_of(sub { $listener->get('x') })],
        q(Cannot use command 'get' while in SUBSCRIBE mode));
    $listener->unsubscribe('one', 'two', $note);
    $listener->punsubscribe('jobs.*', $note);
    step('unsubscribe', [$listener->is_subscriber ? 1 : 0, $listener->ping, $r->publish('one', 'x')], 0,
        'PONG', 0);
}

sub acquire {
    my ($r, $name, $owner, $ttl_ms) = @_;
    return defined $r->set($name, $owner, 'NX', 'PX', $ttl_ms) ? 1 : 0;
}

# EVALSHA; EVAL if the server does not know the script.
sub script {
    my ($r, $text, @words) = @_;
    my $got = eval { $r->evalsha(sha1_hex($text), 1, @words) };
    return $got if !$@;
    die $@ if $@ !~ /NOSCRIPT/;
    return $r->eval($text, 1, @words);
}

sub locks {
    my ($r) = @_;
    my $other = client();
    step('acquire', [acquire($r, 'res', 'me', 30_000), acquire($other, 'res', 'you', 30_000)], 1, 0);
    step('extend', [script($r, COMPARE_AND_PEXPIRE, 'res', 'me', 60_000), $r->pttl('res') > 59_000,
        script($other, COMPARE_AND_PEXPIRE, 'res', 'you', 1)], 1, 1, 0);
    step('release', [script($other, COMPARE_AND_DELETE, 'res', 'you'), $r->script_flush,
        script($r, COMPARE_AND_DELETE, 'res', 'me'), script($r, COMPARE_AND_DELETE, 'res',
            'me')], 0, 'OK', 1, 0);
    acquire($r, 'res', 'me', 40);
    step('expiry lets the next in', [until_true('expiry',
        sub { acquire($other, 'res', "\0\xff", 30_000) })], 1);
    step('release of a lost lock', [script($r, COMPARE_AND_DELETE, 'res', 'me'), $r->get('res'),
        script($other, COMPARE_AND_DELETE, 'res', "\0\xff")], 0, "\0\xff", 1);
}

# 8 processes. A counter on the server shows each holder whether it is the only one.
sub fight {
    my ($r) = @_;
    my @children;
    for my $number (1 .. 8) {
        my $child = fork // die "no fork: $!\n";
        exit contend("process $number") if $child == 0;
        push @children, $child;
    }
    my $failed = 0;
    for my $child (@children) {
        waitpid $child, 0;
        $failed++ if $?;
    }
    step('8 processes, one at a time', [$failed, $r->get('entered')], 0, 80);
}

sub contend {
    my ($owner) = @_;
    my $mine = client();
    my $clashes = 0;
    for (1 .. 10) {
        until_true('the lock', sub { acquire($mine, 'fought', $owner, 60_000) });
        $clashes++ if $mine->incr('inside') != 1;
        $mine->incr('entered');
        $mine->decr('inside');
        script($mine, COMPARE_AND_DELETE, 'fought', $owner);
    }
    return $clashes ? 1 : 0;
}

# The waiting connection is a plain socket, as a client object would block this program.
sub mixing {
    my ($r) = @_;
    my $waiter = IO::Socket::INET->new(PeerAddr => $ENV{HOST},
        PeerPort => $ENV{PORT}) or die "no socket: $!\n";
    native('the library holds it', [acquire($r, 'mix', 'lib', 30_000),
        scalar $r->lock('mix', 'me', 10_000)],
        1, undef);
    $waiter->syswrite("LOCK mix me 10000 WAIT 15000\r\n");
    until_true('a waiter', sub { $r->info->{blocked_clients} == 1 });
    my $begun = time;
    native('release', [script($r, COMPARE_AND_DELETE, 'mix', 'lib')], 1);
    my @lines = map { scalar <$waiter> } 1 .. 4;
    native('wakes the LOCK that waits', [@lines[0 .. 2], $lines[3] =~ /^:\d+\r\n$/ ? 1 : 0],
        "*2\r\n", "\$2\r\n", "me\r\n", 1);
    native('at once', [time - $begun < 5], 1);
    native('the library is refused', [acquire($r, 'mix', 'lib', 30_000)], 0);
    native('UNLOCK lets it in', [$r->unlock('mix', 'me'), acquire($r, 'mix', 'lib', 30_000)], 1, 1);
}

my $r = client();
$r->flushall;
handshake($r);
strings($r);
expiry($r);
keys_and_hashes($r);
tied_hash($r);
pipelines($r);
transactions($r);
scripts($r);
pubsub($r);
locks($r);
fight($r);
mixing($r) if ($ENV{HOLDFAST} // '') eq '1';
