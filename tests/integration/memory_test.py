#!/usr/bin/env python3
"""The memory that one client can make the server use: by one reply, before login, by FLUSHALL faster than
the server frees memory, and by the journal. Each test measures the peak memory of the process. Also that
freed memory goes back to the system, and the measurement of the event loop's iterations. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import os
import pathlib
import re
import socket
import sys
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import SANITIZED, Client, Server, equal, has, peak_mib, run_tests, test, until

os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")


def peak_so_far(server):
    """The peak memory of the server so far, in MiB."""
    server.ask("PING")
    return peak_mib(server)


def resident_mib(server):
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) // 1024


def used_mib(server):
    return int(server.info("used_memory", "memory")) // (1 << 20)


def check_logged(server, text):
    """Ends the server, and checks that its log has the text."""
    server.process.terminate()
    until(lambda: server.process.poll() is not None)
    has(server.log + server.process.stdout.read(), text)


@test
def one_reply_takes_no_more_than_the_output_limit(folder):
    with Server(folder, "--appendonly", "no", "--client-output-buffer-limit", "8mb") as server:
        server.ask("SET", "k", "x" * 1_000_000)
        server.ask("HSET", "h", "f", "x" * 1_000_000)
        before = peak_so_far(server)
        asked = {
            "MGET": [["MGET", *["k"] * 1500]],
            "HMGET": [["HMGET", "h", *["f"] * 1500]],
            "EXEC": [["MULTI"], *[["GET", "k"]] * 300, ["EXEC"]],
            "COMMAND DOCS": [["COMMAND", "DOCS", *["SET"] * 100_000]],
        }
        for name, requests in asked.items():
            client = Client(server.path)
            client.send(*requests)
            with contextlib.suppress(ConnectionError):
                while client.socket.recv(1 << 20):
                    pass
            client.close()
            print(f"{name}: {peak_mib(server) - before} MiB")
        equal(peak_mib(server) - before < 64, True)
        check_logged(server, "its unread replies exceed client-output-buffer-limit")


@test
def a_client_that_has_not_logged_in_takes_little(folder):
    with Server(folder, "--appendonly", "no", "--requirepass", "secret") as server:
        server.ask("AUTH", "secret")
        before = peak_so_far(server)
        guest = socket.socket(socket.AF_UNIX)
        guest.connect(server.path)
        guest.settimeout(10)
        with contextlib.suppress(ConnectionError, socket.timeout):
            for _ in range(36):
                guest.sendall(b"junk\r\n" * 170_000)
        guest.close()
        print(f"{peak_mib(server) - before} MiB")
        equal(peak_mib(server) - before < 16, True)


def acquires(client, key):
    """Whether the client gets the lock of a key, which a moment before may have had no memory."""
    return isinstance(client.ask("LOCK", key, "alice", "60000"), list)


@test
def half_sent_requests_do_not_keep_others_from_locks(folder):
    with Server(folder, "--appendonly", "no", "--maxmemory", "50mb") as server:
        before = peak_so_far(server)
        holder = Client(server.path)
        equal(holder.ask("LOCK", "job", "bob", "60000", "SESSION")[0], b"bob")
        holder.socket.sendall(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$60000\r\nhalf")  # within any share
        attackers = [socket.socket(socket.AF_UNIX) for _ in range(60)]
        half = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$8000000\r\n" + b"x" * 4_000_000
        for attacker in attackers:
            attacker.connect(server.path)
            with contextlib.suppress(ConnectionError):
                attacker.sendall(half)
        client = Client(server.path)
        until(lambda: acquires(client, "free"))
        print(f"{peak_mib(server) - before} MiB")
        equal(peak_mib(server) - before < 100, True)
        equal(client.ask("LOCK", "job", "alice", "60000"), None)
        for attacker in attackers:
            attacker.close()
        check_logged(server, "closed: its unfinished requests and names exceed its share of maxmemory")


@test
def waits_for_many_long_keys_do_not_keep_others_from_locks(folder):
    with Server(folder, "--appendonly", "no", "--maxmemory", "50mb") as server:
        before = peak_so_far(server)
        small = Client(server.path)
        small.send(["BLPOP", "jobs", "0"])
        attackers = [Client(server.path) for _ in range(40)]
        for number, attacker in enumerate(attackers):
            with contextlib.suppress(ConnectionError):
                attacker.send(["BLPOP", *[f"{number}.{n}." + "x" * 60_000 for n in range(100)], "0"])
        client = Client(server.path)
        until(lambda: acquires(client, "free"))
        print(f"{peak_mib(server) - before} MiB")
        equal(peak_mib(server) - before < 100, True)
        rejected = [attacker.reply() for attacker in attackers[-5:]]
        equal([str(error).split()[0] for error in rejected], ["OOM"] * 5)
        equal(client.ask("RPUSH", "jobs", "1"), 1)
        equal(small.reply(), [b"jobs", b"1"])
        for attacker in attackers:
            attacker.close()


@test
def flushing_does_not_outrun_the_freeing_of_memory(folder):
    with Server(folder, "--appendonly", "no", "--maxmemory", "50mb") as server:
        server.ask("CONFIG", "SET", "loglevel", "warning")  # each FLUSHALL logs a line, which is not read
        before = peak_so_far(server)
        for _ in range(30):
            server.ask_all([["SET", "k", "v"], ["FLUSHALL"]] * 100)
        script = "for i = 1, 1000 do redis.call('SET', 'k', i) redis.call('FLUSHALL') end"
        server.ask("EVAL", script, 0)
        print(f"{peak_mib(server) - before} MiB")
        equal(peak_mib(server) - before < 100, True)


@test
def the_memory_of_a_removed_hash_goes_back_to_the_system(folder):
    """The allocator of AddressSanitizer decides by itself what goes back. So with it, this test only
    requires that the server frees the memory."""
    with Server(folder, "--appendonly", "no") as server:
        in_use = used_mib if SANITIZED else resident_mib
        before = in_use(server)
        for first in range(0, 200_000, 1000):
            pairs = [word for i in range(first, first + 1000) for word in (f"field-{i}", "x" * 300)]
            server.ask("HSET", "h", *pairs)
        server.ask("SET", "last", "x" * 1000)
        full = in_use(server)
        equal(full > before + 60, True)
        server.ask("DEL", "h")
        until(lambda: in_use(server) < before + (full - before) / (20 if SANITIZED else 3))
        print(f"{before}, {full} and {in_use(server)} MiB")
        equal(server.ask("PING"), "PONG")


@test
def the_journal_buffers_a_large_value_once_per_iteration_of_the_loop(folder):
    with Server(folder, "--maxmemory", "100mb", "--appendfsync", "no") as server:
        server.ask("SET", "large", "x" * 12_000_000)
        before = peak_so_far(server)
        start = time.monotonic()
        changes = [["COPY", "large", "other", "REPLACE"], ["SET", "k", "v"]] * 100
        server.ask_all([["MULTI"], *changes, ["EXEC"]])
        print(f"{peak_mib(server) - before} MiB, {time.monotonic() - start:.1f} s")
        equal(peak_mib(server) - before < 150, True)


@test
def prefixes_of_client_tracking_are_limited_and_slow_no_client(folder):
    with Server(folder, "--appendonly", "no") as server:
        start = time.monotonic()
        clients = []
        for number in range(20):
            clients.append(Client(server.path))
            words = [word for each in range(1000) for word in ("PREFIX", f"p{number}:{each:04}")]
            equal(clients[-1].ask("CLIENT", "TRACKING", "ON", "BCAST", *words), "OK")
        server.ask_all([["SET", "k", "v"]] * 20_000)
        print(f"{time.monotonic() - start:.1f} s")
        has(str(server.ask("CLIENT", "TRACKING", "ON", "BCAST", *["PREFIX", "p"] * 40_000)),
            "at most 1000 prefixes")
        for client in clients:
            client.close()


@test
def debug_loop_counts_the_iterations_between_start_and_stop(folder):
    with Server(folder, "--enable-debug-command", "yes") as server:
        server.ask("PING")
        none = [b"iterations", 0, b"cpu-over-1ms", 0, b"longest-cpu-us", 0]
        equal(server.ask("DEBUG", "LOOP", "STOP"), none)
        equal(server.ask("DEBUG", "LOOP", "START"), "OK")
        for _ in range(10):
            server.ask("PING")
        figures = server.ask("DEBUG", "LOOP", "STOP")
        found = dict(zip(figures[::2], figures[1::2]))
        if found[b"iterations"] < 10 or found[b"longest-cpu-us"] == 0:
            raise AssertionError(f"got {found}")
        has(server.ask("DEBUG", "LOOP", "AGAIN"), "ERR syntax error")


if __name__ == "__main__":
    run_tests()
