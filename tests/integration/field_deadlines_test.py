#!/usr/bin/env python3
"""Deadlines of hash fields with the real server: expiry without an access, and restarts from the journal
and from a snapshot, after a stop and after a kill. Prints each failed test; the last line is "N passed, N
failed". HOLDFAST_SERVER names the server."""
from harness import HOLDFAST, Server, equal, run_tests, until, test

FAR_MS = 4_000_000_000_000  # a wall-clock time


def holdfast(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder, *options, command=HOLDFAST)


def fill(server):
    equal(server.ask_all([
        ("HSET", "small", "a", "1", "b", "2"), ("HPEXPIREAT", "small", FAR_MS, "FIELDS", 1, "a"),
        ("PEXPIREAT", "small", FAR_MS + 1),
        ("HSET", "large", *(text for i in range(3000) for text in (f"f{i}", i))),
        ("HPEXPIREAT", "large", FAR_MS, "FIELDS", 2, "f1", "f2999"),
        ("HSETEX", "all", "PXAT", FAR_MS, "FIELDS", 1, "a", "1"),
        ("HSETEX", "short", "PX", 1, "FIELDS", 1, "a", "1"), ("HSET", "short", "b", "2")]),
        [2, [1], 1, 3000, [1, 1], 1, 1, 1])


def compare(server):
    equal(server.ask_all([
        ("HPEXPIRETIME", "small", "FIELDS", 2, "a", "b"), ("PEXPIRETIME", "small"),
        ("HPEXPIRETIME", "large", "FIELDS", 3, "f1", "f2", "f2999"), ("HLEN", "large"),
        ("HPEXPIRETIME", "all", "FIELDS", 1, "a"), ("HGETALL", "short")]),
        [[FAR_MS, -1], FAR_MS + 1, [FAR_MS, -1, FAR_MS], 3000, [FAR_MS], [b"b", b"2"]])


@test
def fields_expire_without_an_access(folder):
    with holdfast(folder, "--notify-keyspace-events", "KEA") as server:
        equal(server.ask_all([("HSETEX", "h", "PX", 50, "FIELDS", 2, "a", "1", "b", "2"),
                              ("HSETEX", "i", "PX", 50, "FIELDS", 1, "a", "1"),
                              ("HSET", "i", "b", "2")]), [1, 1, 1])
        until(lambda: server.info("expired_subkeys", "stats") == "3")
        equal(server.ask_all([("DBSIZE",), ("HKEYS", "i")]), [1, [b"b"]])


@test
def the_journal_keeps_the_deadlines(folder):
    with holdfast(folder) as server:
        fill(server)
        server.kill()
    for _ in range(2):
        with holdfast(folder) as server:
            compare(server)


@test
def a_snapshot_keeps_the_deadlines(folder):
    with holdfast(folder, "--appendonly", "no") as server:
        fill(server)
        equal(server.ask("SAVE"), "OK")
        server.kill()
    for _ in range(2):
        with holdfast(folder, "--appendonly", "no") as server:
            compare(server)
            equal(server.ask("SAVE"), "OK")


@test
def payloads_keep_the_deadlines(folder):
    with holdfast(folder / "one") as one, holdfast(folder / "two") as two:
        fill(one)
        for key in ("small", "large", "all", "short"):
            ttl = FAR_MS + 1 if key == "small" else 0
            equal(two.ask("RESTORE", key, ttl, one.ask("DUMP", key), "ABSTTL"), "OK")
        compare(two)


if __name__ == "__main__":
    run_tests()
