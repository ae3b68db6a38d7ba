#!/usr/bin/env python3
"""redis-cli 7 and redis-benchmark as clients of the real server, as a person at a terminal uses them.

Prints each failed test; the last line is "N passed, N failed". HOLDFAST_SERVER names the server. The
results do not depend on speed: each wait ends when its condition is true, or fails after LIMIT_S."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import tempfile
import termios
import time

from harness import HOLDFAST, LIMIT_S, end_with_parent, equal, has, run_tests, test


def matches(pattern, text):
    if not re.fullmatch(pattern, text, re.DOTALL):
        raise AssertionError(f"got {text!r}, wanted a match of {pattern!r}")


class Server:
    """The server on a free port and a Unix socket. The test fails if it does not stop with status 0."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.socket = os.path.join(self.folder.name, "s")
        self.process = subprocess.Popen([HOLDFAST, "--port", "auto", "--unixsocket", self.socket],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        preexec_fn=end_with_parent)
        log = ""
        for line in self.process.stdout:
            log += line
            ready = re.search(r"ready to accept connections on \S+:(\d+),", line)
            if ready:
                self.port = ready.group(1)
                return self
        raise RuntimeError("the server did not start: " + log)

    def __exit__(self, *_):
        self.process.terminate()
        rest = self.process.communicate(timeout=LIMIT_S)[0]
        self.folder.cleanup()
        if self.process.returncode != 0:
            raise AssertionError(f"the server ended with status {self.process.returncode}: {rest}")

    def cli(self, *args, stdin=b""):
        """The output of redis-cli, with its errors."""
        return subprocess.run(["redis-cli", "-p", self.port, *args], input=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False, timeout=LIMIT_S).stdout.decode()

    def session(self, commands, *args):
        """The output of a session; each line of `commands` is a command."""
        return self.cli("--no-raw", *args, stdin=commands.encode())


class Terminal:
    """redis-cli under a terminal of 200 columns."""

    def __init__(self, *args):
        self.process, self.fd = pty.fork()
        if self.process == 0:
            os.environ["TERM"] = "xterm"
            os.execvp("redis-cli", ["redis-cli", *args])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))
        self.raw = b""

    def screen(self):
        """The output since the last call of type(), without colours and cursor moves."""
        return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", self.raw.decode(errors="replace"))

    def type(self, text):
        self.raw = b""
        os.write(self.fd, text.encode())

    def wait_for(self, part):
        deadline = time.monotonic() + LIMIT_S
        while part not in self.screen():
            if not select.select([self.fd], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"on the screen is {self.screen()!r}, wanted {part!r}")
            self.raw += os.read(self.fd, 65536)

    def close(self):
        os.close(self.fd)
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)


@test
def a_session_of_lock_commands(server):
    out = server.session("""LOCK k alice 30000
LOCK k bob 30000
RENEW k alice
RENEW k bob
UNLOCK k bob
FENCE k nobody 1
UNLOCK k alice
UNLOCK k alice
LOCK k alice -1
LOCK k
""")
    matches(r"""1\) "alice"
2\) \(integer\) \d+
\(nil\)
\(integer\) 1
\(integer\) -1
\(integer\) -1
\(integer\) -1
\(integer\) 1
\(integer\) 0
\(error\) ERR ttl must be an integer from 0 to 9007199254740991

?\(error\) ERR wrong number of arguments for 'lock' command
\n?""", out)


@test
def a_lease_of_two_keys(server):
    out = server.session("LEASE GRANT l 30000 a 1 b 2\nLEASE GRANT m 30000 c 3 b 4\nGET b\n"
                         "LEASE CONFIRM l\nTTL a\nEXISTS c\n")
    matches(r"""1\) "l"
2\) \(integer\) (\d+)
1\) \(nil\)
2\) 1\) "b"
"2"
\(integer\) \1
\(integer\) -1
\(integer\) 0
""", out)


@test
def resp3_shows_maps_and_null(server):
    out = server.session("LOCK k alice 0\nLOCK k bob 0\nLOCKS INFO k\nLOCKS INFO none\n", "-3")
    has(out, "(nil)\n")
    has(out, '"mode" => "exclusive"')
    has(out, '"owner" => "alice"')


@test
def json_output_of_locks_info(server):
    server.cli("LOCK", "k", "alice", "0", "SHARED")
    server.cli("LOCK", "k", "bob", "0", "SHARED")
    info = json.loads(server.cli("-3", "--json", "LOCKS", "INFO", "k"))
    equal(info["mode"], "shared")
    equal([holder["owner"] for holder in info["holders"]], ["alice", "bob"])
    equal(info["waiters"], [])


@test
def pushes_of_async_waits_are_shown(server):
    out = server.session("LOCK k alice 0\nLOCK k bob 0 WAIT 0 ASYNC\nUNLOCK k alice\nPING\n",
                         "-3", "--show-pushes", "yes")
    matches(r"""1\) "alice"
2\) \(integer\) \d+
QUEUED
\(integer\) 1
1\) "lock"
2\) "granted"
3\) "k"
4\) "bob"
5\) \(integer\) \d+
PONG
""", out)


@test
def async_without_resp3_gets_an_error_with_advice(server):
    has(server.cli("LOCK", "k", "alice", "0", "WAIT", "0", "ASYNC"), "HELLO 3")


@test
def a_wait_ends_when_another_redis_cli_unlocks(server):
    server.cli("LOCK", "k", "alice", "0")
    waiter = subprocess.Popen(["redis-cli", "-p", server.port, "LOCK", "k", "bob", "0", "WAIT", "0"],
                              stdout=subprocess.PIPE, text=True)
    while "lock_waiters:1\r" not in server.cli("INFO", "locks"):
        equal(waiter.poll(), None)
    equal(server.cli("UNLOCK", "k", "alice"), "1\n")
    matches(r"bob\n\d+\n", waiter.communicate(timeout=LIMIT_S)[0])


@test
def databases_are_separate(server):
    server.cli("-n", "3", "LOCK", "k", "alice", "0")
    equal(server.cli("GET", "k"), "\n")
    equal(server.cli("-n", "3", "GET", "k"), "alice\n")


@test
def unix_socket(server):
    server.cli("LOCK", "k", "alice", "0")
    equal(server.cli("-s", server.socket, "UNLOCK", "k", "alice"), "1\n")


@test
def mass_load_by_pipe(server):
    lines = "".join(f"LOCK key:{i} owner{i} 0\r\n" for i in range(50000))
    frames = "".join(f"*3\r\n$3\r\nSET\r\n$5\r\n{i:05}\r\n$1\r\nv\r\n" for i in range(50000))
    out = server.cli("--pipe", stdin=(lines + frames).encode())
    has(out, "errors: 0, replies: 100000")
    equal(server.cli("DBSIZE"), "100000\n")
    equal(server.cli("GET", "key:49999"), "owner49999\n")


@test
def mass_load_counts_errors(server):
    out = server.cli("--pipe", stdin=b"LOCK k alice -1\r\nLOCK k alice 0\r\n")
    has(out, "errors: 1, replies: 2")


@test
def scan_lists_every_key_once(server):
    server.cli("--pipe", stdin="".join(f"LOCK key:{i} o 0\r\n" for i in range(1000)).encode())
    server.cli("SET", "other", "v")
    found = server.cli("--scan", "--pattern", "key:*").split()
    equal(sorted(found), sorted(f"key:{i}" for i in range(1000)))
    equal(len(server.cli("--scan").split()), 1001)


@test
def last_argument_from_stdin(server):
    owner = b"binary \x01\xff\r\nowner"
    equal(server.cli("-x", "SET", "k", stdin=owner), "OK\n")
    equal(server.cli("UNLOCK", "k", "binary"), "-1\n")
    equal(server.cli("-x", "UNLOCK", "k", stdin=owner), "1\n")


@test
def typing_lock_shows_its_arguments_from_command_docs(server):
    terminal = Terminal("-p", server.port)
    try:
        terminal.wait_for(f"127.0.0.1:{server.port}> ")
        terminal.type("LOCK ")
        terminal.wait_for("key owner ttl [SHARED|LIMIT limit] [WAIT milliseconds [ASYNC]")
        terminal.type("k alice 0\r")
        terminal.wait_for('1) "alice"')
    finally:
        terminal.close()


@test
def help_shows_the_summary_of_a_command(server):
    for typed, shown in (("help LOCK", "LOCK key owner ttl"), ("help LEASE GRANT", "LEASE GRANT id ttl")):
        terminal = Terminal("-p", server.port)
        try:
            terminal.wait_for(f"127.0.0.1:{server.port}> ")
            terminal.type(typed + "\r")
            terminal.wait_for("group: lock")
            has(terminal.screen(), shown)
            has(terminal.screen(), "summary: ")
        finally:
            terminal.close()


@test
def redis_benchmark_runs_lock_without_an_error(server):
    run = subprocess.run(["redis-benchmark", "-p", server.port, "-c", "20", "-n", "20000", "-P", "16",
                          "-r", "1000", "-q", "LOCK", "key:__rand_int__", "o", "30000"],
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=True,
                         timeout=LIMIT_S)
    has(run.stdout, "requests per second")
    equal("rror" in run.stdout, False)
    has(server.cli("INFO", "locks"), "lock_rejections:0\r")


if __name__ == "__main__":
    run_tests(Server)
