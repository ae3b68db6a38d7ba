#!/usr/bin/python3
"""Which client holds this lock, since when, and why; which clients wait behind it; is the server all right?
Each of /metrics (by Prometheus), the dashboard, `holdfast top --batch` and LOCKS HISTORY answers, while a
load runs and a holder is dead, and the section "At three in the morning" of docs/operations.md shows what
its commands print. The last line is "N passed, N failed". HOLDFAST_SERVER names the server, PROMETHEUS the
folder of Debian's package prometheus."""
import contextlib
import json
import os
import re
import sys
import threading
import time

from dashboard_rig import TcpServer, lock_view, milliseconds, page_of, run_browser_tests
from harness import LIMIT_S, Client, equal, has, test, until
from job import call, start
from prometheus_rig import BINARIES, Prometheus
from tutorial_rig import ROOT, Tutorial, blocks_of

PICTURES = (1280, 900)
NOTES = ("cron@db-1[4711] backup --full", "cron@db-2[811] backup --full", "cron@db-3[812] backup --full")
FIELDS = ("serial", "event", "at", "db", "key", "owner", "note", "token", "waited", "held", "addr")


def run_backup(note):
    return start("run", "-q", "--ttl", "10m", "--note", note, "backup", "--", "sleep", "1000")


@contextlib.contextmanager
def night(folder):
    """A server, a Prometheus that scrapes it, a dead holder of the lock backup, and two waiters behind it.
    Gives the server, Prometheus and the owners of the three."""
    with TcpServer(folder) as server, contextlib.ExitStack() as stack:
        server.http_port = server.port
        os.environ["HOLDFAST_SERVERS"] = f"127.0.0.1:{server.path[1]}"
        prometheus = stack.enter_context(Prometheus(folder.parent / "prometheus", server))
        jobs = [run_backup(NOTES[0])]
        stack.callback(lambda: [(job.kill(), job.communicate(timeout=LIMIT_S)) for job in jobs])
        until(lambda: server.ask("GET", "backup"))
        jobs[0].kill()
        for number, note in enumerate(NOTES[1:], 1):
            jobs.append(run_backup(note))
            until(lambda n=number: server.info("lock_waiters", "locks") == str(n))
        until(lambda: prometheus.value("holdfast_waiters") == 2 and
              (prometheus.value("holdfast_oldest_waiter_seconds") or 0) > 0)
        lock = server.get("/api/v1/locks/backup").json()
        yield server, prometheus, [row["owner"] for row in (*lock["holders"], *lock["waiters"])]


@contextlib.contextmanager
def load(server):
    """Three clients that acquire the lock orders, one after the other, until the end."""
    stop = threading.Event()

    def contend(owner):
        with contextlib.closing(Client(server.path)) as client:
            while not stop.is_set():
                client.ask("LOCK", "orders", owner, 60_000, "WAIT", 60_000)
                stop.wait(0.01)
                client.ask("UNLOCK", "orders", owner)
    threads = [threading.Thread(target=contend, args=(f"shop-{i}",)) for i in range(3)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: int(server.info("lock_queued_grants", "locks")) > 20)
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(LIMIT_S)


def history(server, *words):
    """The events of LOCKS HISTORY as dicts, the newest first."""
    events = [dict(zip(event[::2], event[1::2])) for event in server.ask("LOCKS", "HISTORY", *words)]
    decoded = [{name.decode(): value.decode() if isinstance(value, bytes) else value
                for name, value in event.items()} for event in events]
    equal(all(tuple(event) == FIELDS for event in decoded), True)
    return decoded


def prometheus_answers(server, prometheus, owners):
    """How many hold and wait, and for how long; is the server ready. No name of a lock, on purpose."""
    equal(prometheus.value("min(holdfast_ready)"), 1.0)
    equal(prometheus.value("holdfast_waiters") >= 2, True)
    equal(prometheus.value("holdfast_longest_queue"), 2.0)
    equal(prometheus.value("sum(holdfast_locks)") in (1.0, 2.0), True)  # orders may be between two grants
    waited = prometheus.value("holdfast_oldest_waiter_seconds")
    asked = int(server.info("oldest_waiter_ms", "locks")) / 1000
    equal((waited, asked, 0 < waited <= asked + 0.1), (waited, asked, True))
    until(lambda: prometheus.value('sum(increase(holdfast_lock_grants_total{queued="yes"}[1m]))'))
    series = json.dumps(prometheus.ask("series", **{"match[]": '{job="holdfast"}'}))
    has(series, "holdfast_waiters")
    equal([name for name in ("backup", "orders", "cron@", *owners) if name in series], [])


def dashboard_answers(server, owners):
    page = page_of(server)
    page.shows("Ready", "#ready")
    page.shows("2", "#figure-longest-queue")
    until(lambda: page.column("main", "Lock")[:1] == ["backup"])
    page.click("main td a")
    page.shows("backup", "h1")
    until(lambda: page.column("#holders", "Holder") == owners[:1])
    equal(page.column("#holders", "Note"), [NOTES[0]])
    lock = server.get("/api/v1/locks/backup").json()
    holder = lock["holders"][0]
    equal(page.column("#holders", "Client"), [f"{holder['name']} {holder['addr']}"])
    equal(holder["client"], None)  # its connection is closed
    equal(milliseconds(page.column("#holders", "Held for")[0]) <= holder["held_ms"], True)
    equal(page.column("#queue", "Waiter"), owners[1:])
    equal(page.column("#queue", "Note"), list(NOTES[1:]))
    equal(page.texts("#history li p:first-child"), [f"{owners[0]} acquired the lock"])


def top_answers(server, owners):
    out = call(0, "top", "--batch", "-n", 1, "--interval", "200ms")[0]
    row = next(line for line in out.splitlines() if line.startswith("backup "))
    has(row, "exclusive", owners[0])
    equal(re.search(r" 2 +[\d.]+m?s$", row) is None, False)
    equal(re.search(r" ready$", out, re.MULTILINE) is None, False)
    refresh = json.loads(call(0, "top", "--json", "-n", 1, "--interval", "200ms")[0])
    first = refresh["locks"][0]
    equal((first["key"], first["owner"], first["note"], first["waiters"]),
          ("backup", owners[0], NOTES[0], 2))
    equal(0 < first["longest_wait_ms"] <= first["held_ms"] <= int(time.monotonic() * 1000), True)
    equal((refresh["servers"][0]["ready"], refresh["servers"][0]["grants_per_s"] > 0), (True, True))
    waiting = re.findall(r"waiting (\S+)", call(0, "info", "backup")[0])
    equal(waiting, owners[1:])
    equal(server.info("ready", "readiness"), "yes")


def history_answers(server, owners):
    """The grant of the holder; after the end of its hold, the next waiter and how long it waited."""
    [grant] = history(server, "backup")
    equal((grant["event"], grant["owner"], grant["note"]), ("granted", owners[0], NOTES[0]))
    holder = server.get("/api/v1/locks/backup").json()["holders"][0]
    equal((grant["token"], grant["addr"]), (holder["token"], holder["addr"]))
    equal(0 <= time.time() * 1000 - grant["at"] - holder["held_ms"] < 60_000, True)
    equal(call(0, "break", "backup")[0].endswith("1 hold broken\n"), True)
    events = history(server, "backup", "COUNT", 2)
    equal([(e["event"], e["owner"], e["note"]) for e in events],
          [("granted", owners[1], NOTES[1]), ("broken", owners[0], NOTES[0])])
    equal((events[0]["waited"] > 0, events[1]["held"] >= events[0]["waited"]), (True, True))


@test
def each_tool_answers_under_load(folder):
    with night(folder) as (server, prometheus, owners), load(server):
        prometheus_answers(server, prometheus, owners)
        dashboard_answers(server, owners)
        top_answers(server, owners)
        history_answers(server, owners)


@test
def the_page_shows_what_its_commands_print(folder):
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    section = re.search(r"^## At three in the morning\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)[1]
    before, after = section.split("**5. End the hold.**")
    with night(folder) as (server, prometheus, owners), Tutorial("operations", section) as tutorial:
        ports = {"7379": server.path[1], "7380": server.port, "9090": prometheus.port}
        tutorial.names.ports = {name: str(port) for name, port in ports.items()}
        tutorial.environment |= {"PATH": f"{BINARIES}:{tutorial.environment['PATH']}",
                                 "HOLDFAST_SERVERS": os.environ["HOLDFAST_SERVERS"]}
        until(lambda: server.info("connected_clients", "clients") == "5")
        tutorial.play(blocks_of(before))
        for name, view, seen in (("night", "#/", "backup"), ("night-lock", lock_view("backup"), owners[2])):
            shown = page_of(server, view)
            shown.size(*PICTURES)
            shown.see(seen, "main")
            has(page, f"(pictures/{shown.picture(name).name})")
        tutorial.play(blocks_of(after))
        equal(tutorial.commands, 11)


if __name__ == "__main__":
    if not (BINARIES / "promtool").exists():
        sys.exit(f"{BINARIES} has no promtool: run make build/prometheus")
    run_browser_tests()
