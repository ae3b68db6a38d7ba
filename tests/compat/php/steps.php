<?php

// Helpers of the PHP cases: steps that print and check their outcome, errors as text, waits for events, the
// scripts of the lock that PHP programs build themselves, and its use beside LOCK.

declare(strict_types=1);

const EVENT_LIMIT_S = 20;
const COMPARE_AND_DELETE =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";
const COMPARE_AND_PEXPIRE =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end "
    . 'return 0';
const WRONG_TYPE = 'WRONGTYPE Operation against a key holding the wrong kind of value';
const NO_SCRIPT = 'NOSCRIPT No matching script. Please use EVAL.';

define('HOST', getenv('HOST'));
define('PORT', (int) getenv('PORT'));
define('HOLDFAST', getenv('HOLDFAST') === '1');

// Returns a value on one line, strings with all their bytes.
function shown(mixed $value): string
{
    if (is_string($value)) {
        return '"' . addcslashes($value, "\0..\37\"\\\177..\377") . '"';
    }
    if (!is_array($value)) {
        return is_object($value) ? get_class($value) : json_encode($value);
    }
    $parts = [];
    foreach ($value as $key => $part) {
        $parts[] = (array_is_list($value) ? '' : shown($key) . ' => ') . shown($part);
    }
    return '[' . implode(', ', $parts) . ']';
}

function fail(string $text): never
{
    fwrite(STDERR, "$text\n");
    exit(1);
}

// Prints `name: outcome`, the same on every run. Ends the program if the outcome is not the expected one.
function step(string $name, mixed $got, mixed $expected): void
{
    echo "$name: ", shown($got), "\n";
    if ($got !== $expected) {
        fail("$name: expected " . shown($expected) . ', got ' . shown($got));
    }
}

// A step with commands of Holdfast, which only its side of the comparison runs.
function native(string $name, mixed $got, mixed $expected): void
{
    step("native: $name", $got, $expected);
}

function error_of(callable $call): string
{
    try {
        return 'no error but ' . shown($call());
    } catch (Throwable $error) {
        return get_class($error) . ': ' . $error->getMessage();
    }
}

// Polls until the call returns a value; returns that value.
function until(string $what, callable $condition): mixed
{
    $end = microtime(true) + EVENT_LIMIT_S;
    while (microtime(true) < $end) {
        if ($got = $condition()) {
            return $got;
        }
        usleep(5000);
    }
    fail("$what: did not happen in " . EVENT_LIMIT_S . ' s');
}

// Runs the call in a new process. Its return value is the exit status.
function in_background(callable $call): int
{
    $child = pcntl_fork();
    if ($child === 0) {
        exit((int) $call());
    }
    return $child;
}

function status_of(int $child): int
{
    pcntl_waitpid($child, $status);
    return pcntl_wexitstatus($status);
}

// A plain socket, for a command that waits while the program continues.
final class Line
{
    private mixed $socket;

    public function __construct()
    {
        $this->socket = fsockopen(HOST, PORT);
        stream_set_timeout($this->socket, EVENT_LIMIT_S);
    }

    public function send(string $command): void
    {
        fwrite($this->socket, "$command\r\n");
    }

    // Reads one reply of a form that lock commands use.
    public function reply(): mixed
    {
        $line = rtrim((string) fgets($this->socket), "\r\n");
        $rest = substr($line, 1);
        return match ($line[0] ?? '') {
            ':' => (int) $rest,
            '$' => (int) $rest < 0 ? null : substr(stream_get_contents($this->socket, (int) $rest + 2), 0,
                -2),
            '*' => (int) $rest < 0 ? null : array_map(fn () => $this->reply(), range(1, (int) $rest)),
            default => $line,
        };
    }

    public function ask(string $command): mixed
    {
        $this->send($command);
        return $this->reply();
    }
}

// A lock that a library already holds on the key, and LOCK on the same key.
function mixing(string $key, callable $acquire, callable $release): void
{
    $line = new Line();
    $waiter = new Line();
    native('the library holds it', $acquire(), true);
    native('LOCK is refused', $line->ask("LOCK $key me 10000"), null);
    $waiter->send("LOCK $key me 10000 WAIT 15000");
    until('a waiter', fn () => str_contains($line->ask('INFO clients'), "blocked_clients:1\r\n"));
    $begun = microtime(true);
    $release();
    $got = $waiter->reply();
    native('release wakes the LOCK that waits', [$got[0], is_int($got[1])], ['me', true]);
    native('at once', microtime(true) - $begun < 5, true);
    native('the library is refused', $acquire(), false);
    native('UNLOCK lets it in', [$line->ask("UNLOCK $key me"), $acquire()], [1, true]);
    $release();
    native('the key is free', $line->ask("EXISTS $key"), 0);
}
