#!/usr/bin/env python3
"""Values and functions that move between Holdfast and stock Redis: by DUMP and RESTORE, by FUNCTION DUMP
and RESTORE, and in snapshots. A restart keeps the functions, from the snapshot and from the journal. Prints
each failed test; the last line is "N passed, N failed". HOLDFAST_SERVER and REDIS_SERVER name the
servers."""
import random

from harness import REDIS, Server, equal, has, run_tests, test

LIBRARY = """#!lua name=locks
local function count(key) return redis.call('INCR', key) end
redis.register_function('count', function(keys) return count(keys[1]) end)
redis.register_function{function_name='get', callback=function(keys) return redis.call('GET', keys[1]) end,
                        flags={'no-writes'}, description='reads'}
"""
WRONG = "ERR DUMP payload version or checksum are wrong"
OTHER = "#!lua name=other\nredis.register_function('one', function() return 1 end)"


def holdfast(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder, *options)


def redis(folder):
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder, command=REDIS)


def values():
    """Strings at the steps of the encodings of lengths and numbers; hashes, lists, sets and sorted sets in
    all encodings of Redis 7.0."""
    rng = random.Random(8)
    strings = [b"", b"v", b"0", b"-1", b"127", b"128", b"-32769", b"2147483648", b"007", b"\x00\xff\r\n",
               b"same " * 5000, *(rng.randbytes(n) for n in (11, 12, 63, 64, 16383, 16384, 70000))]
    hashes = [{b"f": b"v"}, {b"": b"", b"n": b"-70000", b"\xff": b"\r\n"}, {b"long": b"x" * 5000},
              {b"f%d" % i: b"%d" % i for i in range(1000)}]
    lists = [["a", -3, "x" * 70], [f"element {i} {'y' * 100}" for i in range(2000)]]
    sets = [[1, -2, 70000], ["a", "", b"\x00\xff"], [f"m{i}" for i in range(2000)]]
    zsets = [[("a", 1.5), ("b", -7), ("", "inf")], [(f"m{i}", i / 4) for i in range(2000)]]
    return strings, hashes, lists, sets, zsets


def texts(elements):
    return [e if isinstance(e, bytes) else str(e).encode() for e in elements]


def fill(server):
    strings, hashes, lists, sets, zsets = values()
    equal(set(server.ask_all([("SET", f"s{i}", s) for i, s in enumerate(strings)])), {"OK"})
    for i, fields in enumerate(hashes):
        server.ask("HSET", f"h{i}", *(text for pair in fields.items() for text in pair))
    for i, elements in enumerate(lists):
        server.ask("RPUSH", f"l{i}", *elements)
    for i, members in enumerate(sets):
        server.ask("SADD", f"set{i}", *members)
    for i, members in enumerate(zsets):
        server.ask("ZADD", f"z{i}", *(word for member, score in members for word in (score, member)))


def compare(server):
    strings, hashes, lists, sets, zsets = values()
    equal(server.ask_all([("GET", f"s{i}") for i in range(len(strings))]), strings)
    for i, fields in enumerate(hashes):
        flat = server.ask("HGETALL", f"h{i}")
        equal(dict(zip(flat[::2], flat[1::2])), fields)
    for i, elements in enumerate(lists):
        equal(server.ask("LRANGE", f"l{i}", 0, -1), texts(elements))
    for i, members in enumerate(sets):
        equal(sorted(server.ask("SMEMBERS", f"set{i}")), sorted(texts(members)))
    for i, members in enumerate(zsets):
        flat = server.ask("ZRANGE", f"z{i}", 0, -1, "WITHSCORES")
        found = {member: float(score) for member, score in zip(flat[::2], flat[1::2])}
        equal(found, {texts([member])[0]: float(score) for member, score in members})


def move(source, target):
    """Moves all keys, as MIGRATE and tools do."""
    for key in source.ask("KEYS", "*"):
        equal(target.ask("RESTORE", key, 0, source.ask("DUMP", key)), "OK")


@test
def values_move_to_redis_and_back(folder):
    with holdfast(folder / "ours") as ours, redis(folder / "theirs") as theirs:
        fill(ours)
        move(ours, theirs)
        compare(theirs)
        equal(ours.ask("FLUSHALL"), "OK")
        move(theirs, ours)
        compare(ours)


@test
def values_move_between_two_servers_of_holdfast(folder):
    with holdfast(folder / "one") as one, holdfast(folder / "two") as two:
        fill(one)
        move(one, two)
        compare(two)


@test
def a_payload_with_any_damaged_byte_is_rejected(folder):
    with holdfast(folder) as server:
        server.ask("HSET", "h", "field", "value", "g", "2")
        payload = server.ask("DUMP", "h")
        for i in range(len(payload)):
            damaged = payload[:i] + bytes([payload[i] ^ 0x21]) + payload[i + 1:]
            has(server.ask("RESTORE", "k", 0, damaged), WRONG)
        for n in range(len(payload)):
            has(server.ask("RESTORE", "k", 0, payload[:n]), WRONG)
        equal(server.ask("EXISTS", "k"), 0)


def call(server):
    equal(server.ask_all([("DEL", "n"), ("FCALL", "count", 1, "n"), ("FCALL", "count", 1, "n"),
                          ("FCALL_RO", "get", 1, "n")])[1:], [1, 2, b"2"])


@test
def functions_move_to_redis_and_back_by_their_payload(folder):
    with holdfast(folder / "ours") as ours, redis(folder / "theirs") as theirs:
        equal(ours.ask("FUNCTION", "LOAD", LIBRARY), b"locks")
        equal(theirs.ask("FUNCTION", "RESTORE", ours.ask("FUNCTION", "DUMP")), "OK")
        call(theirs)
        equal(ours.ask("FUNCTION", "FLUSH"), "OK")
        equal(ours.ask("FUNCTION", "RESTORE", theirs.ask("FUNCTION", "DUMP")), "OK")
        call(ours)


@test
def functions_move_to_redis_and_back_in_a_snapshot(folder):
    with holdfast(folder / "ours", "--compress", "no") as server:
        equal(server.ask_all([("FUNCTION", "LOAD", LIBRARY), ("SET", "k", "v"), ("SAVE",)])[2], "OK")
    rdb = (folder / "ours" / "dump.rdb").read_bytes()
    (folder / "theirs").mkdir()
    (folder / "theirs" / "dump.rdb").write_bytes(rdb)
    with redis(folder / "theirs") as server:
        call(server)
        equal(server.ask_all([("FUNCTION", "LOAD", OTHER), ("SAVE",)]), [b"other", "OK"])
    (folder / "again").mkdir()
    (folder / "again" / "dump.rdb").write_bytes((folder / "theirs" / "dump.rdb").read_bytes())
    with holdfast(folder / "again") as server:
        call(server)
        equal(server.ask_all([("FCALL", "one", 0), ("GET", "k")]), [1, b"v"])


@test
def a_restart_keeps_the_functions(folder):
    with holdfast(folder) as server:
        equal(server.ask_all([("FUNCTION", "LOAD", LIBRARY), ("FUNCTION", "LOAD", OTHER)]),
              [b"locks", b"other"])
    with holdfast(folder) as server:
        call(server)
        changed = OTHER.replace("return 1", "return 2")
        equal(server.ask_all([("FUNCTION", "LOAD", "REPLACE", changed), ("FUNCTION", "DELETE", "locks")]),
              [b"other", "OK"])
        server.kill()
    with holdfast(folder) as server:
        equal(server.ask("FCALL", "one", 0), 2)
        has(server.ask("FCALL", "count", 1, "n"), "ERR Function not found")
        equal(server.ask("FUNCTION", "FLUSH"), "OK")
        server.kill()
    with holdfast(folder) as server:
        equal(server.ask("FUNCTION", "LIST"), [])


if __name__ == "__main__":
    run_tests()
