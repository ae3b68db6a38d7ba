#!/usr/bin/env python3
"""The cost of a request with many entries, connections, waiters or holders; and two servers with the keys
divided between them. The cost is the server's own CPU time, user and system, for each request, so other
work on the machine has little effect. Prints tables, and writes them as JSON and as a chart (SVG, by
gnuplot) to build/bench."""
import contextlib
import itertools
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import time

from chain import Chain
from lines import TTL_MS
from servers import Client, Server, until

OUT = pathlib.Path("build/bench")
WINDOWS, WINDOW_S = 3, 0.6
CHAIN = 10_000  # hand-overs in a window
OPEN_FILES = 11_000
PAIR = [("LOCK {key} {owner} 30000", "*2"), ("UNLOCK {key} {owner}", ":1")]
SHARED_PAIR = [("LOCK shared {key} 30000 SHARED", "*2"), ("UNLOCK shared {key}", ":1")]


class Gauge:
    """CPU time and units of work of a server since the last look. `field`: the field of INFO with the
    number of units."""

    def __init__(self, server, field="total_commands_processed"):
        self.server, self.field, self.client = server, field, Client(server.socket)
        self.last = self.look()

    def look(self):
        return int(self.client.info(self.field, "all")), self.server.cpu_s(), time.monotonic()

    def since(self):
        """The units, seconds of CPU and seconds since the last look."""
        before, self.last = self.last, self.look()
        return tuple(now - then for now, then in zip(self.last, before))


def point(n, windows):
    """The medians over the windows: microseconds of CPU for a unit, and units a second."""
    return {"n": n, "us": statistics.median(cpu / units * 1e6 for units, cpu, _ in windows),
            "rate": statistics.median(units / seconds for units, _, seconds in windows)}


@contextlib.contextmanager
def loaded(server, mode, *cycle, units=2000, **options):
    """Runs the generator during the block. The block starts after the first requests, when all connections
    exist. It must end before the generator does. A wrong reply ends the generator with an error."""
    start = Gauge(server)
    load = server.begin_load(mode, *cycle, seconds=WINDOWS * WINDOW_S + 0.5, warmup=0.3, **options)
    until(lambda: load.poll() is not None or start.look()[0] - start.last[0] > units)
    yield
    load.communicate()
    if load.returncode != 0:
        raise RuntimeError("the load failed")


def steady(server, n, mode, *cycle, field="total_commands_processed", **options):
    with loaded(server, mode, *cycle, **options):
        gauge, windows = Gauge(server, field), []
        for _ in range(WINDOWS):
            time.sleep(WINDOW_S)
            windows.append(gauge.since())
    return point(n, windows)


def fill(server, n, request, expected):
    """Sends n requests, each with its own key."""
    server.load("closed", (request, expected), requests=n, pipeline=min(n, 100), in_order=True)


def entries(n):
    with Server("Holdfast") as server:
        fill(server, n, f"LOCK {{key}} {{owner}} {TTL_MS}", "*2")
        found = steady(server, n, "closed", *PAIR, pipeline=64, first_key=n)
        if server.ask("DBSIZE") < n:
            raise RuntimeError("some keys are missing")
    return found


def connections(n):
    with Server("Holdfast", "--maxclients", str(OPEN_FILES)) as server:
        return steady(server, n, "closed", *PAIR, connections=n, units=3 * n)


def waiters(n):
    """n waiters, each with its own connection. A unit is a hand-over: the release, the next grant, and the
    next wait."""
    with Server("Holdfast", "--maxclients", str(OPEN_FILES)) as server:
        cycle = [("LOCK {key} {owner} 30000 WAIT 0", "*2"), PAIR[1]]
        return steady(server, n, "contended", *cycle, connections=n + 1, units=2 * n, no_pings=True,
                      field="lock_grants")


def chained(n, keys, others=0):
    """n waiters for each key, all on one connection (ASYNC). `others`: the number of further keys, each
    with a reader that holds it and a writer that waits."""
    with Server("Holdfast") as server:
        chain, gauge = Chain(server.socket, keys, n), Gauge(server, "lock_grants")
        chain.add_others(others)
        random.seed(1)
        windows = []
        for _ in range(WINDOWS + 1):  # the first is a warm-up
            gauge.since()
            for _ in range(CHAIN // 500):
                chain.hand_over(random.choices(range(keys), k=500))
            windows.append(gauge.since())
        if any(units != CHAIN for units, _, _ in windows):
            raise RuntimeError("the server's count of hand-overs is wrong")
        chain.close()
    return point(others or n * keys, windows[1:])


def holders(n):
    with Server("Holdfast") as server:
        fill(server, n, f"LOCK shared {{key}} {TTL_MS} SHARED", "*2")
        return steady(server, n, "closed", *SHARED_PAIR, pipeline=64, first_key=n)


def ring(n, pipeline):
    """n servers, each with the keys whose number modulo n is its own, and one generator, none bound to a
    core. Also gives the share of a core that each used, and the rate at which servers or cores are
    saturated."""
    with contextlib.ExitStack() as stack:
        servers = [stack.enter_context(Server("Holdfast", pinned=False)) for _ in range(n)]
        others = {"socket": servers[1].socket} if n > 1 else {}
        load = servers[0].begin_load("closed", *PAIR, core=[], connections=48, pipeline=pipeline,
                                     seconds=WINDOWS * WINDOW_S + 0.8, **others)
        time.sleep(0.5)
        gauges = [Gauge(server) for server in servers]
        load_s, began = cpu_s(load.pid), time.monotonic()
        time.sleep(WINDOWS * WINDOW_S)
        used = [gauge.since() for gauge in gauges]
        load_s, seconds = cpu_s(load.pid) - load_s, time.monotonic() - began
        load.communicate()
        if load.returncode != 0 or min(units for units, _, _ in used) == 0:
            raise RuntimeError("the load failed, or a server got no requests")
    requests = sum(units for units, _, _ in used)
    us, load_us = sum(cpu for _, cpu, _ in used) / requests * 1e6, load_s / requests * 1e6
    return {"n": n, "us": us, "load_us": load_us, "rate": requests / seconds,
            "at_most": min(n / us, 1 / load_us, os.cpu_count() / (us + load_us)) * 1e6,
            "servers": [cpu / seconds for _, cpu, _ in used], "load": load_s / seconds}


def tens(first, last):
    return list(itertools.takewhile(lambda n: n <= last, (first * 10 ** i for i in itertools.count())))


SWEEPS = [  # name, unit, numbers, the function that measures one number
    ("entries held; other keys, pipeline 64", "request", tens(1000, 10_000_000), entries),
    ("connections, all at work, pipeline 1", "request", tens(10, 10_000), connections),
    ("waiters of a key, a connection each", "hand-over", tens(1, 10_000), waiters),
    ("waiters of a key, on one connection", "hand-over", tens(1, 10_000), lambda n: chained(n, 1)),
    ("waiters, 10 a key, on one connection", "hand-over", tens(100, 100_000),
     lambda n: chained(10, n // 10)),
    ("shared holders; one more, pipeline 64", "request", tens(1, 100_000), holders),
    ("shared locks elsewhere, each waited for", "hand-over", tens(1, 10_000),
     lambda n: chained(1, 1, n)),
]
NUMBERS = tens(1, 10_000_000)
NAMES = ["1", "10", "100", "1k", "10k", "100k", "1M", "10M"]
ROW = "{:<42}" + " {:>7}" * len(NAMES)
RING_ROW = "{:<20} {:>12} {:>10} {:>12} {:>10} {:>16} {:>8}"


def run_sweep(name, unit, numbers, measure):
    points = [measure(n) for n in numbers]
    us = {found["n"]: f"{found['us']:.2f}" for found in points}
    rates = {found["n"]: f"{found['rate'] / 1000:,.0f}k" for found in points}
    print(ROW.format(name, *(us.get(n, "") for n in NUMBERS)))
    print(ROW.format(f"  {unit}s/s", *(rates.get(n, "") for n in NUMBERS)), flush=True)
    return {"name": name, "unit": unit, "points": points}


def run_ring(pipeline):
    points = [ring(n, pipeline) for n in (1, 2)]
    for found in points:
        rates = [f"{found[name] / 1000:,.0f}k" for name in ("rate", "at_most")]
        shares = " + ".join(f"{share:.2f}" for share in found["servers"])
        print(RING_ROW.format(f"{found['n']}, pipeline {pipeline}", *rates, f"{found['us']:.2f}",
                              f"{found['load_us']:.2f}", shares, f"{found['load']:.2f}"), flush=True)
    return {"name": "servers behind one ring", "pipeline": pipeline, "points": points}


def draw(sweeps, rings):
    """One small chart for each sweep, and a last one for the ring. A flat line is a cost that does not
    grow."""
    rows = (len(sweeps) + len(rings[:1]) + 1) // 2
    script = [f'set terminal svg size 900,{260 * rows} font "sans,11"', f'set output "{OUT}/scale.svg"',
              f"set multiplot layout {rows},2", "set logscale x", 'set format x "%.0s%c"', "set grid",
              "set yrange [0:*]", "set autoscale xfix", "set offsets 0, 0, graph 0.3, 0"]
    for i, sweep in enumerate(sweeps):
        data = "\n".join(f"{p['n']} {p['us']:.4f}" for p in sweep["points"])
        script += [f"$d{i} << end\n{data}\nend", f'set title "{sweep["name"]}"',
                   f'set ylabel "µs CPU a {sweep["unit"]}"',
                   f'plot $d{i} with linespoints notitle pt 7 ps 0.6 lw 2 lc rgb "#3366aa"']
    if rings:
        data = "\n".join(f'"{p["n"]}, {found["pipeline"]}" {p["rate"]:.0f} {p["at_most"]:.0f}'
                         for found in rings for p in found["points"])
        script += [f"$ring << end\n{data}\nend", "unset logscale x",
                   'set title "servers in the ring, and pipeline"',
                   'set ylabel "thousand requests/s"', "set style fill solid 0.7", "set boxwidth 0.6",
                   "set xtics nomirror", "set xrange [-0.6:3.6]",
                   "plot $ring using 0:($2/1000):xtic(1) with boxes title 'measured' lc rgb '#3366aa', "
                   "$ring using 0:($3/1000) with points title 'at most' pt 2 lc rgb '#aa3333'"]
    subprocess.run(["gnuplot"], input="\n".join([*script, "unset multiplot", ""]), text=True, check=True)


def main():
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if files != resource.RLIM_INFINITY and files < OPEN_FILES:
        sys.exit(f"needs {OPEN_FILES} open files a process; the hard limit is {files}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(OPEN_FILES, files), files))
    OUT.mkdir(parents=True, exist_ok=True)
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    print(ROW.format("us of the server's CPU; how many a second", *NAMES), flush=True)
    sweeps = [run_sweep(*sweep) for sweep in SWEEPS if only in sweep[0]]
    print("\n" + RING_ROW.format("servers in the ring", "requests/s", "at most", "us, servers", "us, load",
                                 "cores, servers", "load"), flush=True)
    rings = [run_ring(pipeline) for pipeline in (64, 1) if only in "ring"]
    (OUT / "scale.json").write_text(json.dumps({"cores": os.cpu_count(), "sweeps": sweeps, "rings": rings},
                                               indent=1) + "\n", encoding="utf-8")
    if sweeps or rings:
        draw(sweeps, rings)
    print(f"\n{OUT}/scale.json, {OUT}/scale.svg")


if __name__ == "__main__":
    main()
