#!/usr/bin/env python3
"""Compares Holdfast with its rivals: measures each line of lines.py in turn with its rival (A B A B).
Prints a table with the medians, the median of the pairs' ratios with its spread, and whether the budget is
met. Writes the same data as JSON, and a chart (SVG, by gnuplot), to build/bench."""
import argparse
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

from cold import cold_lines
from etcd import Etcd
from lines import table
from servers import PROGRAMS
from value_types import value_type_lines
from zookeeper import ZooKeeper

OUT = pathlib.Path("build/bench")
ROW = "{:<42} {:<13} {:>12} {:>12} {:>7} {:>13}  {:<15} {}"


def text_of(value, unit):
    if value is None:
        return "-"
    digits = 0 if unit in ("/s", "holds", "B", "ns") else 4 if unit == "" else 2
    return f"{value:,.{digits}f}{unit if unit not in ('/s', 'holds') else ''}"


def measure(line, pairs):
    """The medians of both sides; the median, the least and the largest ratio of the pairs."""
    ours, theirs, ratios = [], [], []
    for _ in range(1 if line.once else pairs):
        ours.append(line.ours())
        if line.theirs is not None:
            theirs.append(line.theirs())
            ratios.append(line.ratio(ours[-1], theirs[-1]))
    ratio = statistics.median(ratios) if ratios else None
    found = {"work": line.work, "rival": line.rival, "unit": line.unit, "budget": line.budget(),
             "ours": statistics.median(ours), "theirs": statistics.median(theirs) if theirs else None,
             "ratio": ratio, "ratios": ratios}
    found["met"] = line.met(ratio, found["ours"], found["theirs"])
    return found


def show(found):
    ratios = found["ratios"]
    spread = f"{min(ratios):.2f}..{max(ratios):.2f}" if len(ratios) > 1 else ""
    print(ROW.format(found["work"], found["rival"], text_of(found["ours"], found["unit"]),
                     text_of(found["theirs"], found["unit"]),
                     "-" if found["ratio"] is None else f"{found['ratio']:.2f}", spread, found["budget"],
                     "" if not found["budget"] else "met" if found["met"] else "NOT MET"), flush=True)


def machine():
    version = subprocess.run([PROGRAMS["Redis"], "--version"], capture_output=True, text=True, check=True)
    return {"date": time.strftime("%Y-%m-%d"), "cores": os.cpu_count(), "kernel": platform.release(),
            "redis": version.stdout.split()[2]}


def draw(rows):
    """A chart of the ratios for which larger is better."""
    bars = [row for row in rows if row["unit"] == "/s" and row["ratio"] is not None]
    if not bars:
        return
    data = "\n".join(f'"{row["work"]} | {row["rival"]}" {row["ratio"]:.3f}' for row in bars)
    script = f"""set terminal svg size 900,{120 + 30 * len(bars)} font "sans,12"
set output "{OUT}/ratios.svg"
set title "Holdfast: times the rival's requests a second"
set yrange [{len(bars) - 0.4}:-0.6]
set xrange [0:*]
set grid x
set arrow from 1, graph 0 to 1, graph 1 nohead front dashtype 2
set style fill solid 0.7
set boxwidth 0.7
$rows << end
{data}
end
plot $rows using (0.5*$2):0:(0.5*$2):(0.35):ytic(1) with boxxyerror notitle lc rgb "#3366aa"
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="runs of each side (5)")
    parser.add_argument("--millions", type=int, default=10, help="million locks of the long lines (10)")
    parser.add_argument("only", nargs="?", default="", help="run only lines with this in their name")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    rows = []
    print(ROW.format("work", "rival", "Holdfast", "rival's", "ratio", "spread", "budget", ""), flush=True)
    for line in [*table(options.millions), *cold_lines(options.millions), *value_type_lines()]:
        if options.only not in line.work:
            continue
        rows.append(measure(line, options.pairs))
        show(rows[-1])
    (OUT / "results.json").write_text(json.dumps({"machine": machine(), "lines": rows}, indent=1) + "\n",
                                      encoding="utf-8")
    draw(rows)
    for rival in (Etcd, ZooKeeper):
        if not rival.is_there():
            print(f"without {rival.name}, which bench/rivals.sh fetches")
    budgets = [row for row in rows if row["budget"]]
    met = sum(row["met"] for row in budgets)
    print(f"{met} of {len(budgets)} budgets are met; {OUT}/results.json, {OUT}/ratios.svg")


if __name__ == "__main__":
    sys.exit(main())
