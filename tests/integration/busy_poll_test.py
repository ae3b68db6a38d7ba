#!/usr/bin/env python3
"""The option busy-poll of a real server: its values, its counters in INFO, and that an idle server uses no
CPU time. Closes with "N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import os
import sys
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from harness import Client, Server, equal, run_tests, test

PINGS = 2000


def counts(server):
    """By one INFO: each request may be a hit, and begin another spin."""
    lines = server.ask("INFO", "stats").decode().splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    return {name: int(fields["busy_poll_" + name]) for name in ("spins", "hits", "us")}


def ping(server):
    """Requests one after the other: what an automatic server may spin for."""
    for _ in range(PINGS):
        server.ask("PING")


def cpu_s(server):
    with open(f"/proc/{server.process.pid}/stat", encoding="ascii") as stat:
        user, system = stat.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@test
def auto_is_the_default_and_an_idle_server_uses_no_cpu_time(folder):
    with Server(folder) as server:
        equal(server.info("busy_poll_mode", "stats"), "auto")
        ping(server)
        before, cpu_before = counts(server), cpu_s(server)
        time.sleep(3)  # the time is the subject
        used, after = cpu_s(server) - cpu_before, counts(server)
        equal((used < 0.3, used), (True, used))  # a server that spins uses 3 s
        equal(after["spins"] - before["spins"] <= 2, True)
        equal(after["hits"] <= after["spins"], True)


@test
def many_busy_clients_get_no_spins(folder):
    with Server(folder) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(contextlib.closing(Client(server.path))) for _ in range(8)]

        def ping_each(times):
            for _ in range(times):
                for client in clients:
                    equal(client.ask("PING"), "PONG")
        ping_each(10)
        before = counts(server)["spins"]
        ping_each(PINGS // 8)
        equal(counts(server)["spins"], before)


@test
def a_number_spins_in_each_wait_and_no_spins_in_none(folder):
    with Server(folder, "--busy-poll", "1000000") as server:
        equal(server.info("busy_poll_mode", "stats"), "1000000")
        before = counts(server)
        ping(server)
        after = counts(server)
        equal(after["hits"] - before["hits"] >= PINGS, True)
        equal(after["us"] > before["us"], True)
        equal(server.ask("CONFIG", "SET", "busy-poll", "no"), "OK")
        stopped = counts(server)
        ping(server)
        equal(counts(server), stopped)


@test
def the_values_are_auto_no_and_numbers(folder):
    with Server(folder, "--busy-poll", "0") as server:
        for value in "auto", "no", "0", "100", "1000000":
            equal(server.ask("CONFIG", "SET", "busy-poll", value), "OK")
            equal(server.ask("CONFIG", "GET", "busy-poll"), [b"busy-poll", value.encode()])
            equal(server.info("busy_poll_mode", "stats"), value)
        for value in "yes", "", "-1", "1000001", "50us":
            equal(str(server.ask("CONFIG", "SET", "busy-poll", value)),
                  "ERR CONFIG SET failed (possibly related to argument 'busy-poll') - expected auto, no, "
                  "or a number from 0 to 1000000")
        equal(server.info("busy_poll_mode", "stats"), "1000000")


run_tests()
