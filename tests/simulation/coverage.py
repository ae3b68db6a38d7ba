#!/usr/bin/python3
"""Runs the simulations with counters, and prints which lines of src/core and src/io they reach.

The table has one line for each folder: its lines of code, and the share that the simulation of the whole
server runs, then the share with the engine's simulation too, then with the quorum's. The file
build/coverage/uncovered.txt lists the functions with lines that none runs. `make sim-coverage` calls
this script.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys

FOLDER = pathlib.Path("build/coverage")
ROOMS = ("src/core/", "src/io/")


def programs(arguments):
    """The name of each simulation, with its command. The counters of each add to those before."""
    tests = str(FOLDER / "simulations")
    return [
        ("server", [str(FOLDER / "sim-server"), arguments.seed, arguments.steps]),
        ("engine", [tests, "-tc=simulation: engine*"]),
        ("quorum", [tests, "-tc=redlock simulation*"]),
    ]


def counters():
    return sorted(str(path) for path in FOLDER.glob("src/**/*.gcda"))


def collect(files):
    """Returns {file: {line: (count, function)}} from gcov's report of these files with counters."""
    lines = collections.defaultdict(dict)
    for start in range(0, len(files), 20):
        command = ["gcov", "--json-format", "--stdout", "--relative-only"]
        some = files[start:start + 20]
        report = subprocess.run(command + some, check=True, capture_output=True, text=True)
        for text in report.stdout.splitlines():
            for entry in json.loads(text)["files"]:
                if entry["file"].startswith(ROOMS):
                    add(lines[entry["file"]], entry)
    return lines


def add(known, entry):
    names = {function["name"]: function["demangled_name"] for function in entry["functions"]}
    for line in entry["lines"]:
        number = line["line_number"]
        count, function = known.get(number, (0, names.get(line.get("function_name"), "")))
        known[number] = (count + line["count"], function)


def shares(lines):
    """Returns {folder: (lines, reached lines)}."""
    rooms = collections.defaultdict(lambda: [0, 0])
    for file, known in lines.items():
        for room in (os.path.dirname(file), file.split("/")[0] + "/" + file.split("/")[1]):
            rooms[room][0] += len(known)
            rooms[room][1] += sum(1 for count, _ in known.values() if count > 0)
    return rooms


def print_table(names, columns):
    heads = "".join(f"{'+ ' + name if i else name:>12}" for i, name in enumerate(names))
    print(f"{'folder':24}{'lines':>8}{heads}")
    for room in sorted(columns[-1]):
        total = columns[-1][room][0]
        cells = "".join(f"{100 * column[room][1] / total:11.1f}%" for column in columns)
        print(f"{room:24}{total:>8}{cells}")


def ranges(numbers):
    """Writes 3, 4, 5, 9 as 3-5, 9."""
    parts = []
    for n in sorted(numbers):
        if parts and parts[-1][1] == n - 1:
            parts[-1][1] = n
        else:
            parts.append([n, n])
    return ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def write_uncovered(lines):
    path = FOLDER / "uncovered.txt"
    with path.open("w") as out:
        for file in sorted(lines):
            missing = {n: function for n, (count, function) in lines[file].items() if count == 0}
            if not missing:
                continue
            print(f"{file}: {len(missing)} of {len(lines[file])} lines", file=out)
            by_function = collections.defaultdict(list)
            for number, function in missing.items():
                by_function[function].append(number)
            for function, numbers in sorted(by_function.items(), key=lambda item: min(item[1])):
                print(f"  {ranges(numbers)}: {short(function)}", file=out)
    return path


def short(function):
    name = function.replace("(anonymous namespace)::", "").split("(")[0].split("<")[0]
    return name.rsplit("::", 1)[-1] or "(several functions)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", default="1", help="the first seed of the server's simulation")
    parser.add_argument("--steps", default="200000", help="the steps of the server's simulation")
    parser.add_argument("--keep", action="store_true", help="add to the counters of earlier runs")
    arguments = parser.parse_args()
    for file in counters() if not arguments.keep else []:
        os.unlink(file)
    names, columns = [], []
    for name, command in programs(arguments):
        if subprocess.run(command).returncode != 0:
            sys.exit(f"the simulation '{name}' has failed")
        lines = collect(counters())
        names.append(name)
        columns.append(shares(lines))
    print_table(names, columns)
    print("lines that no simulation runs:", write_uncovered(lines))


if __name__ == "__main__":
    main()
