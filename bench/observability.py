#!/usr/bin/env python3
"""What watching costs: a scrape of /metrics by a full server beside an empty one, and the memory of the
ring of events that LOCKS HISTORY shows. Prints two tables. Exits with status 1 if a scrape of the full
server takes more of the loop than its budget, or if the ring's memory grows after it is full.
    observability.py [--locks N] [--waiters N] [--connections N] [--events N]..."""
import argparse
import contextlib
import os
import re
import resource
import socket
import statistics
import sys
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from chain import Chain
from lines import TTL_MS
from scale import cpu_s
from servers import Server

from harness import Client, free_port, until  # servers.py has told where it is
from http_rig import Http

SCRAPES = 20
LOOP_BUDGET_MS = 2
RING = 10_000
GROWTH_KIB = 4096  # noise of the allocator and of the load's connections
CONTENDED_KEYS = 1000
COLUMNS = "{:<8} {:>10} {:>8} {:>12} {:>9} {:>17} {:>17} {:>17}"


def idle_connections(path, number):
    made = []
    for _ in range(number):
        made.append(socket.socket(socket.AF_UNIX))
        until(lambda: made[-1].connect_ex(path) == 0)  # the listener's queue may be full
    return made


def metric(text, name):
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])


def turns(text):
    """Seconds of work and number of the loop's turns before the scrape."""
    name = "holdfast_loop_turn_seconds"
    return metric(text, f"{name}_sum"), metric(text, f"{name}_count")


class Scrapes:
    """SCRAPES scrapes, one after the other on one connection. The turn that serves a scrape is not in its
    own reply, but in the next one. The first reply is of a scrape that does not count; its turn counts, as
    the first of a connection. Other turns between two replies are added."""

    def __init__(self, server, port):
        self.client_ms, self.loop_ms, self.cpu_ms = [], [], []
        with Http(port) as http:
            last = turns(http.get("/metrics").body.decode())
            for _ in range(SCRAPES):
                cpu, began = cpu_s(server.process.pid), time.monotonic()
                self.text = http.get("/metrics").body.decode()
                self.client_ms.append((time.monotonic() - began) * 1000)
                self.cpu_ms.append((cpu_s(server.process.pid) - cpu) * 1000)
                now = turns(self.text)
                if now[1] - last[1] < 1:
                    raise RuntimeError("the turn of a scrape was not counted")
                self.loop_ms.append((now[0] - last[0]) * 1000)
                last = now


def times(values):
    return f"{statistics.median(values):.2f} ({max(values):.2f})"


def scrape(name, chosen):
    """Prints a line of the table, and returns the median time of the loop in ms."""
    full = name == "full"
    port = free_port()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server("Holdfast", "--maxclients", str(chosen.connections + 1000),
                                            "--http-port", str(port)))
        if full:
            server.load("closed", (f"LOCK {{key}} {{owner}} {TTL_MS}", "*2"), requests=chosen.locks,
                        first_key=CONTENDED_KEYS, pipeline=100, in_order=True)
            keys = min(CONTENDED_KEYS, chosen.waiters)
            stack.callback(Chain(server.socket, keys, chosen.waiters // keys).close)
            for connection in idle_connections(server.socket, chosen.connections):
                stack.callback(connection.close)
        found = Scrapes(server, port)
        there = [metric(found.text, name_of) for name_of in
                 ('holdfast_locks{mode="exclusive"}', "holdfast_waiters", "holdfast_connected_clients")]
        if full and (there[0] < chosen.locks or there[1] < chosen.waiters // keys * keys
                     or there[2] < chosen.connections):
            raise RuntimeError(f"locks, waiters or connections are missing: {there}")
    print(COLUMNS.format(name, *(f"{n:,.0f}" for n in there), f"{len(found.text):,}",
                         times(found.client_ms), times(found.loop_ms), times(found.cpu_ms)), flush=True)
    return statistics.median(found.loop_ms)


def history(chosen):
    """Prints the memory after each number of events, and returns its growth after the first in KiB."""
    pair = [("LOCK {key} {owner} 30000 NOTE why-this-owner-wants-it", "*2"), ("UNLOCK {key} {owner}", ":1")]
    with Server("Holdfast", "--history-max", str(RING)) as server:
        client, grown = Client(server.socket), []
        print(f"\nevents through a ring of {RING:,}")
        print(f"{'events':>12} {'kept':>8} {'used KiB':>10} {'RSS KiB':>10}")
        for events in [0, *chosen.events]:
            before = int(client.info("lock_events", "locks"))
            if events > before:
                server.load("closed", *pair, requests=events - before, pipeline=64, keys=100_000)
            number = int(client.info("lock_events", "locks"))
            if number < events:
                raise RuntimeError(f"{number} events instead of {events}")
            kept = len(client.ask("LOCKS", "HISTORY", "COUNT", RING * 2)) if number else 0
            grown.append(server.memory_kib())
            print(f"{number:12,} {kept:8,} {int(client.info('used_memory', 'memory')) // 1024:10,} "
                  f"{grown[-1]:10,}", flush=True)
        client.close()
    return grown[-1] - grown[1]


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--locks", type=int, default=5_000_000)
    options.add_argument("--waiters", type=int, default=100_000)
    options.add_argument("--connections", type=int, default=10_000)
    options.add_argument("--events", type=int, nargs="+", default=[1_000_000, 10_000_000])
    chosen = options.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))  # the server checks that they suffice
    print(f"{SCRAPES} scrapes of /metrics: median (longest) in ms")
    print(COLUMNS.format("server", "locks", "waiters", "connections", "bytes", "client", "loop", "CPU"))
    scrape("empty", chosen)
    loop_ms = scrape("full", chosen)
    grown_kib = history(chosen)
    print(f"\nloop: {loop_ms:.2f} ms of a budget of {LOOP_BUDGET_MS} ms; the ring grew by {grown_kib} KiB "
          f"after the first {chosen.events[0]:,} events")
    sys.exit(loop_ms > LOOP_BUDGET_MS or grown_kib > GROWTH_KIB)


if __name__ == "__main__":
    main()
