#!/usr/bin/env python3
"""Cuts groups of real clients off from servers of a quorum, by real loss of packets in network namespaces,
and measures how the grants of one lock go on. Each pattern of cut_patterns.py is a run: clients contend for
the lock, with the default settings of quorum://, first without and then with the cut. Prints a table with a
line for each run, and "N passed, N failed". A run fails if the checker finds a violation, or if the grants
miss the bounds (liveness.py). HOLDFAST_SERVER names the server; chaos-client must be in its folder, or
HOLDFAST_CHAOS_CLIENT names it. It needs root; without it the test is skipped."""
import argparse
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

from cut_patterns import PATTERNS
from cut_trial import Trial, nodes_of, scene_of
from liveness import GENEROUS, PROMISED, misses
from network import make_network

FOLDER = "holdfast-cuts-"
KEPT = pathlib.Path("build/chaos")
CLIENTS = {3: 6, 5: 12}
SLOW = 0.2   # if a process waited for a processor for more of the time, its grants are not judged
SHOWN = 3    # the largest number of printed violations of one promise
SHORT = {3: ("each", "two", "answers", "flap-0.7", "each-minority", "leftover", "restarts-mute", "vanish",
             "half-stop"),
         5: ("each", "flap-0.7", "leftover")}
ROW = "{:<44} {:>7} {:>7} {:>7} {:>5} {:>7} {:>7} {:>11}  {}"
HEAD = ROW.format("cut", "N, C", "before", "after", "ratio", "gap", "wait", "least|most", "").rstrip()


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", type=int, choices=(3, 5), help="default: 3, then 5")
    parser.add_argument("--clients", type=int, help="guests not included (3 servers: 6, 5 servers: 12)")
    parser.add_argument("--only", help=f"some of {', '.join(pattern.name for pattern in PATTERNS)}")
    parser.add_argument("--short", action="store_true", help="a few patterns, 9 s each")
    parser.add_argument("--before", type=float, default=4, help="seconds before the cut (4)")
    parser.add_argument("--after", type=float, default=20, help="seconds after the cut (20)")
    parser.add_argument("--minutes", type=float, default=0, help="repeat all for so long, with new seeds")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--promised", action="store_true", help="fail if the promised bounds are missed")
    parser.add_argument("--mixed", action="store_true", help="others use locks of all kinds meanwhile")
    parser.add_argument("--keep", action="store_true", help="keep the histories and logs of all runs")
    return parser.parse_args()


def plan(args):
    """The runs, as (servers, pattern)."""
    runs = []
    for servers in (args.servers,) if args.servers else (3, 5):
        names = args.only.split(",") if args.only else SHORT[servers] if args.short else \
            [pattern.name for pattern in PATTERNS]
        if unknown := set(names) - {pattern.name for pattern in PATTERNS}:
            sys.exit(f"no such patterns: {', '.join(sorted(unknown))}")
        runs += [(servers, pattern) for pattern in PATTERNS if pattern.name in names]
    return runs


class Summary:
    """All runs so far: the worst of each pattern, and the number of runs that failed."""

    def __init__(self):
        self.rows, self.passed, self.failed = {}, 0, 0

    def add(self, key, found, violations, failed):
        row = self.rows.setdefault(key, [])
        row.append((found, violations))
        self.failed += failed
        self.passed += not failed

    def show(self):
        print(f"\nthe worst of each pattern\n{HEAD}  runs, violations")
        for (text, servers, clients), runs in self.rows.items():
            figures = [found for found, _ in runs if found]
            if figures:
                least = min(figures, key=lambda found: found.evenness())
                print(ROW.format(
                    text, f"{servers}, {clients}", f"{min(found.before for found in figures):.1f}",
                    f"{min(found.after for found in figures):.1f}",
                    f"{min(found.ratio() for found in figures):.2f}",
                    f"{max(found.gap_s for found in figures):.2f} s",
                    f"{max(found.wait_s for found in figures):.2f} s", f"{least.least}|{least.most}",
                    f"{len(runs)}, {sum(violations for _, violations in runs)}"), flush=True)


def keep(folder, name):
    shutil.rmtree(KEPT / name, ignore_errors=True)
    shutil.copytree(folder, KEPT / name, ignore=shutil.ignore_patterns("s[0-9]", "*.socket"))


def run_one(args, network, servers, pattern, seed):
    """Returns the figures (None if the run did not reach its end), the violations, and what the grants miss
    of the generous and of the promised bounds."""
    clients = args.clients or CLIENTS[servers]
    figures, violations, slow_s = None, [], 0.0
    with tempfile.TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-",
                                     ignore_cleanup_errors=True) as folder:
        folder = pathlib.Path(folder)
        scene = scene_of(pattern, servers, clients, seed, args.after)
        trial = Trial(network, pattern, scene, folder, args.mixed)
        try:
            figures, found = trial.run(args.before)
            slow_s = trial.slow_s
        except Exception:  # the report names it
            found = {"run": [traceback.format_exc(limit=-3)]}
        for promise, texts in found.items():
            violations += [f"{promise}: {text[:1500]}" for text in texts[:SHOWN]]
        bounds = [misses(figures, bound, pattern.rate) if figures else [] for bound in (GENEROUS, PROMISED)]
        if slow_s > SLOW * args.after:
            print(f"not judged: the grants with {pattern.name}, as a process waited for a processor for "
                  f"{slow_s:.1f} s")
            bounds = [[], []]
        if args.keep or violations or bounds[args.promised]:
            keep(folder, f"cuts-{pattern.name}-{servers}-{seed}")
    return figures, violations, bounds


def show(pattern, servers, clients, figures, missed):
    if figures:
        print(ROW.format(pattern.text, f"{servers}, {clients}", f"{figures.before:.1f}",
                         f"{figures.after:.1f}", f"{figures.ratio():.2f}", f"{figures.gap_s:.2f} s",
                         f"{figures.wait_s:.2f} s", f"{figures.least}|{figures.most}",
                         "below the promise" if missed else "").rstrip(), flush=True)


def rounds(args, runs, network, summary):
    end = time.monotonic() + args.minutes * 60
    seed = args.seed
    while True:
        for servers, pattern in runs:
            clients = args.clients or CLIENTS[servers]
            figures, violations, bounds = run_one(args, network, servers, pattern, seed)
            show(pattern, servers, clients, figures, bounds[1])
            texts = violations + [f"liveness: {text}" for text in bounds[args.promised]]
            for text in texts:
                print(f"FAILED {pattern.name}, {servers} servers, seed {seed}: {text}", flush=True)
            summary.add((pattern.text, servers, clients), figures, len(violations), bool(texts))
            if args.minutes and time.monotonic() > end:
                return
        seed += 1
        if time.monotonic() >= end:
            return


def main():
    args = arguments()
    if args.short:
        args.before, args.after = 3, 9
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exception, so that cleanup runs
    runs = plan(args)
    summary = Summary()
    network, why = make_network()
    with contextlib.closing(network):
        if why or "partition" not in network.can:
            print(f"SKIPPED cuts: no packets can be lost here: {why or 'nft does not work'}")
            print("0 passed, 0 failed, 1 skipped")
            return 0
        largest = max(servers for servers, _ in runs)
        for node in nodes_of(largest, args.clients or CLIENTS[largest]):
            network.add(node)
        print(f"seed {args.seed}\n{HEAD}", flush=True)
        rounds(args, runs, network, summary)
    if args.minutes:
        summary.show()
    print(f"{summary.passed} passed, {summary.failed} failed")
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
