#!/usr/bin/env python3
"""Tokens that a client has moved ahead of the clock: the keys of others stay where they were, also after
restarts, and a quorum agrees where one server is ahead. Closes with "N passed, N failed". HOLDFAST_SERVER
names the server."""
import sys
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from harness import Client, Server, equal, has, run_tests, test

HOUR_US = 3600 * 10**6
DAY_US = 24 * HOUR_US
LEAD_US = DAY_US  # --max-token-lead


def clock_us():
    return time.time_ns() // 1000


def as_worker(server):
    """A connection of a user with the rights of the example in docs/security.md, to keys of its own."""
    rules = ("on", "nopass", "~mine:*", "+@lock", "+@connection", "-@dangerous")
    equal(server.ask("ACL", "SETUSER", "worker", *rules), "OK")
    worker = Client(server.path)
    equal(worker.ask("AUTH", "worker", "x"), "OK")
    return worker


def granted(client, key, owner, *more):
    """The token of a grant that is released at once; or the error."""
    reply = client.ask("LOCK", key, owner, 60_000, *more)
    if isinstance(reply, RuntimeError):
        return reply
    equal(client.ask("UNLOCK", key, owner), 1)
    return reply[1]


def push_ahead(server, key, times=5):
    """The furthest token that a limited user gets for a key."""
    worker, furthest = as_worker(server), clock_us()
    for n in range(times):
        reply = granted(worker, key, f"o{n}", "TOKEN", furthest + LEAD_US - 10**6)
        if isinstance(reply, int):
            furthest = reply
    worker.close()
    return furthest


@test
def the_lead_is_counted_from_the_clock_however_often_a_client_asks_for_more(folder):
    with Server(folder) as server:
        before = clock_us()
        equal(push_ahead(server, "mine:1") - before < LEAD_US + HOUR_US, True)


@test
def other_keys_keep_their_tokens_when_a_client_moves_those_of_its_own_also_after_restarts(folder):
    with Server(folder) as server:
        furthest = push_ahead(server, "mine:1")
        equal(granted(server, "other", "o") < clock_us() + HOUR_US, True)
    for killed in (True, False, True):
        with Server(folder) as server:
            equal(granted(server, "other", "o") < clock_us() + HOUR_US, True)
            token = granted(server, "mine:1", "o")
            equal(token > furthest, True)
            furthest = token
            if killed:
                server.kill()


@test
def tokens_ahead_do_not_go_back_where_a_snapshot_is_all_that_is_left(folder):
    with Server(folder) as server:
        furthest = push_ahead(server, "mine:1")
        equal(server.ask("SAVE"), "OK")
    for path in folder.iterdir():
        if not path.name.startswith("dump"):
            path.unlink()
    with Server(folder) as server:
        equal(server.lock("mine:1") > furthest, True)
        equal(server.lock("other") < clock_us() + HOUR_US, True)


@test
def one_client_can_move_few_keys_ahead_and_is_refused_then(folder):
    with Server(folder) as server:
        worker = as_worker(server)
        hint = clock_us() + LEAD_US // 2
        replies = [granted(worker, f"mine:{n}", "o", "TOKEN", hint) for n in range(300)]
        equal(sum(reply == hint for reply in replies), 256)
        has(replies[-1], "too many keys have tokens ahead of the clock")
        equal(granted(worker, "mine:300", "o") < clock_us() + HOUR_US, True)
        equal(server.lock("other") < clock_us() + HOUR_US, True)
        worker.close()


@test
def a_quorum_agrees_where_one_server_is_ahead_and_another_is_away(folder):
    folder.mkdir()
    with Server(folder / "ahead") as ahead, Server(folder / "behind") as behind:
        worker = as_worker(ahead)
        # What a restart after a crash and clocks that differ may come to.
        token = granted(worker, "mine:1", "o", "TOKEN", clock_us() + LEAD_US - 10**6) + 1
        equal(worker.ask("LOCK", "mine:1", "p", 60_000), [b"p", token])
        other = as_worker(behind)
        equal(other.ask("LOCK", "mine:1", "p", 60_000)[1] < token, True)
        equal(other.ask("FENCE", "mine:1", "p", token), token)
        worker.close()
        other.close()


@test
def a_server_that_is_further_ahead_than_the_lead_is_followed_with_the_right_to_it(folder):
    far = clock_us() + 30 * DAY_US
    with Server(folder) as server:
        worker = as_worker(server)
        server.lock("mine:1", "p")
        has(worker.ask("FENCE", "mine:1", "p", far), "max-token-lead")
        has(worker.ask("LOCKS", "RAISE", "mine:1", far), "NOPERM")
        equal(server.ask("FENCE", "mine:1", "p", far), far)
        has(server.ask("LOCK", "mine:2", "p", 60_000, "TOKEN", far), "max-token-lead")
        equal(server.ask("LOCKS", "RAISE", "mine:2", far), far)
        equal(server.lock("mine:2"), far + 1)
        equal(granted(server, "other", "o") < clock_us() + HOUR_US, True)
        worker.close()
        server.kill()
    with Server(folder) as server:
        equal(server.ask("LOCKS", "RAISE", "mine:1", 0) >= far, True)
        equal(granted(server, "other", "o") < clock_us() + HOUR_US, True)


@test
def a_lease_follows_a_key_that_is_ahead_unless_too_many_keys_would(folder):
    with Server(folder) as server:
        furthest = push_ahead(server, "mine:1")
        worker = as_worker(server)
        pairs = [word for n in range(300) for word in (f"mine:{n}", "v")]
        refused = worker.ask("LEASE", "GRANT", "id", 60_000, *pairs)
        has(refused, "too many keys have tokens ahead of the clock")
        equal(server.ask("EXISTS", "mine:2"), 0)
        equal(worker.ask("LEASE", "GRANT", "id", 60_000, *pairs[:20])[1] > furthest, True)
        equal(server.lock("other") < clock_us() + HOUR_US, True)
        worker.close()


run_tests()
