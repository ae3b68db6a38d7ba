#!/usr/bin/env python3
"""What one more lock, holder, waiter, connection or value costs in memory, and what a change and a lock
cost on disk. Prints a table. Each line has a server of its own. Keys have 35 bytes, owners and values 40.
    capacity.py [--locks N] [--connections N]"""
import argparse
import contextlib
import pathlib
import resource
import sys
import tempfile

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from chain import Chain
from lines import TTL_MS
from observability import idle_connections
from servers import Server

from harness import Client, until  # servers.py has told where it is

BATCH = 1000
KEYS = 1000  # that are waited for
KEY, OWNER = "key-of-35-bytes-and-so-{:012d}", "owner-of-forty-bytes-and-so-{:012d}"
NOTE = "cron@db-1[4711] backup --full"
# What is measured, and the request that makes number n of it.
ITEMS = {
    "a lock": lambda n: ["LOCK", KEY.format(n), OWNER.format(n), TTL_MS],
    "a lock with a note of 29 bytes": lambda n: [*ITEMS["a lock"](n), "NOTE", NOTE],
    "a holder of a shared lock": lambda n: ["LOCK", "shared", OWNER.format(n), TTL_MS, "SHARED"],
    "a value (SET PX)": lambda n: ["SET", KEY.format(n), OWNER.format(n), "PX", TTL_MS],
}


def ask_all(client, requests):
    for reply in client.ask_all(requests):
        if isinstance(reply, RuntimeError):
            raise reply


def show(name, number, bytes_each):
    print(f"{name:32} {number:12,} {bytes_each:10,.0f}", flush=True)


def measure(name, request, number):
    """Prints the memory of each item of `number`."""
    with Server("Holdfast") as server, contextlib.closing(Client(server.socket)) as client:
        ask_all(client, [request(n) for n in range(number, number + BATCH)])  # buffers of the connection
        before = server.memory_kib()
        for begin in range(0, number, BATCH):
            ask_all(client, [request(n) for n in range(begin, begin + BATCH)])
        show(name, number, (server.memory_kib() - before) * 1024 / number)


def measure_waiters(number):
    """Waiters of KEYS locks, all on one connection."""
    with Server("Holdfast", "--max-waiters", str(number)) as server:
        before = server.memory_kib()
        with contextlib.closing(Chain(server.socket, KEYS, number // KEYS)):
            show("a waiter, beside its connection", number, (server.memory_kib() - before) * 1024 / number)


def measure_connections(number):
    with Server("Holdfast", "--maxclients", str(number + 1000)) as server, contextlib.ExitStack() as stack:
        before = server.memory_kib()
        for connection in idle_connections(server.socket, number):
            stack.callback(connection.close)
        with contextlib.closing(Client(server.socket)) as client:
            until(lambda: int(client.info("connected_clients", "clients")) > number)
        show("an idle connection", number, (server.memory_kib() - before) * 1024 / number)


def measure_disk(number):
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder, \
            Server("Holdfast", "--journal-max-size", "10gb", folder=folder) as server, \
            contextlib.closing(Client(server.socket)) as client:
        client.socket.settimeout(600)
        journals = pathlib.Path(folder).glob
        before = sum(path.stat().st_size for path in journals("journal.*"))
        for begin in range(0, number, BATCH):
            ask_all(client, [ITEMS["a lock"](n) for n in range(begin, begin + BATCH)])
        written = sum(path.stat().st_size for path in journals("journal.*")) - before
        show("a LOCK in the journal", number, written / number)
        client.ask("SAVE")
        snapshot = pathlib.Path(folder) / "dump.rdb.gz"
        show("a lock in the snapshot", number, snapshot.stat().st_size / number)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--locks", type=int, default=1_000_000)
    options.add_argument("--connections", type=int, default=10_000)
    chosen = options.parse_args()
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    print(f"{'':32} {'number':>12} {'bytes each':>10}")
    for name, request in ITEMS.items():
        measure(name, request, chosen.locks)
    measure_waiters(chosen.locks)
    measure_connections(chosen.connections)
    measure_disk(chosen.locks)


if __name__ == "__main__":
    main()
