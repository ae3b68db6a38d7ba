#!/usr/bin/env python3
"""A long run of mixed work on one server: locks of every kind, waits, leases, scripts, messages,
transactions, hashes, expiry, snapshots, clients that connect, disconnect and vanish. At the end of each
round all work stops in order, and the test takes a sample: memory, descriptors, clients, entries, and the
latency of requests in the round. None of these values may grow.
    soak.py [--seconds N] [--valgrind memcheck|massif]
The last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import argparse
import collections
import contextlib
import multiprocessing
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import Client, Server, end_with_parent, until  # noqa: E402

WORKERS = 6
ROUNDS = 20          # one sample each
NAMES = 200          # keys that the workers share
OPTIONS = ("--appendfsync", "everysec", "--autosave", "5000", "--journal-max-size", "16mb",
           "--max-ended-leases", "100")
Sample = collections.namedtuple("Sample", "requests rss_kib used descriptors p50_us p99_us")


class Worker:
    """Random work with one client at a time. Errors that the work can cause are expected."""

    def __init__(self, path, seed):
        self.path, self.random, self.requests = path, random.Random(seed), 0
        self.times = []
        self.owner = f"worker {seed}"
        self.client = Client(path)

    def ask(self, *words):
        self.requests += 1
        began = time.perf_counter()
        try:
            reply = self.client.ask(*words)
        except OSError as failure:
            raise AssertionError(f"{words!r:.200}: {failure!r}") from failure
        self.times.append(time.perf_counter() - began)
        if isinstance(reply, RuntimeError) and not str(reply).startswith(FINE):
            raise AssertionError(f"{words!r:.200}: {reply}")
        return reply

    def key(self, kind):
        return f"{kind}:{self.random.randrange(NAMES)}"

    def reconnect(self):
        self.client.close()
        self.client = Client(self.path)

    def work_until(self, end):
        kinds = [getattr(self, name) for name in dir(Worker) if name.startswith("do_")]
        while time.monotonic() < end:
            self.random.choice(kinds)()
        self.ask("UNWATCH")

    def do_lock(self):
        key, mode = self.key("lock"), self.random.choice([[], ["SHARED"], ["LIMIT", 3], ["SESSION"]])
        if self.ask("LOCK", key, self.owner, self.random.choice([20, 1000]), *mode):
            self.ask("RENEW", key, self.owner, 1000)
            self.ask("LOCKS", "INFO", key)
            self.ask("UNLOCK", key, self.owner)

    def do_wait(self):
        key = self.key("wait")
        if self.ask("LOCK", key, self.owner, 50, "WAIT", self.random.choice([1, 5, 20])):
            self.ask("UNLOCK", key, self.owner)

    def do_vanish_while_waiting(self):
        self.client.send(["LOCK", self.key("wait"), self.owner, 50, "WAIT", 0])
        self.reconnect()

    def do_vanish_with_unread_replies(self):
        self.client.send(*[["GET", self.key("text")]] * 50, ["LOCK", self.key("lock"), self.owner, 20])
        self.reconnect()

    def do_classic_lock(self):
        key = self.key("classic")
        if self.ask("SET", key, self.owner, "NX", "PX", self.random.choice([10, 200])):
            self.ask("EVAL", UNLOCK_SCRIPT, 1, key, self.owner)

    def do_texts(self):
        self.ask("SET", self.key("text"), "x" * self.random.choice([1, 100, 5000]), "PX", 500)
        self.ask("APPEND", self.key("text"), "more")
        self.ask("PEXPIRE", self.key("text"), 500)
        self.ask("DEL", self.key("text"))

    def do_hashes(self):
        key = self.key("hash")
        for _ in range(5):
            self.ask("HINCRBY", key, f"field {self.random.randrange(1000)}", 1)
        self.ask("PEXPIRE", key, 500)

    def do_transaction(self):
        key = self.key("text")
        self.ask("WATCH", key)
        self.ask("MULTI")
        self.ask("SET", key, "x", "PX", 300)
        self.ask(self.random.choice(["EXEC", "DISCARD"]))

    def do_lease(self):
        documents = [word for key in {self.key("lease") for _ in range(3)} for word in (key, "text")]
        reply = self.ask("LEASE", "GRANT", "*", 200, *documents)
        if reply[0]:
            self.ask("LEASE", self.random.choice(["CONFIRM", "CANCEL"]), reply[0])

    def do_messages(self):
        with contextlib.closing(Client(self.path)) as hearer:
            hearer.ask_all([["SUBSCRIBE", "news"], ["PSUBSCRIBE", f"*{self.random.randrange(50)}"]])
            self.ask("PUBLISH", "news", "x" * 1000)

    def do_look_around(self):
        self.ask("SCAN", 0, "MATCH", "*1*", "COUNT", 50)
        self.ask("INFO")
        self.ask("CLIENT", "LIST")
        self.ask("LOCKS", "LIST", 0)

    def do_large(self):
        if self.random.random() < 0.05:
            self.ask("SET", self.key("text"), "x" * 2_000_000, "PX", 100)
            self.ask("BGSAVE")


FINE = ("ERR Background save", "EXPIRED", "NOLEASE", "DEADLOCK", "WRONGTYPE", "NOSCRIPT")
UNLOCK_SCRIPT = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
                 "return 0")


def work(path, seed, seconds, told):
    end_with_parent()
    try:
        worker = Worker(path, seed)
        worker.work_until(time.monotonic() + seconds)
        worker.client.close()
        told.put((worker.requests, worker.times))
    except Exception as failure:
        told.put(f"{failure!r}")


def one_round(server, number, seconds):
    told = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(server.path, number * WORKERS + n, seconds, told))
               for n in range(WORKERS)]
    for worker in workers:
        worker.start()
    results = [told.get(timeout=seconds + 300) for _ in workers]
    for worker in workers:
        worker.join()
    if wrong := [result for result in results if isinstance(result, str)]:
        raise AssertionError(wrong[0])
    times = sorted(t for _, each in results for t in each)
    server.ask("FLUSHALL")
    until(lambda: server.info("connected_clients", "clients") == "1")
    until(lambda: server.info("rdb_bgsave_in_progress") == "0")
    folder = pathlib.Path(f"/proc/{server.process.pid}")
    rss = int(re.search(r"VmRSS:\s+(\d+)", (folder / "status").read_text(encoding="ascii")).group(1))
    p50, p99 = (round(times[int(len(times) * part)] * 1e6) for part in (0.5, 0.99))
    return Sample(sum(requests for requests, _ in results), rss, int(server.info("used_memory", "memory")),
                  len(os.listdir(folder / "fd")), p50, p99)


def faults_of(samples, valgrind):
    """The values that have grown from the second quarter of the samples to the last. The first quarter is
    a warm-up. Ignores the memory of a server under valgrind."""
    quarter = len(samples) // 4
    early, late = samples[quarter:2 * quarter], samples[-quarter:]
    most = lambda part, field: max(getattr(sample, field) for sample in part)
    faults = []
    for field, slack in (("rss_kib", 4096), ("used", 65536), ("descriptors", 0)):
        if valgrind and field == "rss_kib":
            continue
        before, after = most(early, field), most(late, field)
        if after > before * (1.05 if slack else 1) + slack:
            faults.append(f"{field} has grown from {before} to {after}")
    return faults


def under_valgrind(tool, folder):
    """The path of a script that starts the server under valgrind, whose findings go to the folder."""
    server = os.path.abspath(os.environ.get("HOLDFAST_SERVER", "build/holdfast-server"))
    options = {"memcheck": "--leak-check=full --errors-for-leak-kinds=definite --error-exitcode=99",
               "massif": f"--massif-out-file={folder}/massif"}[tool]
    script = pathlib.Path(folder, "server")
    command = f'valgrind --tool={tool} --log-file={folder}/log {options} {server} "$@"'
    script.write_text(f"#!/bin/sh\nexec {command}\n", encoding="ascii")
    script.chmod(0o755)
    return str(script)


def told_by_valgrind(tool, folder):
    if tool == "massif":
        out = subprocess.check_output(["ms_print", f"{folder}/massif"], text=True)
        return "\n".join(out.splitlines()[:32])
    log = pathlib.Path(folder, "log").read_text(encoding="utf-8")
    return "\n".join(log.splitlines()[-14:])


def soak(options, folder):
    command = os.environ["HOLDFAST_SERVER"]
    if options.valgrind:
        command = under_valgrind(options.valgrind, folder)
    samples, faults = [], []
    began = time.monotonic()
    try:
        with Server(os.path.join(folder, "data"), *OPTIONS, command=command) as server:
            server.ask("CONFIG", "SET", "loglevel", "warning")  # no reader: a full pipe blocks the server
            for number in range(ROUNDS):
                samples.append(one_round(server, number, options.seconds / ROUNDS))
                print(f"{time.monotonic() - began:6.0f} s", *(f"{name} {value}" for name, value in
                                                             samples[-1]._asdict().items()), flush=True)
    except Exception as failure:
        faults.append(f"{failure!r}")
    if options.valgrind:
        print(told_by_valgrind(options.valgrind, folder))
    return samples, faults + (faults_of(samples, options.valgrind) if len(samples) == ROUNDS else [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--valgrind", choices=["memcheck", "massif"])
    options = parser.parse_args()
    os.environ.setdefault("HOLDFAST_SERVER", "build/holdfast-server")
    with tempfile.TemporaryDirectory(prefix="holdfast-soak-") as folder:
        samples, faults = soak(options, folder)
    print(f"{sum(sample.requests for sample in samples)} requests")
    print("".join(f"FAILED {fault}\n" for fault in faults), end="")
    print(f"{0 if faults else 1} passed, {len(faults)} failed")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
