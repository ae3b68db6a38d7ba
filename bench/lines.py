"""The measurements of `make bench`: each line of the table, its rival and its budget."""
import collections
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import tempfile
import time
from typing import Callable

import rivals
import stalls
from etcd import Etcd
from quorum import LOAD as LIBRARY_LOAD
from quorum import Quorum
from servers import LIMIT_S, LOAD_CORE, Client, Server
from zookeeper import ZooKeeper

OWNER = "owner-of-forty-bytes-0123456789abcdefghi"
# The scripts of the Redlock libraries.
DELETE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end'
EXTEND = ('if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) '
          'else return 0 end')
KEYS = 1_000_000
TTL_MS = 600_000
SET = f"SET {{key}} {OWNER} PX {TTL_MS}"


@dataclasses.dataclass
class Line:
    """A line of the table. `ours` and `theirs` measure once each. The budget is for the ratio ours /
    theirs, or (`limit`) for ours alone. `once`: a measurement that takes too long for pairs. `noise`:
    theirs is the machine's own delay; if it is above `limit`, it is the limit. `less`: less is better, so
    the ratio is theirs / ours."""

    work: str
    rival: str
    unit: str
    ours: Callable[[], float]
    theirs: Callable[[], float]
    at_least: float = None
    at_most: float = None
    limit: float = None
    once: bool = False
    noise: bool = False
    less: bool = False

    def ratio(self, ours, theirs):
        over, under = (theirs, ours) if self.less else (ours, theirs)
        return over / under if under else float("inf")

    def met(self, ratio, ours, theirs):
        limit = max(self.limit, theirs) if self.noise else self.limit
        return ((self.at_least is None or ratio >= self.at_least)
                and (self.at_most is None or ratio <= self.at_most) and (limit is None or ours <= limit))

    def budget(self):
        texts = [(self.at_least, "ratio >= {:g}"), (self.at_most, "ratio <= {:g}"), (self.limit, "<= {:g}")]
        return ", ".join(text.format(value) for value, text in texts if value is not None)


def pairs(kind, pipeline, *options, folder=None):
    """Requests a second of clients that acquire and release locks."""
    with Server(kind, *options, folder=folder) as server:
        cycle = [("LOCK {key} {owner} 30000", "*2"), ("UNLOCK {key} {owner}", ":1")]
        if kind == "Redis":
            digest = server.ask("SCRIPT", "LOAD", DELETE).decode()
            cycle = [("SET {key} {owner} NX PX 30000", "+OK"),
                     (f"EVALSHA {digest} 1 {{key}} {{owner}}", ":1")]
        elif kind == "null server":
            cycle = [(request, ":1") for request, _ in cycle]
        return server.load("closed", *cycle, pipeline=pipeline, seconds=1)["rate"]


def hold_all(server, keys=KEYS, request=SET, connections=50, **options):
    server.load("closed", (request, "+OK"), pipeline=64, requests=keys, in_order=True,
                connections=connections, **options)
    if server.ask("DBSIZE") != keys:
        raise RuntimeError("some keys are missing")


def one(kind, request, expected):
    """Requests a second at pipeline 64, on keys that are all held. `@delete` and `@extend` are the
    scripts."""
    with Server(kind) as server:
        delete, extend = (server.ask("SCRIPT", "LOAD", script).decode() for script in (DELETE, EXTEND))
        hold_all(server)
        request = request.replace("@delete", delete).replace("@extend", extend)
        options = {"seconds": 1}
        if delete in request:  # each key once
            options = {"requests": KEYS, "in_order": True}
        return server.load("closed", (request, expected), pipeline=64, **options)["rate"]


def fresh(kind):
    with Server(kind) as server:
        request = (f"SET {{key}} {OWNER} NX PX {TTL_MS}", "+OK")
        return server.load("closed", request, pipeline=64, requests=2 * KEYS, in_order=True)["rate"]


def contended(*settings, folder=None, **options):
    """Contention for a lock of Holdfast, whose clients wait in its queue."""
    with Server("Holdfast", *settings, folder=folder) as server:
        return server.load("contended", ("LOCK {key} {owner} 30000 WAIT 0", "*2"),
                           ("UNLOCK {key} {owner}", ":1"), **options)


def polled(**options):
    with Server("Redis") as server:
        digest = server.ask("SCRIPT", "LOAD", DELETE).decode()
        return server.load("contended", ("SET {key} {owner} NX PX 30000", "+OK"),
                           (f"EVALSHA {digest} 1 {{key}} {{owner}}", ":1"), retry_ms=100, **options)


class Shared:
    """Runs that several lines share: each line uses each run once, and the first line to need a run starts
    it."""

    def __init__(self, make, *args, **options):
        self.make = lambda: make(*args, **options)
        self.runs, self.taken = [], collections.Counter()

    def __call__(self, *path, line=None):
        """The value at `path` in the next run that this line has not used. `line` distinguishes lines with
        the same path."""
        number = self.taken[line, path]
        self.taken[line, path] += 1
        if number == len(self.runs):
            self.runs.append(self.make())
        value = self.runs[number]
        for name in path:
            value = value[name]
        return value


def bytes_a_lock(kind, locks):
    """Resident memory for each lock, without that of an empty server."""
    with Server(kind) as server:
        empty_kib = server.memory_kib()
        hold_all(server, locks)
        return (server.memory_kib() - empty_kib) * 1024 / locks


@contextlib.contextmanager
def probed(server, request=("PING", "+PONG"), rate=2000):
    """Sends requests at a fixed rate during the block. Gives a dictionary, which has their latencies after
    the block."""
    found = {}
    probe = server.begin_load("open", request, rate=rate, seconds=600)
    yield found
    probe.terminate()
    found.update(json.loads(probe.communicate()[0]))


def storm(kind):
    """A million locks that expire within 100 ms, and a waiter for one of them: delays in milliseconds."""
    waits = kind == "Holdfast"
    found = {}
    with Server(kind, pinned=False) as server:
        at_ms = int(time.time() * 1000) + 6000
        request = f"SET {{key}} {OWNER} PXAT {{deadline}}"
        hold_all(server, request=request, deadline_ms=at_ms, spread_ms=100)
        waiter = Client(server.socket)
        waiter.ask("SET", "awaited", "alice", "PXAT", at_ms + 50)
        if waits:
            waiter.send(("LOCK", "awaited", "bob", 60000, "WAIT", 0))
        with probed(server) as probe:
            if waits:
                waiter.reply()
                found["granted"] = time.time() * 1000 - at_ms - 50
            while server.ask("DBSIZE") > waits:
                time.sleep(0.005)
            found["gone"] = time.time() * 1000 - at_ms - 100
        waiter.close()
    return {**found, "longest": probe["longest"] / 1000}


def noise():
    """The machine's own delay in milliseconds: the longest wait within 5 s at a null server without other
    work."""
    with Server("null server", pinned=False) as server, probed(server, ("PING", ":1")) as found:
        time.sleep(5)
    return found["longest"] / 1000


def growth(locks):
    """While a server grows from no keys: the longest wait of other requests in milliseconds, and the share
    of requests that waited longer than 1 ms."""
    with Server("Holdfast", pinned=False) as server, probed(server) as found:
        hold_all(server, locks, connections=4)
    return late(found)


def growth_of_nothing(locks):
    """The same at a null server. It gets three times as many requests, as it is three times as fast."""
    with Server("null server", pinned=False) as server, probed(server, ("PING", ":1")) as found:
        server.load("closed", (SET, ":1"), pipeline=64, requests=3 * locks, in_order=True, connections=4)
    return late(found)


def late(probe):
    return {"longest": probe["longest"] / 1000, "late": probe["above_1ms"] / probe["count"]}


def publish(kind):
    """Messages a second to 100 subscribers, which count them."""
    messages = 51_200
    with Server(kind) as server:
        here = pathlib.Path(__file__).parent
        command = [*LOAD_CORE, here / "subscribers.py", server.socket, "100", str(messages)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as subscribers:
            if subscribers.stdout.readline() != "ready\n":
                raise RuntimeError("no subscribers")
            rate = server.load("closed", ("PUBLISH c m", ":100"), pipeline=64, requests=messages)["rate"]
            if subscribers.wait() != 0:
                raise RuntimeError("some messages are missing")
    return rate


def save(kind, locks):
    """A snapshot while other requests run, and the start from it. Redis saves in the foreground without
    compression; then `gzip -1` packs the file. Redis starts from the plain file."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        options = ["--journal-max-size", "0"] if kind == "Holdfast" else ["--appendonly", "no"]
        with Server(kind, *options, folder=folder, pinned=False) as server:
            hold_all(server, locks)
            began = time.monotonic()
            if kind == "Holdfast":
                found = save_in_background(server)
            else:
                server.ask("SAVE")
                subprocess.run(["gzip", "-1", "-k", pathlib.Path(folder, "dump.rdb")], check=True)
            found["seconds"] = time.monotonic() - began
        began = time.monotonic()
        with Server(kind, *options, folder=folder, pinned=False) as server:
            found["load"] = time.monotonic() - began
            if server.ask("DBSIZE") != locks:
                raise RuntimeError("the server did not load all keys")
    return found


def save_in_background(server):
    before_kib = server.memory_kib()
    with probed(server) as probe:
        server.ask("BGSAVE")
        while b"rdb_bgsave_in_progress:1" in server.ask("INFO", "persistence"):
            time.sleep(0.01)
    return {"memory": (server.memory_kib(peak=True) - before_kib) / 1024,
            **late(probe)}


def durable(kind, pipeline, policy):
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return pairs(kind, pipeline, "--appendonly", "yes", "--appendfsync", policy, folder=folder)


def durably_contended(**options):
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return contended("--appendonly", "yes", "--appendfsync", "always", folder=folder, **options)


def sleepily_contended(**options):
    return contended("--busy-poll", "no", **options)


def hand_overs():
    """Lines beside rivals that sync each change to disk. In the first lines Holdfast syncs too. These runs
    alternate, as the speed of the disk changes from minute to minute."""
    many = {"connections": 100, "seconds": 2}
    ways = [("100 clients on a key: hand-overs, fsync", durably_contended, {}),
            ("100 clients on a key: hand-overs", contended, {"etcd": 50}),
            ("  with --busy-poll no", sleepily_contended, {})]
    there = [rival for rival in (Etcd, ZooKeeper) if rival.is_there()]
    runs = {rival: Shared(rivals.hand_overs, rival, clients=100, seconds=2) for rival in there}
    return [Line(work, rival.name, "/s", at_least=budgets.get(rival.name),
                 ours=lambda ours=ours: ours(**many)["rate"],
                 theirs=lambda work=work, rival=rival: runs[rival]("rate", line=work))
            for work, ours, budgets in ways for rival in there]


def quorum(*args, delay_ms=0):
    with Quorum(5, delay_ms) as servers:
        return servers.load(*args)


def library(kind):
    """Pairs of acquire and release a second, by 16 threads that share one client of the C++ library. On
    Redis the library uses its scripts."""
    port = rivals.free_port()
    place = f"{'redis' if kind == 'Redis' else 'holdfast'}://127.0.0.1:{port}"
    with Server(kind, "--port", str(port)):
        command = [*LOAD_CORE, LIBRARY_LOAD, "pairs", "--servers", place, "--clients", "16",
                   "--seconds", "2"]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=LIMIT_S)
    return json.loads(done.stdout)["rate"]


def table(millions):
    """All lines. The long ones hold `millions` million locks."""
    locks = millions * 1_000_000
    hand_over = Shared(contended, connections=1000, seconds=6)
    holds = Shared(contended, connections=10, hold_ms=1, seconds=2)
    polls = Shared(polled, connections=10, hold_ms=1, seconds=2)
    uncontended = Shared(quorum, "uncontended")
    queued, queue_polls = Shared(quorum, "contended"), Shared(quorum, "contended", "--polls")
    far = Shared(quorum, "contended", delay_ms=1)
    far_polls = Shared(quorum, "contended", "--polls", delay_ms=1)
    storms = {kind: Shared(storm, kind) for kind in ("Holdfast", "Redis")}
    saves = {kind: Shared(save, kind, locks) for kind in ("Holdfast", "Redis")}

    def both(measure, *args):
        return {"ours": lambda: measure("Holdfast", *args), "theirs": lambda: measure("Redis", *args)}

    grown, nothing = Shared(growth, locks), Shared(growth_of_nothing, locks)
    quiet = {"rival": "idle null", "unit": "ms", "once": True, "noise": True, "theirs": noise}

    def shared(kind, runs, name):
        return runs[kind](name)

    def against_null(pipeline):
        return {"rival": "null server", "ours": lambda: pairs("Holdfast", pipeline),
                "theirs": lambda: pairs("null server", pipeline)}
    return [
        Line("LOCK+UNLOCK, pipeline 1", unit="/s", at_least=0.97, **against_null(1)),
        Line("LOCK+UNLOCK, pipeline 1", "Redis", "/s", at_least=1.1, **both(pairs, 1)),
        Line("LOCK+UNLOCK, pipeline 64", unit="/s", at_least=0.6, **against_null(64)),
        Line("LOCK+UNLOCK, pipeline 64", "Redis", "/s", at_least=4, **both(pairs, 64)),
        Line("C++ library: lock+unlock", "Redis, scripts", "/s", at_least=1, **both(library)),
        Line("SET NX PX, pipeline 64", "Redis", "/s", at_least=2, **both(fresh)),
        Line("GET, pipeline 64", "Redis", "/s", at_least=2, **both(one, "GET {key}", "$40")),
        Line("compare-and-delete, pipeline 64", "Redis", "/s", at_least=1.5,
             **both(one, f"EVALSHA @delete 1 {{key}} {OWNER}", ":1")),
        Line("compare-and-pexpire, pipeline 64", "Redis", "/s", at_least=1.5,
             **both(one, f"EVALSHA @extend 1 {{key}} {OWNER} {TTL_MS}", ":1")),
        Line("PUBLISH to 100, pipeline 64", "Redis", "/s", **both(publish)),
        Line("1,000 clients on a key: p50 to the next", "a PING there", "us", at_most=1,
             ours=lambda: hand_over("gaps", "p50"), theirs=lambda: hand_over("pings", "p50")),
        Line("1,000 clients on a key: p99 to the next", "a PING there", "us", at_most=2,
             ours=lambda: hand_over("gaps", "p99"), theirs=lambda: hand_over("pings", "p99")),
        Line("1,000 clients on a key: most | least", "", "holds", at_most=1.02,
             ours=lambda: hand_over("most"), theirs=lambda: hand_over("least")),
        *hand_overs(),
        Line("10 clients hold 1 ms: idle between, p50", "", "us", limit=200,
             ours=lambda: holds("gaps", "p50"), theirs=None),
        Line("10 clients hold 1 ms: of all", "Redis, polled", "/s",
             ours=lambda: holds("rate"), theirs=lambda: polls("rate")),
        Line("10 clients hold 1 ms: of the least served", "Redis, polled", "holds", at_least=5,
             ours=lambda: holds("least"), theirs=lambda: polls("least")),
        Line("quorum of 5: a lock, p50", "5 PINGs at once", "us", at_most=1.3,
             ours=lambda: uncontended("lock"), theirs=lambda: uncontended("ping")),
        Line("quorum of 5, 100 clients on a key: grants", "polled", "/s", at_least=1,
             ours=lambda: queued("rate"), theirs=lambda: queue_polls("rate")),
        Line("quorum of 5, 100 clients: passed on", "polled", "/s", at_least=5,
             ours=lambda: queued("passed"), theirs=lambda: queue_polls("passed")),
        Line("quorum of 5, 100 clients: least | most", "", "holds", at_least=0.95,
             ours=lambda: queued("least"), theirs=lambda: queued("most")),
        Line("  of the least served", "polled", "holds",
             ours=lambda: queued("least"), theirs=lambda: queue_polls("least")),
        Line("  servers 1 ms away: grants", "polled", "/s", at_least=4,
             ours=lambda: far("rate"), theirs=lambda: far_polls("rate")),
        Line("  servers 1 ms away: passed on", "polled", "/s", at_least=4,
             ours=lambda: far("passed"), theirs=lambda: far_polls("passed")),
        Line("bytes a lock, of 2 million", "Redis", "B", at_most=0.65, once=True,
             **both(bytes_a_lock, 2 * KEYS)),
        Line(f"bytes a lock, of {millions} million", "Redis", "B", at_most=0.65, once=True,
             **both(bytes_a_lock, locks)),
        Line("1 million expire at once: others wait", limit=2, **quiet,
             ours=lambda: storms["Holdfast"]("longest")),
        Line("  the same on Redis", "", "ms", once=True,
             ours=lambda: storms["Redis"]("longest"), theirs=None),
        Line("1 million expire at once: gone after", "Redis", "ms", limit=1000, once=True,
             **both(shared, storms, "gone")),
        Line("1 million expire at once: waiter late by", "", "ms", limit=2, once=True,
             ours=lambda: storms["Holdfast"]("granted"), theirs=None),
        Line(f"growing to {millions} million: others wait", "busy null", "ms", limit=1, once=True,
             noise=True,
             ours=lambda: grown("longest"), theirs=lambda: nothing("longest")),
        Line("  and more than 1 ms this share", "busy null", "", limit=0.001, once=True, noise=True,
             ours=lambda: grown("late"), theirs=lambda: nothing("late")),
        Line(f"saving {millions} million, packed", "Redis", "s", at_most=1, once=True,
             **both(shared, saves, "seconds")),
        Line("  meanwhile others wait", limit=1, **quiet, ours=lambda: saves["Holdfast"]("longest")),
        Line("  and more than 1 ms this share", "", "", limit=0.001, once=True,
             ours=lambda: saves["Holdfast"]("late"), theirs=None),
        Line("  memory it takes", "", "MiB", limit=64, once=True,
             ours=lambda: saves["Holdfast"]("memory"), theirs=None),
        Line("  loading it; Redis: not packed", "Redis", "s", at_most=1, once=True,
             **both(shared, saves, "load")),
        Line("loop's CPU: a thread that only spins", "", "ms", once=True,
             ours=lambda: stalls.spinning(10), theirs=None),
        *[Line(f"loop's CPU: {work}", "", "ms", limit=1, once=True, ours=ours, theirs=None)
          for work, ours in stalls.events(millions)],
        Line("LOCK+UNLOCK, fsync always, pipeline 1", "Redis", "/s", at_least=1,
             **both(durable, 1, "always")),
        Line("LOCK+UNLOCK, fsync always, pipeline 64", "Redis", "/s", at_least=1,
             **both(durable, 64, "always")),
        Line("LOCK+UNLOCK, everysec, pipeline 1", "Redis", "/s", at_least=1,
             **both(durable, 1, "everysec")),
        Line("LOCK+UNLOCK, everysec, pipeline 64", "Redis", "/s", at_least=1,
             **both(durable, 64, "everysec")),
    ]
