#!/usr/bin/env python3
"""Tokens that a client has moved ahead of the clock. The tokens of other keys do not move, even after
restarts, and a quorum agrees even if one server is ahead. The last line is "N passed, N failed".
HOLDFAST_SERVER names the server."""
import sys
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import Client, Server, equal, has, run_tests, test

HOUR_US = 3600 * 10**6
DAY_US = 24 * HOUR_US
LEAD_US = DAY_US  # the default of --max-token-lead


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
    """Acquires a lock and releases it at once. Returns its token, or the error."""
    reply = client.ask("LOCK", key, owner, 60_000, *more)
    if isinstance(reply, RuntimeError):
        return reply
    equal(client.ask("UNLOCK", key, owner), 1)
    return reply[1]


def push_ahead(server, key, times=5):
    """Moves a key's token as far ahead as a limited user can, and returns the token."""
    worker, furthest = as_worker(server), clock_us()
    for n in range(times):
        reply = granted(worker, key, f"o{n}", "TOKEN", furthest + LEAD_US - 10**6)
        if isinstance(reply, int):
            furthest = reply
    worker.close()
    return furthest


@test
def repeated_requests_do_not_increase_the_lead_over_the_clock(folder):
    with Server(folder) as server:
        before = clock_us()
        equal(push_ahead(server, "mine:1") - before < LEAD_US + HOUR_US, True)


@test
def tokens_ahead_on_one_key_do_not_move_other_keys_even_after_restarts(folder):
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
def tokens_ahead_do_not_go_back_if_only_a_snapshot_is_left(folder):
    with Server(folder) as server:
        furthest = push_ahead(server, "mine:1")
        equal(server.ask("SAVE"), "OK")
    for path in folder.iterdir():
        if not path.name.startswith("dump"):
            path.unlink()
    with Server(folder, "--recovery-wait", "0") as server:  # a server without meta waits
        equal(server.lock("mine:1") > furthest, True)
        equal(server.lock("other") < clock_us() + HOUR_US, True)


@test
def one_client_can_move_at_most_256_keys_ahead(folder):
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
def a_quorum_agrees_if_one_server_is_ahead_and_another_is_down(folder):
    folder.mkdir()
    with Server(folder / "ahead") as ahead, Server(folder / "behind") as behind:
        worker = as_worker(ahead)
        # A restart after a crash, or clocks that differ, can cause such a token.
        token = granted(worker, "mine:1", "o", "TOKEN", clock_us() + LEAD_US - 10**6) + 1
        equal(worker.ask("LOCK", "mine:1", "p", 60_000), [b"p", token])
        other = as_worker(behind)
        equal(other.ask("LOCK", "mine:1", "p", 60_000)[1] < token, True)
        equal(other.ask("FENCE", "mine:1", "p", token), token)
        worker.close()
        other.close()


@test
def a_client_with_the_permission_can_raise_tokens_beyond_the_lead(folder):
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
def a_lease_moves_its_keys_ahead_unless_there_are_too_many(folder):
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
