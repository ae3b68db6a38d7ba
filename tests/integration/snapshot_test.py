#!/usr/bin/env python3
"""Snapshots in both directions between Holdfast and stock Redis. Redis and redis-check-rdb read the
snapshots of Holdfast, plain and through zcat. Holdfast reads the snapshots of Redis, or names the key or
byte that it cannot read. Prints each failed test; the last line is "N passed, N failed". HOLDFAST_SERVER
and REDIS_SERVER name the servers."""
import gzip
import random
import struct
import subprocess
import time

from harness import LIMIT_S, REDIS, TTL_MS, Server, equal, has, refusal, run_tests, test

SLACK_MS = LIMIT_S * 1000  # allowed time between a save and the query of the TTL

def holdfast(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder, *options)


def redis(folder, *options):
    folder.mkdir(parents=True, exist_ok=True)
    return Server(folder, *options, command=REDIS)


def texts():
    """Strings for each encoding in a snapshot: integers, texts that compress well and badly, binary data,
    and lengths around each step of the encoding of lengths."""
    rng = random.Random(4)
    found = {b"empty": b"", b"": b"of the empty key", b"\x00\r\n\xff key": bytes(range(256)),
             b"almost 1": b"007", b"almost 2": b"-0", b"almost 3": b"1.0", b"pack": b"holdfast " * 2000}
    for n in (0, 1, -1, 127, -128, 128, 32767, 32768, -32769, 2**31 - 1, -2**31, 2**31, 2**63 - 1, -2**63):
        found[b"int %d" % n] = b"%d" % n
    for n in (11, 12, 20, 21, 63, 64, 16383, 16384, 70000):
        found[b"raw %d" % n] = rng.randbytes(n)
        found[b"same %d" % n] = b"a" * n
    found[b"k" * 20000] = b"long key"
    return found


def hashes():
    rng = random.Random(5)
    return {b"h one": {b"f": b"v"},
            b"h small": {b"a": b"1", b"b": b"-70000", b"\x00\xff": b"\r\n", b"": b"", b"c": b"x" * 60},
            b"h integers": {b"%d" % n: b"%d" % -n for n in (1, 200, 5000, 10**6, 10**8, 10**15)},
            b"h wide": {b"f": b"v" * 5000, b"g": rng.randbytes(300)},
            b"h 2000": {b"field %d" % n: b"value %d" % (n * n) for n in range(2000)}}


def fill(server):
    """Creates strings, hashes and deadlines in database 0, and a few keys in other databases."""
    requests = [("SET", key, value) for key, value in texts().items()]
    for key, fields in hashes().items():
        requests.append(("HSET", key, *(text for pair in fields.items() for text in pair)))
    requests += [("SET", "with ttl", "v", "PX", TTL_MS), ("HSET", "h with ttl", "f", "v"),
                 ("PEXPIRE", "h with ttl", 2 * TTL_MS), ("SELECT", 3), ("SET", "only here", "3"),
                 ("SELECT", 15), ("SET", "only here", "fifteen", "PX", TTL_MS), ("SELECT", 0)]
    for request, reply in zip(requests, server.ask_all(requests)):
        if isinstance(reply, Exception):
            raise AssertionError(f"{request!r:.200}: {reply}")


def near(ttl, wanted):
    if not wanted - SLACK_MS <= ttl <= wanted:
        raise AssertionError(f"the TTL is {ttl} ms, wanted about {wanted} ms")


def compare(server, extra=0):
    """Checks that the server has the keys of fill(), and `extra` more keys in database 0."""
    strings, tables = texts(), hashes()
    equal(dict(zip(strings, server.ask_all([("GET", key) for key in strings]))), strings)
    equal(set(server.ask_all([("PTTL", key) for key in [*strings, *tables]])), {-1})
    for key, flat in zip(tables, server.ask_all([("HGETALL", key) for key in tables])):
        equal((key, len(flat), dict(zip(flat[::2], flat[1::2]))), (key, 2 * len(tables[key]), tables[key]))
    equal(server.ask("GET", "with ttl"), b"v")
    near(server.ask("PTTL", "with ttl"), TTL_MS)
    equal(server.ask("HGETALL", "h with ttl"), [b"f", b"v"])
    near(server.ask("PTTL", "h with ttl"), 2 * TTL_MS)
    equal(server.ask("DBSIZE"), len(strings) + len(tables) + 2 + extra)
    equal(server.ask_all([("SELECT", 3), ("GET", "only here"), ("PTTL", "only here"), ("DBSIZE",)]),
          ["OK", b"3", -1, 1])
    equal(server.ask_all([("SELECT", 15), ("GET", "only here"), ("DBSIZE",)]), ["OK", b"fifteen", 1])
    near(server.ask("PTTL", "only here"), TTL_MS)
    equal(server.ask("SELECT", 0), "OK")


def saved_by_holdfast(folder, compress, more=()):
    """The decompressed RDB file of a server after fill() and these requests."""
    with holdfast(folder, "--compress", compress) as server:
        fill(server)
        for request in more:
            if isinstance(reply := server.ask(*request), Exception):
                raise reply
        equal(server.ask("SAVE"), "OK")
    if compress == "no":
        equal((folder / "dump.rdb.gz").exists(), False)
        return (folder / "dump.rdb").read_bytes()
    equal((folder / "dump.rdb").exists(), False)
    return subprocess.run(["zcat", folder / "dump.rdb.gz"], stdout=subprocess.PIPE, check=True).stdout


def saved_by_redis(folder, *requests):
    with redis(folder) as server:
        fill(server)
        for request in requests:
            if isinstance(reply := server.ask(*request), Exception):
                raise reply
        equal(server.ask("SAVE"), "OK")
    return (folder / "dump.rdb").read_bytes()


def put(folder, name, data):
    """Makes a data folder with only this snapshot."""
    folder.mkdir(parents=True)
    (folder / name).write_bytes(data)
    return folder


@test
def stock_redis_loads_a_plain_snapshot(folder):
    rdb = saved_by_holdfast(folder / "ours", "no")
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as server:
        compare(server)


@test
def stock_redis_loads_a_compressed_snapshot_through_zcat(folder):
    rdb = saved_by_holdfast(folder / "ours", "yes")
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as server:
        compare(server)


@test
def redis_check_rdb_accepts_a_snapshot_with_locks_and_leases(folder):
    more = [("LOCK", "lock", "alice", TTL_MS), ("LOCK", "readers", "alice", TTL_MS, "SHARED"),
            ("LOCK", "readers", "bob", 0, "SHARED"), ("LOCK", "seats", "bob", TTL_MS, "LIMIT", 3),
            ("LEASE", "GRANT", "lease", TTL_MS, "seat a", "x", "seat b", "y"), ("UNLOCK", "lock", "alice")]
    keys = len(texts()) + len(hashes()) + 2 + 2 + 4
    for compress in ("yes", "no"):
        rdb = saved_by_holdfast(folder / compress, compress, more)
        path = folder / f"{compress}.rdb"
        path.write_bytes(rdb)
        done = subprocess.run(["redis-check-rdb", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False, timeout=LIMIT_S)
        equal(done.returncode, 0)
        has(done.stdout, "Checksum OK", "RDB looks OK!", f" {keys} keys read", " 0 already expired")


@test
def an_exclusive_lock_is_a_string_with_its_ttl_on_stock_redis(folder):
    more = [("LOCK", "lock", "alice", TTL_MS), ("LOCK", "for ever", "bob", 0),
            ("LEASE", "GRANT", "lease", TTL_MS, "seat a", "x", "seat b", "y")]
    rdb = saved_by_holdfast(folder / "ours", "yes", more)
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as server:
        compare(server, extra=4)
        equal(server.ask("MGET", "lock", "for ever", "seat a", "seat b"), [b"alice", b"bob", b"x", b"y"])
        near(server.ask("PTTL", "lock"), TTL_MS)
        near(server.ask("PTTL", "seat b"), TTL_MS)
        equal(server.ask("PTTL", "for ever"), -1)


@test
def a_shared_lock_is_a_hash_with_a_marker_and_its_owners_on_stock_redis(folder):
    more = [("LOCK", "readers", "alice", TTL_MS, "SHARED"), ("LOCK", "readers", "bob", 0, "SHARED")]
    rdb = saved_by_holdfast(folder / "ours", "yes", more)
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as server:
        compare(server, extra=1)
        equal(sorted(server.ask("HKEYS", "readers")), [b"holdfast:lock", b"o:alice", b"o:bob"])


@test
def a_snapshot_that_stock_redis_saved_again_still_has_its_locks(folder):
    more = [("LOCK", "lock", "alice", TTL_MS), ("LOCK", "readers", "alice", TTL_MS, "SHARED"),
            ("LOCK", "readers", "bob", 0, "SHARED")]
    rdb = saved_by_holdfast(folder / "ours", "yes", more)
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as server:
        equal(server.ask("SAVE"), "OK")
    again = (folder / "theirs" / "dump.rdb").read_bytes()
    with holdfast(put(folder / "again", "dump.rdb", again)) as server:
        compare(server, extra=2)
        equal(server.ask("LOCK", "lock", "bob", TTL_MS), None)
        equal(server.ask("LOCK", "readers", "carol", TTL_MS), None)
        equal(server.ask_all([("UNLOCK", "readers", "alice"), ("UNLOCK", "readers", "bob"),
                              ("EXISTS", "readers"), ("UNLOCK", "lock", "alice")]), [1, 1, 0, 1])


@test
def a_snapshot_of_stock_redis_is_loaded_plain_and_compressed(folder):
    rdb = saved_by_redis(folder / "theirs")
    for name, data in (("dump.rdb", rdb), ("dump.rdb.gz", gzip.compress(rdb))):
        with holdfast(put(folder / f"ours {name}", name, data)) as server:
            compare(server)
            equal(server.ask("LOCK", "only here", "alice", TTL_MS)[0], b"alice")
            equal(server.ask("LOCK", "int 1", "other", TTL_MS), None)
        with holdfast(folder / f"ours {name}") as server:  # a restart keeps the loaded keys
            compare(server, extra=1)


@test
def a_snapshot_of_stock_redis_without_compression_or_checksum_is_loaded(folder):
    for i, option in enumerate((("--rdbcompression", "no"), ("--rdbchecksum", "no"))):
        theirs = folder / f"theirs {i}"
        with redis(theirs, *option) as server:
            fill(server)
            equal(server.ask("SAVE"), "OK")
        rdb = (theirs / "dump.rdb").read_bytes()
        with holdfast(put(folder / f"ours {i}", "dump.rdb", rdb)) as server:
            compare(server)


@test
def keys_that_have_expired_are_not_loaded(folder):
    theirs = folder / "theirs"
    with redis(theirs) as server:
        server.ask_all([("SET", "short", "v"), ("SET", "long", "v"), ("DEBUG", "SET-ACTIVE-EXPIRE", "0")])
        server.ask("PEXPIREAT", "long", int(time.time() * 1000) + TTL_MS)
        equal(server.ask("PEXPIREAT", "short", int(time.time() * 1000) + 200), 1)
        equal(server.ask("SAVE"), "OK")
        while server.ask("EXISTS", "short"):  # until it expires
            pass
    rdb = (theirs / "dump.rdb").read_bytes()
    has(rdb, b"short")
    with holdfast(put(folder / "ours", "dump.rdb", rdb)) as server:
        equal(server.ask_all([("GET", "short"), ("EXISTS", "short"), ("GET", "long")]), [None, 0, b"v"])


@test
def streams_are_rejected_by_their_name(folder):
    rdb = saved_by_redis(folder / "theirs", ("XADD", "jobs 7", "*", "field", "value"))
    said = refusal(put(folder / "ours", "dump.rdb", rdb))
    has(said, "dump.rdb: at byte ", "the key 'jobs 7' is a stream", "--skip-unsupported-types yes")


COLLECTIONS = {
    "list": ("RPUSH", "a", -3, "x" * 70),
    "large list": ("RPUSH", *(f"e{i} {'y' * 90}" for i in range(5000))),
    "ints": ("SADD", *range(-100, 100)), "mixed": ("SADD", "a", "", b"\x00\xff", 7),
    "large set": ("SADD", *(f"m{i}" for i in range(5000))),
    "scores": ("ZADD", 1.5, "a", "-inf", "b", "inf", "c", 0, "", 1e300, b"\xff"),
    "large sorted set": ("ZADD", *(x for i in range(5000) for x in (i / 7, f"m{i}")))}


def collections_of(server):
    """Each collection with its encoding. The members of a set are sorted."""
    found = {}
    for key, (command, *_) in COLLECTIONS.items():
        asked = {"RPUSH": ("LRANGE", key, 0, -1), "SADD": ("SMEMBERS", key),
                 "ZADD": ("ZRANGE", key, 0, -1, "WITHSCORES")}
        reply = server.ask(*asked[command])
        found[key] = sorted(reply) if command == "SADD" else reply, server.ask("OBJECT", "ENCODING", key)
    return found


@test
def lists_sets_and_sorted_sets_move_from_stock_redis_and_back(folder):
    requests = [(command, key, *values) for key, (command, *values) in COLLECTIONS.items()]
    rdb = saved_by_redis(folder / "theirs", *requests)
    with redis(put(folder / "again", "dump.rdb", rdb)) as server:
        theirs = collections_of(server)
    with holdfast(put(folder / "ours", "dump.rdb", rdb), "--compress", "no") as server:
        equal(collections_of(server), theirs)
        compare(server, len(COLLECTIONS))
        equal(server.ask("SAVE"), "OK")
    with redis(put(folder / "back", "dump.rdb", (folder / "ours" / "dump.rdb").read_bytes())) as server:
        equal(collections_of(server), theirs)
        compare(server, len(COLLECTIONS))


def ziplist(*entries):
    """A ziplist of texts and numbers, each in its shortest encoding in old versions of Redis."""
    body, previous = b"", 0
    for entry in entries:
        head = bytes([previous]) if previous < 254 else b"\xfe" + previous.to_bytes(4, "little")
        if isinstance(entry, bytes):
            n = len(entry)
            kind = (bytes([n]) if n < 1 << 6 else (n | 1 << 14).to_bytes(2, "big") if n < 1 << 14
                    else b"\x80" + n.to_bytes(4, "big"))
            data = kind + entry
        elif 0 <= entry <= 12:
            data = bytes([0xF1 + entry])
        else:
            forms = ((0xFE, 1), (0xC0, 2), (0xF0, 3), (0xD0, 4), (0xE0, 8))
            form, size = next((form, size) for form, size in forms
                              if -1 << 8 * size - 1 <= entry < 1 << 8 * size - 1)
            data = bytes([form]) + entry.to_bytes(size, "little", signed=True)
        last = 10 + len(body)
        body += head + data
        previous = len(head + data)
    return struct.pack("<IIH", 10 + len(body) + 1, last, len(entries)) + body + b"\xff"


def zipmap(pairs, unused=0):
    def length(text):
        return bytes([len(text)]) if len(text) < 254 else b"\xfe" + len(text).to_bytes(4, "little")
    return bytes([len(pairs)]) + b"".join(
        length(name) + name + length(value) + bytes([unused]) + value + bytes(unused)
        for name, value in pairs.items()) + b"\xff"


def as_text(data):
    return b"\x80" + len(data).to_bytes(4, "big") + data


@test
def hashes_of_old_versions_of_redis_are_read_as_redis_reads_them(folder):
    bounds = [n for bits in (7, 15, 23, 31, 63) for n in ((1 << bits) - 1, -1 << bits)]
    bounds += [0, 12, 13, -1, 1 << 31]
    numbers = [x for i, n in enumerate(bounds) for x in (b"n%d" % i, n)]
    texts = [x for size in (0, 1, 63, 64, 253, 254, 16383, 16384) for x in (b"t%d" % size, b"x" * size)]
    maps = {b"short": b"v", b"": b"empty name", b"long": b"y" * 253, b"longer": b"z" * 254, b"z" * 300: b""}
    hashes = {b"numbers": (13, ziplist(*numbers)), b"texts": (13, ziplist(*texts)),
              b"map": (9, zipmap(maps)), b"map with gaps": (9, zipmap(maps, 4))}
    rdb = b"REDIS0006\xfe\x00"
    for key, (kind, data) in hashes.items():
        rdb += bytes([kind, len(key)]) + key + as_text(data)
    rdb += b"\xff" + bytes(8)
    with redis(put(folder / "theirs", "dump.rdb", rdb)) as theirs, \
            holdfast(put(folder / "ours", "dump.rdb", rdb)) as ours:
        equal(theirs.ask("DBSIZE"), len(hashes))
        for key in hashes:
            flat = theirs.ask("HGETALL", key)
            got = ours.ask("HGETALL", key)
            equal(dict(zip(got[::2], got[1::2])), dict(zip(flat[::2], flat[1::2])))
        equal(ours.ask("DBSIZE"), len(hashes))


@test
def a_snapshot_of_a_newer_version_is_rejected(folder):
    rdb = saved_by_redis(folder / "theirs")
    equal(rdb[:5], b"REDIS")
    newer = rdb[:5] + b"0099" + rdb[9:]
    for name, data in (("dump.rdb", newer), ("dump.rdb.gz", gzip.compress(newer))):
        has(refusal(put(folder / f"ours {name}", name, data)), name, "RDB version 99", "at byte 0", "newer")


@test
def a_damaged_snapshot_is_rejected_by_file_and_byte_and_stays_unchanged(folder):
    rdb = saved_by_holdfast(folder / "ours", "no")
    packed = gzip.compress(rdb)
    middle = len(rdb) // 2

    def flipped(data, at):
        return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]

    cases = {"flipped": ("dump.rdb", flipped(rdb, middle)), "cut": ("dump.rdb", rdb[:middle]),
             "without its end": ("dump.rdb", rdb[:-1]),
             "checksum": ("dump.rdb", flipped(rdb, len(rdb) - 1)),
             "more": ("dump.rdb", rdb + b"more"), "empty": ("dump.rdb", b""),
             "no snapshot": ("dump.rdb", b"PK\x03\x04 an archive, by mistake"),
             "packed, flipped": ("dump.rdb.gz", flipped(packed, len(packed) // 2)),
             "packed, cut": ("dump.rdb.gz", packed[:len(packed) // 2]),
             "packed, more": ("dump.rdb.gz", packed + b"more"),
             "packed, length": ("dump.rdb.gz", flipped(packed, len(packed) - 1)),
             "packed, flipped before": ("dump.rdb.gz", gzip.compress(flipped(rdb, middle)))}
    for case, (name, data) in cases.items():
        said = refusal(put(folder / case, name, data))
        try:
            has(said, str(folder / case / name), "byte ")
            equal((folder / case / name).read_bytes(), data)
        except AssertionError as why:
            raise AssertionError(f"{case}: {why}") from why


if __name__ == "__main__":
    run_tests()
