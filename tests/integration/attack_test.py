#!/usr/bin/env python3
"""The server under attack. While one client attacks (attacks.py), another client acquires and releases
locks as usual, and memory stays within its limits. Afterwards no connection of the attacker is left. The
test does not limit the latency of other clients: bench/under_attack.py measures it. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import os
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from attacks import ATTACKS, BOMBS, HTTP_ATTACKS, under
from harness import Client, Server, equal, free_port, has, peak_mib, run_tests, test, until

SECONDS = 1.5
LIMITS = ("--client-output-buffer-limit", "8mb", "--client-output-buffer-limit-pubsub", "8mb",
          "--client-query-buffer-limit", "8mb", "--script-memory-limit", "32mb", "--maxmemory", "128mb",
          "--appendonly", "no")
# At most the limits above, a read buffer for each of 2,000 clients, and the overhead of a sanitizer.
MOST_MIB = 640


def serves(client, number):
    """One round of the bystander: acquires the lock, releases it, and returns its token."""
    owner, token = client.ask("LOCK", "bystander", f"owner {number}", 10_000)
    equal(owner, b"owner %d" % number)
    equal(client.ask("UNLOCK", "bystander", f"owner {number}"), 1)
    return token


def withstands(attack):
    def withstands_it(folder):
        os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=1:" + os.environ.get("ASAN_OPTIONS", "")
        port = ("--http-port", str(free_port()))
        with contextlib.closing(Server(folder, *LIMITS, *port)) as server, server:
            bystander = Client(server.path)
            last = rounds = 0
            with under(attack, server.path):
                end = time.monotonic() + SECONDS
                while time.monotonic() < end or rounds < 10:
                    token = serves(bystander, rounds)
                    equal(token > last, True)
                    last, rounds = token, rounds + 1
            until(lambda: int(server.info("connected_clients", "clients")) == 2)
            print(f"{attack.__name__}: {rounds} rounds of the bystander, peak {peak_mib(server)} MiB")
            equal(peak_mib(server) < MOST_MIB, True)
            bystander.close()
    withstands_it.__name__ = attack.__name__
    return test(withstands_it)


for each in ATTACKS + HTTP_ATTACKS:
    withstands(each)


@test
def a_script_bomb_ends_with_an_error_or_a_small_reply(folder):
    with Server(folder, *LIMITS) as server:
        for bomb in BOMBS:
            reply = server.ask("EVAL", bomb, 0)
            equal(isinstance(reply, RuntimeError) or len(repr(reply)) < 200, True)
        equal(server.ask("PING"), "PONG")


@test
def an_endless_script_is_killed_at_its_limit_and_other_clients_get_busy(folder):
    with Server(folder, *LIMITS, "--busy-reply-threshold", "20", "--script-timeout", "1000") as server:
        other = Client(server.path)
        server.send(["EVAL", "while true do pcall(function() while true do end end) end", 0])
        has(until(lambda: if_instance(other.ask("PING"), RuntimeError)), "BUSY")
        has(server.reply(), "ERR")
        equal(other.ask("PING"), "PONG")
        other.close()


@test
def long_scripts_and_large_replies_are_not_deferred_beside_another_client(folder):
    with Server(folder, *LIMITS) as server:
        server.ask("SET", "large", "x" * 1_000_000)
        heavy = Client(server.path)
        for number in range(30):
            server.ask("PING")
            equal(heavy.ask("EVAL", "local t = {} for i = 1, 2e4 do t[i] = {i} end return #t", 0), 20_000)
            equal(len(heavy.ask("GET", "large")), 1_000_000)
            equal(server.info("blocked_clients", "clients"), "0")
        heavy.close()


@test
def a_removed_option_is_rejected_by_its_name(folder):
    with Server(folder, *LIMITS) as server:
        has(server.ask("CONFIG", "SET", "heavy-request-pause", 0), "heavy-request-pause")
        equal(server.ask("CONFIG", "GET", "heavy*"), [])


def many_names(count):
    """Requests that the server runs in slices. An ECHO of its number follows each."""
    names = [f"name {n} {'x' * 50}" for n in range(1000)]
    return [request for n in range(count) for request in (["WATCH", *names], ["UNWATCH"], ["ECHO", n])]


def check_many_names(client, count):
    for n in range(count):
        equal([client.reply() for _ in range(3)], ["OK", "OK", b"%d" % n])


@test
def requests_in_slices_are_read_at_most_64_kib_ahead_and_answered_in_order(folder):
    limits = ("--client-query-buffer-limit", "1mb", "--client-output-buffer-limit", "1mb")
    with Server(folder, *limits) as server, contextlib.closing(Client(server.path)) as slow:
        sender = threading.Thread(target=slow.send, args=many_names(50))  # 3 MB
        sender.start()
        check_many_names(slow, 50)
        sender.join()


@test
def a_client_that_has_shut_down_sending_gets_all_replies_to_requests_in_slices(folder):
    with Server(folder, *LIMITS) as server, contextlib.closing(Client(server.path)) as slow:
        slow.send(*many_names(20))
        slow.socket.shutdown(socket.SHUT_WR)
        check_many_names(slow, 20)
        equal(slow.replies.read(), b"")
        until(lambda: server.info("connected_clients", "clients") == "1")


def if_instance(reply, kind):
    return reply if isinstance(reply, kind) else None


@test
def a_costly_pattern_is_rejected_by_keys_and_paged_by_scan(folder):
    text, pattern = "a" * 30_000, "*" + "a?" * 7_500 + "b"
    with Server(folder, *LIMITS) as server:
        for n in range(30):
            server.ask("SET", f"{text}{n}", "x")
        server.ask("SET", f"{text}b", "x")
        has(server.ask("KEYS", pattern), "ERR the pattern is too costly for KEYS; use SCAN")
        equal(sorted(server.ask("KEYS", "*9")), [f"{text}{n}".encode() for n in (19, 29, 9)])
        pages, cursor = 0, b"0"
        while pages == 0 or cursor != b"0":
            cursor, _ = server.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            pages += 1
        equal(pages > 1, True)


@test
def costly_patterns_and_names_do_not_affect_usual_patterns(folder):
    name = "news:" + "a" * 32_000
    with Server(folder, *LIMITS) as server:
        costly, usual = Client(server.path), Client(server.path)
        with contextlib.closing(costly), contextlib.closing(usual):
            costly.ask_all([["PSUBSCRIBE", f"*{n}?{'a' * 1000}*b*"] for n in range(900)])
            usual.ask_all([["PSUBSCRIBE", pattern] for pattern in ("news:*", "*", "*aab", "n?ws:a*[b]")])
            equal(server.ask("PUBLISH", name, "x"), 2)
            # `n?ws:a*[b]` does not match here: its class would take a step for each byte.
            equal(server.ask("PUBLISH", name + "b", "x"), 3)
            equal(server.ask("PUBLISH", "news:aab", "x"), 4)


@test
def a_costly_pattern_is_rejected_by_pubsub_channels(folder):
    with Server(folder, *LIMITS) as server:
        with contextlib.closing(Client(server.path)) as subscriber:
            subscriber.ask_all([["SUBSCRIBE", f"{n}{'a' * 30_000}"] for n in range(30)])
            has(server.ask("PUBSUB", "CHANNELS", f"*{'a?' * 8000}b"), "ERR the pattern is too costly")
            equal(len(server.ask("PUBSUB", "CHANNELS", "*a")), 30)


@test
def the_order_of_keys_in_the_hash_tables_differs_between_servers(folder):
    orders = []
    for number in range(2):
        with Server(f"{folder}{number}", *LIMITS) as server:
            server.ask_all([["SET", n, "x"] for n in range(100)])
            orders.append(server.ask("SCAN", 0, "COUNT", 1000)[1])
    equal(sorted(orders[0]), sorted(orders[1]))
    equal(orders[0] != orders[1], True)


if __name__ == "__main__":
    run_tests()
