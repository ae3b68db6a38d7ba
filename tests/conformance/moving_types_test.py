#!/usr/bin/env python3
"""Moves keys of all types and encodings between stock Redis and Holdfast by their dumps, there and back,
also through a crash and the journal. The values, their TTLs and their databases must stay the same.
HOLDFAST_SERVER and REDIS_SERVER name the servers. Prints each promise that is not kept and closes with
"N passed, N failed"."""
import subprocess
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
import servers  # noqa: F401  it sets the path, so it is first
from harness import REDIS, Server, equal, run_tests, test, until

TTL_MS = 600_000
MANY = 3000   # beyond each packed encoding
LARGE = 70_000  # bytes of an element that is larger than a page of a list
BINARY = bytes(range(256))
SCORES = ["-inf", "-1795227357951000", "-1.5", "-0", "0", "0.1", "1e-300", "2", "3.0000000000000004",
          "1795227357951", "1795227357951000", "9007199254740993", "1e+300", "+inf"]


def words(prefix, count):
    return [f"{prefix}:{number}" for number in range(count)]


def writes():
    """The commands that make a key of each type and encoding. The key is the second word."""
    yield "SET", "string:int", 1795227357951
    yield "SET", "string:short", "text"
    yield "SET", "string:long", "compressible " * 1000
    yield "SET", "string:binary", BINARY * 3
    yield "HSET", "hash:small", "a", 1, "b", BINARY, "", ""
    yield "HSET", "hash:many", *words("x", 2 * MANY)
    yield "HSET", "hash:large", "field", "v" * LARGE
    yield "RPUSH", "list:small", "a", "", BINARY, 1, -7, 1795227357951, "a"
    yield "RPUSH", "list:many", *words("element", MANY)
    yield "RPUSH", "list:large", "x" * LARGE, "small", BINARY * 300, *words("y", 5)
    yield "RPUSH", "list:numbers", *range(-300, 70_000, 97)
    yield "SADD", "set:int16", *range(-100, 100)
    yield "SADD", "set:int32", 1, -70_000, 70_000
    yield "SADD", "set:int64", 1, 1795227357951000, -(1 << 63), (1 << 63) - 1
    yield "SADD", "set:small", "a", "", BINARY, "12", "012"
    yield "SADD", "set:many", *words("member", MANY)
    yield "SADD", "set:many numbers", *range(MANY)
    yield "SADD", "set:large", "z" * LARGE, 1
    yield "ZADD", "zset:small", *sum(([score, f"m{n}"] for n, score in enumerate(SCORES)), [])
    yield "ZADD", "zset:equal", *sum(([7, word] for word in ("b", "a", "", BINARY, "ab")), [])
    yield "ZADD", "zset:many", *sum(([n * 0.25, f"member:{n}"] for n in range(MANY)), [])
    yield "ZADD", "zset:large", 1, "z" * LARGE, 2, "small"


# A change of each type after the move, and of large values, which the journal has as changes.
CHANGES = [("APPEND", "string:short", " and more"), ("INCR", "string:int"),
           ("HSET", "hash:many", "x:0", "new"), ("HDEL", "hash:small", ""),
           ("LPUSH", "list:many", "first"), ("RPOP", "list:many"), ("LSET", "list:large", 1, "other"),
           ("LREM", "list:small", 0, "a"), ("LTRIM", "list:numbers", 3, -4),
           ("SADD", "set:int16", "text"), ("SREM", "set:many", "member:7"), ("SADD", "set:int32", 1 << 40),
           ("ZADD", "zset:many", 17.5, "member:0", 3, "new"), ("ZREM", "zset:small", "m3"),
           ("ZINCRBY", "zset:large", "0.5", "small"), ("ZREMRANGEBYRANK", "zset:many", 10, 20),
           ("RPOPLPUSH", "list:many", "list:made"), ("SMOVE", "set:many", "set:made", "member:9"),
           ("ZUNIONSTORE", "zset:made", 2, "zset:small", "zset:large"), ("DEL", "zset:equal")]
KEYS = [command[1] for command in writes()]
READ = {"string": ["GET"], "hash": ["HGETALL"], "list": ["LRANGE", 0, -1], "set": ["SMEMBERS"],
        "zset": ["ZRANGE", 0, -1, "WITHSCORES"]}


def fill(server):
    for database in (0, 3):
        equal(server.ask("SELECT", database), "OK")
        for command in writes():
            equal((command[1], isinstance(server.ask(*command), RuntimeError)), (command[1], False))
        for key in KEYS[::3]:
            equal((key, server.ask("PEXPIRE", key, TTL_MS)), (key, 1))
    equal(server.ask("SELECT", 0), "OK")
    equal(server.ask("SET", "gone", "v", "PX", 1), "OK")
    equal(server.ask("ZADD", "gone zset", 1, "m"), 1)
    equal(server.ask("PEXPIRE", "gone zset", 1), 1)
    until(lambda: server.ask("EXISTS", "gone", "gone zset") == 0)


def value_of(server, key):
    """The type and the content of a key, independent of the order that its encoding has."""
    kind = server.ask("TYPE", key)
    if kind == "none":
        return kind, None
    command, *arguments = READ[kind]
    value = server.ask(command, key, *arguments)
    if kind == "set":
        return kind, sorted(value)
    if kind == "hash":
        return kind, sorted(zip(value[::2], value[1::2]))
    return kind, value


def content(server):
    """All values of both databases, by database and key, and which of them have a TTL."""
    values = {}
    for database in (0, 3):
        equal(server.ask("SELECT", database), "OK")
        for key in server.ask("KEYS", "*"):
            left = server.ask("PTTL", key)
            values[database, key] = *value_of(server, key), left if left < 0 else 0 < left <= TTL_MS
    equal(server.ask("SELECT", 0), "OK")
    return values


def alike(got, wanted):
    equal(sorted(got), sorted(wanted))
    for key, value in wanted.items():
        equal((key, got[key]), (key, value))


def change(server):
    for database in (0, 3):
        equal(server.ask("SELECT", database), "OK")
        for command in CHANGES:
            equal((command, isinstance(server.ask(*command), RuntimeError)), (command, False))
    equal(server.ask("SELECT", 0), "OK")


def dump_of(server, folder):
    equal(server.ask("SAVE"), "OK")
    if (folder / "dump.rdb").exists():
        return (folder / "dump.rdb").read_bytes()
    return subprocess.run(["zcat", folder / "dump.rdb.gz"], stdout=subprocess.PIPE, check=True).stdout


def folder_with(folder, dump=None):
    folder.mkdir(parents=True, exist_ok=True)
    if dump is not None:
        (folder / "dump.rdb").write_bytes(dump)
    return folder


def filled_redis(folder):
    """What stock Redis has, and its dump."""
    with Server(folder_with(folder), command=REDIS) as server:
        fill(server)
        return content(server), dump_of(server, folder)


@test
def from_redis_to_holdfast_and_back(folder):
    wanted, dump = filled_redis(folder / "theirs")
    with Server(folder_with(folder / "ours", dump)) as server:
        alike(content(server), wanted)
        back = dump_of(server, folder / "ours")
    with Server(folder_with(folder / "back", back), command=REDIS) as server:
        alike(content(server), wanted)
        again = dump_of(server, folder / "back")
    with Server(folder_with(folder / "again", again)) as server:
        alike(content(server), wanted)


@test
def from_holdfast_to_redis(folder):
    with Server(folder_with(folder / "ours")) as server:
        fill(server)
        wanted, dump = content(server), dump_of(server, folder / "ours")
    with Server(folder_with(folder / "theirs", dump), command=REDIS) as server:
        alike(content(server), wanted)


@test
def both_servers_change_a_loaded_dump_in_the_same_way(folder):
    _, dump = filled_redis(folder / "theirs")
    with Server(folder_with(folder / "redis", dump), command=REDIS) as server:
        change(server)
        wanted = content(server)
    with Server(folder_with(folder / "ours", dump), "--appendfsync", "always") as server:
        change(server)
        alike(content(server), wanted)
        server.kill()
    with Server(folder / "ours") as server:  # from the journal
        alike(content(server), wanted)
        back = dump_of(server, folder / "ours")
    with Server(folder_with(folder / "back", back), command=REDIS) as server:
        alike(content(server), wanted)


@test
def a_dumped_value_is_restored_by_the_other_server(folder):
    """DUMP of one server is RESTORE of the other; the payload has a version and a checksum."""
    with Server(folder_with(folder / "theirs"), command=REDIS) as theirs:
        with Server(folder_with(folder / "ours")) as ours:
            fill(theirs)
            for source, target in ((theirs, ours), (ours, theirs)):
                for key in KEYS:
                    payload = source.ask("DUMP", key)
                    target.ask("DEL", key)
                    equal((key, target.ask("RESTORE", key, TTL_MS, payload)), (key, "OK"))
                    equal((key, value_of(target, key)), (key, value_of(source, key)))
                    equal((key, 0 < target.ask("PTTL", key) <= TTL_MS), (key, True))


if __name__ == "__main__":
    sys.exit(run_tests())
