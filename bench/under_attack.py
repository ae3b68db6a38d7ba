#!/usr/bin/env python3
"""The latency of other clients while one client attacks the server. Sends a request every millisecond,
first without an attack and then under each attack of tests/integration/attacks.py, to Holdfast and to
Redis. Prints a table. The attacker uses the load generator's core, so that the table shows the server's own
work.
    under_attack.py [--seconds N] [--rounds N] [NAME]..."""
import argparse
import os
import statistics
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from servers import TWO_CORES, Server

import attacks  # servers.py has told where it is

LIMITS = {"Holdfast": ["--client-output-buffer-limit", "64mb", "--client-query-buffer-limit", "64mb",
                       "--script-memory-limit", "64mb", "--script-run-memory-limit", "4mb",
                       "--maxmemory", "256mb"],
          "Redis": ["--client-output-buffer-limit", "normal 64mb 0 0 pubsub 64mb 0 0",
                    "--client-query-buffer-limit", "64mb", "--maxmemory", "256mb"]}


def p99_us(server, seconds):
    return server.load("open", ("SET other:{key} x PX 10000", "+OK"), keys=1000, rate=1000, connections=10,
                       seconds=seconds)["p99"]


def felt(kind, attack, seconds):
    """The 99th percentile of the latency without and under attack, in microseconds, and the server's peak
    of memory in MiB. If the server does not survive, a text with the reason."""
    http = ["--http-port", "7391"] if attack in attacks.HTTP_ATTACKS else []
    with Server(kind, *LIMITS[kind], *http) as server:
        calm = p99_us(server, seconds)
        try:
            with attacks.under(attack, server.socket, niceness=19):
                attacked = p99_us(server, seconds)
        except (RuntimeError, AssertionError) as failure:
            return f"{failure}".splitlines()[0][:60]
        return calm, attacked, server.memory_kib(peak=True) / 1024


def middle(results):
    """The first failure; without one, the round with the median ratio, as the machine may have other
    work."""
    failures = [result for result in results if isinstance(result, str)]
    return failures[0] if failures else sorted(results, key=lambda r: r[1] / r[0])[len(results) // 2]


def text(result):
    if isinstance(result, str):
        return f"{result:>38}"
    calm, attacked, peak = result
    return f"{calm:7.0f} {attacked:9.0f} {attacked / calm:8.1f} {peak:7.0f} MiB"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seconds", type=float, default=3)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    if TWO_CORES:
        os.sched_setaffinity(0, {1})
    heads = "   calm    attack    ratio     peak   "
    print(f"{'p99 in us':32} {'Holdfast':^38} {'Redis':^38}\n{'':32} {heads} {heads}", flush=True)
    ratios = []
    for attack in attacks.ATTACKS + attacks.HTTP_ATTACKS:
        if chosen.names and not any(name in attack.__name__ for name in chosen.names):
            continue
        http = attack in attacks.HTTP_ATTACKS
        ours = middle([felt("Holdfast", attack, chosen.seconds) for _ in range(chosen.rounds)])
        theirs = ("has no HTTP" if http else
                  middle([felt("Redis", attack, chosen.seconds) for _ in range(chosen.rounds)]))
        print(f"{attack.__name__:32} {text(ours)} {text(theirs)}", flush=True)
        ratios.append(ours[1] / ours[0])
    print(f"median of Holdfast's ratios {statistics.median(ratios):.1f}, largest {max(ratios):.1f}")


if __name__ == "__main__":
    main()
