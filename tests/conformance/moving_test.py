#!/usr/bin/env python3
"""Moves locks between Holdfast and stock Redis with their holders alive: a snapshot of the one is loaded by
the other, and the holders go on there, by commands or by scripts. Prints each promise that is not kept and
closes with "N passed, N failed". HOLDFAST_SERVER and REDIS_SERVER name the servers."""
import subprocess
import sys
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
import servers  # noqa: F401  it sets the path, so it is first
from harness import REDIS, Server, edit_meta, equal, run_tests, test, until
from scripts import token_key
from servers import Scripted

TTL = 600_000
HOUR_US = 3600 * 1_000_000
EARLY = ("early", "early {tag}", "early {}")  # locks with tokens ahead of the clock
# Hashes that are almost what the scripts note of a lock.
NO_NOTES = {"table": ["of", "table", "last", "5"],
            "holdfast:token:{a}a": ["of", "b", "last", "5"],
            "holdfast:token:{b}b": ["of", "b", "last", "5", "more", "6"],
            "holdfast:token:{c}c": ["of", "c", "last", "x"],
            "holdfast:token:{d}d": ["of", "d"],
            "holdfast:token:{e}": ["last", "5"]}


FOR_EVER = (("for ever", "alice"), ("readers", "bob"), ("noted readers", "bob"))  # holds without a deadline


def saved(server, folder):
    """The snapshot of a server, as plain RDB."""
    equal(server.ask("SAVE"), "OK")
    if (folder / "dump.rdb").exists():
        return (folder / "dump.rdb").read_bytes()
    return subprocess.run(["zcat", folder / "dump.rdb.gz"], stdout=subprocess.PIPE, check=True).stdout


def put(folder, rdb):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dump.rdb").write_bytes(rdb)
    return folder


def lock(server, key, owner="alice", ttl=TTL, *more):
    reply = server.ask("LOCK", key, owner, ttl, *more)
    if not isinstance(reply, list) or reply[0] != owner.encode():
        raise AssertionError(f"LOCK {key} {owner}: {reply!r}")
    return reply[1]


def grown(new, old):
    if not new > old:
        raise AssertionError(f"the token went from {old} to {new}")


def notes(server, key):
    rows = server.ask("LOCKS", "INFO", key)[9]
    return {row[1]: row[23] for row in rows}


def holders(server, key):
    """owner: (token, ttl left, capacity) of a key's holders."""
    rows = server.ask("LOCKS", "INFO", key)[9]
    rows = [dict(zip(row[::2], row[1::2])) for row in rows]
    return {row[b"owner"]: (row[b"token"], row[b"ttl"], row[b"limit"]) for row in rows}


def ahead():
    """A token an hour ahead of the clock."""
    return int(time.time() * 1_000_000) + HOUR_US


def take_all(server):
    """Locks of each kind, with holders; the tokens, by key and owner."""
    named = (TTL, "TOKEN", ahead())
    tokens = {("mutex", "alice"): lock(server, "mutex"),
              ("for ever", "alice"): lock(server, "for ever", ttl=0),
              ("early", "alice"): lock(server, "early", "alice", *named),
              ("early {tag}", "alice"): lock(server, "early {tag}", "alice", *named),
              ("early {}", "alice"): lock(server, "early {}", "alice", *named),
              ("readers", "alice"): lock(server, "readers", "alice", TTL, "SHARED"),
              ("readers", "bob"): lock(server, "readers", "bob", 0, "SHARED"),
              ("noted", "alice"): lock(server, "noted", "alice", TTL, "NOTE", "why"),
              ("noted readers", "alice"): lock(server, "noted readers", "alice", TTL, "SHARED", "NOTE",
                                                "reads"),
              ("noted readers", "bob"): lock(server, "noted readers", "bob", 0, "SHARED"),
              ("seats", "alice"): lock(server, "seats", "alice", TTL, "LIMIT", 2),
              ("early seats", "alice"): lock(server, "early seats", "alice", *named, "LIMIT", 2),
              ("short", "alice"): lock(server, "short", "alice", TTL, "SHARED"),
              ("free", "alice"): lock(server, "free")}
    lock(server, "short", "bob", 30, "SHARED")
    equal(server.ask("UNLOCK", "free", "alice"), 1)
    equal(server.ask("SET", "library", "tom", "NX", "PX", TTL), "OK")
    for name, fields in NO_NOTES.items():
        equal(server.ask("HSET", name, *fields), len(fields) // 2)
    return tokens


def check_all(server, tokens, kept):
    """The holders are there and go on, nobody else comes in, and tokens grow. `kept` are the exclusive
    locks whose tokens are still known."""
    for name, fields in NO_NOTES.items():
        equal((name, server.ask("HGETALL", name)), (name, [text.encode() for text in fields]))
    for key in ("mutex", "for ever", "early", "readers", "library"):
        equal((key, server.ask("LOCK", key, "eve", TTL)), (key, None))
    equal(notes(server, "noted"), {b"alice": b"why"})
    equal(notes(server, "noted readers"), {b"alice": b"reads", b"bob": b""})
    for (key, owner), old in tokens.items():
        if key == "free":
            continue
        token, left, _ = holders(server, key)[owner.encode()]
        equal((key, left == -1), (key, (key, owner) in FOR_EVER))
        if key in kept or key in ("noted", "noted readers", "readers", "seats", "early seats", "short"):
            equal((key, owner, token), (key, owner, old))
        else:
            grown(token, old)
    equal(set(holders(server, "readers")), {b"alice", b"bob"})
    until(lambda: set(holders(server, "short")) == {b"alice"})
    equal([limit for _, _, limit in holders(server, "seats").values()], [2])
    for (key, owner), _ in tokens.items():
        if key != "free":
            equal((key, server.ask("RENEW", key, owner)), (key, 1))
            equal((key, server.ask("UNLOCK", key, owner)), (key, 1))
    for (key, _), old in tokens.items():
        grown(lock(server, key, "eve"), old)
    equal(server.ask("UNLOCK", "library", "tom"), 1)


@test
def from_holdfast_to_redis(folder):
    (folder / "ours").mkdir(parents=True)
    with Server(folder / "ours") as server:
        tokens = take_all(server)
        rdb = saved(server, folder / "ours")
    with Scripted(put(folder / "theirs", rdb)) as server:
        check_all(server, tokens, kept=EARLY)


@test
def from_redis_to_holdfast(folder):
    with Scripted(folder / "theirs") as server:
        tokens = take_all(server)
        rdb = saved(server, folder / "theirs")
    with Server(put(folder / "ours", rdb)) as server:
        equal(server.ask("EXISTS", token_key(b"mutex"), token_key(b"free")), 0)
        check_all(server, tokens, kept=("mutex", "for ever", *EARLY))


@test
def from_redis_to_holdfast_that_is_killed_and_started_again(folder):
    with Scripted(folder / "theirs") as server:
        tokens = take_all(server)
        rdb = saved(server, folder / "theirs")
    with Server(put(folder / "ours", rdb)) as server:
        lock(server, "another")
        server.kill()
    with Server(folder / "ours") as server:
        lock(server, "one more")
        equal(server.ask("SAVE"), "OK")
    with Server(folder / "ours") as server:
        check_all(server, tokens, kept=("mutex", "for ever", *EARLY))


@test
def there_and_back(folder):
    (folder / "ours").mkdir(parents=True)
    with Server(folder / "ours") as server:
        tokens = take_all(server)
        rdb = saved(server, folder / "ours")
    with Scripted(put(folder / "theirs", rdb)) as server:
        equal(server.ask("RENEW", "mutex", "alice"), 1)
        equal(server.ask("UNLOCK", "early", "alice"), 1)
        old, tokens["early", "alice"] = tokens["early", "alice"], lock(server, "early")
        grown(tokens["early", "alice"], old)
        again = saved(server, folder / "theirs")
    with Server(put(folder / "again", again)) as server:
        check_all(server, tokens, kept=EARLY)


@test
def a_folder_of_old_has_no_tokens_of_old(folder):
    """What Redis has noted of a lock is forgotten a day after; its clock was ahead of the folder's."""
    (folder / "ours").mkdir(parents=True)
    with Server(folder / "ours") as server:
        lock(server, "mutex")
    for path in (folder / "ours").glob("journal.*"):
        path.unlink()
    edit_meta(folder / "ours", "^journal-sequence .*$", "journal-sequence 0")  # as of an older version
    with Scripted(folder / "theirs") as server:
        old = lock(server, "mutex")
        equal((server.ask("UNLOCK", "mutex", "alice"), server.ask("DEL", token_key(b"mutex"))), (1, 1))
        equal(server.ask("SET", "library", "tom", "NX", "PX", TTL), "OK")
        rdb = saved(server, folder / "theirs")
    for path in (folder / "ours").glob("dump.*"):
        path.unlink()
    with Server(put(folder / "ours", rdb)) as server:
        grown(lock(server, "mutex"), old)


@test
def a_hash_of_holdfast_that_looks_like_a_note_of_the_scripts_stays_a_hash(folder):
    (folder / "ours").mkdir(parents=True)
    name = token_key(b"mutex")
    with Server(folder / "ours") as server:
        lock(server, "mutex")
        equal(server.ask("HSET", name, "of", "mutex", "last", "5"), 2)
        equal(server.ask("SAVE"), "OK")
    for path in [*(folder / "ours").glob("journal.*"), folder / "ours" / "meta"]:
        path.unlink()  # the snapshot alone, as a copy
    with Server(folder / "ours") as server:
        equal(server.ask("HGETALL", name), [b"of", b"mutex", b"last", b"5"])


@test
def the_values_of_a_lease_move_and_expire(folder):
    with Scripted(folder / "theirs") as server:
        equal(server.ask("LEASE", "GRANT", "l", TTL, "{s}a", "x", "{s}b", "y")[0], b"l")
        rdb = saved(server, folder / "theirs")
    with Server(put(folder / "ours", rdb)) as server:
        equal(server.ask("MGET", "{s}a", "{s}b"), [b"x", b"y"])
        equal([0 < server.ask("PTTL", key) <= TTL for key in ("{s}a", "{s}b")], [True, True])
        equal(str(server.ask("LEASE", "CONFIRM", "l")), "NOLEASE no such lease")
        equal(server.ask("RENEW", "{s}a", "x"), 1)


if __name__ == "__main__":
    sys.exit(run_tests())
