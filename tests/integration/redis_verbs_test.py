#!/usr/bin/env python3
"""The verbs of `holdfast` on stock Redis, and `run` and `elect`: what they print and their exit statuses.
Closes with "N passed, N failed". The command stands beside HOLDFAST_SERVER; REDIS_SERVER is Redis."""
import contextlib
import json
import os
import re
import signal
import socket
import tempfile

from harness import LIMIT_S, REDIS, Server, equal, has, run_tests, test, until
from job import call, ended, start, told

OWNED = ("unlock", "renew")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def redis():
    """A server that the command finds unless told."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        port = free_port()
        with Server(folder, "--port", str(port), "--bind", "127.0.0.1", command=REDIS) as server:
            server.name = f"127.0.0.1:{port}"
            os.environ["HOLDFAST_SERVERS"] = f"redis://{server.name}"
            yield server


@test
def a_lock_goes_from_lock_by_renew_to_unlock(server):
    owner, token = re.fullmatch(r"([0-9a-f]{32}) (\d+)\n", call(0, "lock", "--ttl", "1m", "k")[0]).groups()
    equal(server.ask("GET", "k"), owner.encode())
    has(call(75, "lock", "-n", "k")[1], "k: busy")
    has(call(0, "renew", "--ttl", "1h", "k", owner)[0], "renewed on 1 of 1 server")
    equal(server.ask("PTTL", "k") > 3_500_000, True)
    [row] = told("info", "k")
    equal((row["server"], row["mode"], row["waiters"]), (server.name, "exclusive", []))
    equal([(holder["owner"], holder["token"]) for holder in row["holders"]], [(owner, int(token))])
    has(call(0, "unlock", "k", owner)[0], "released on 1 of 1 server")
    equal(server.ask("EXISTS", "k"), 0)
    for verb in OWNED:
        has(call(1, verb, "k", owner)[1], "nobody does")
    has(call(0, "info", "k")[0], "free")


@test
def lock_waits_for_the_release(server):
    owner = call(0, "lock", "k")[0].split()[0]
    waiting = start("lock", "-w", "1h", "k")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    call(75, "lock", "-w", "50ms", "k")
    call(0, "unlock", "k", owner)
    has(ended(waiting, 0)[0], server.ask("GET", "k").decode())


@test
def a_signal_ends_the_wait_and_leaves_nobody(server):
    call(0, "lock", "--ttl", "1h", "k")
    waiting = start("lock", "k")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    waiting.send_signal(signal.SIGINT)
    equal(ended(waiting, 130)[0], "")
    until(lambda: not server.ask("PUBSUB", "CHANNELS", "__lock__:k"))


@test
def lock_takes_shared_and_counted_locks(_):
    for options in (["--shared"], ["--limit", "2"]):
        name = options[0][2:]
        equal(len({told("lock", "-n", *options, name)["owner"] for _ in range(2)}), 2)
        call(75, "lock", "-n", name)
        has(call(0, "break", name)[0], "2 holds broken")
        call(0, "lock", "-n", name)


@test
def watch_shows_events_as_they_come(server):
    watching = start("watch", "--json", "k")
    equal(json.loads(watching.stdout.readline())["event"], "watching")
    owner, token = call(0, "lock", "k")[0].split()
    row = json.loads(watching.stdout.readline())
    equal((row["server"], row["event"], row["owner"], row["token"]),
          (server.name, "granted", owner, int(token)))
    call(0, "break", "k")
    equal(json.loads(watching.stdout.readline())["event"], "broken")
    watching.send_signal(signal.SIGINT)
    ended(watching, -signal.SIGINT)


@test
def ping_tells_redis_and_its_clock(server):
    has(call(0, "ping")[0], server.name, "Redis 7.", "enough for a lock")
    [row] = told("ping")["servers"]
    equal((row["reachable"], row["holdfast_version"], row["token_lead_ms"]), (True, None, None))
    equal(abs(row["clock_offset_ms"]) < 1000, True)
    has(call(69, "ping", "--servers", f"holdfast://{server.name}")[0], "this is no Holdfast")


@test
def what_redis_cannot_do_is_said(server):
    for words in (["list"], ["revoke", "k"]):
        has(call(69, *words)[1], server.name, "is not possible on Redis: ")


@test
def a_place_that_is_none_is_wrong_use(_):
    for place, why in (("rediss://h", "TLS"), ("redis://h/1", "database 0"), ("redis://a,b", "-cluster:")):
        has(call(64, "info", "--servers", place, "k")[1], why)
        has(call(64, "run", "--servers", place, "k", "--", "true")[1], why)


@test
def run_holds_the_lock_while_its_command_runs(server):
    running = start("run", "--ttl", "300ms", "k", "--", "sh", "-c", "echo held; sleep 1; echo over")
    equal(running.stdout.readline(), "held\n")
    equal(len(server.ask("GET", "k")), 32)
    call(75, "run", "-n", "k", "--", "true")
    call(0, "run", "k", "--", "true")
    equal(ended(running, 0)[0], "over\n")
    equal(server.ask("EXISTS", "k"), 0)


@test
def run_ends_its_command_when_the_lock_is_lost(server):
    running = start("run", "k", "--", "sh", "-c", "echo held; exec sleep 600")
    equal(running.stdout.readline(), "held\n")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    call(0, "break", "k")
    has(running.communicate(timeout=LIMIT_S)[1], "k")
    equal(running.returncode != 0, True)


@test
def elect_hands_the_lead_over(server):
    script = "echo leads $0; exec sleep 600"
    first = start("elect", "k", "--", "sh", "-c", script, "first")
    equal(first.stdout.readline(), "leads first\n")
    second = start("elect", "k", "--", "sh", "-c", script, "second")
    until(lambda: server.ask("PUBSUB", "NUMSUB", "__lock__:k")[1] == 2)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=LIMIT_S)
    equal(second.stdout.readline(), "leads second\n")
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=LIMIT_S)
    until(lambda: server.ask("EXISTS", "k") == 0)


if __name__ == "__main__":
    run_tests(redis)
