#!/usr/bin/env python3
"""Instructions of the core for each unit of work. callgrind counts a case of build/bench/micro with N and 2
N repetitions, and the difference excludes the preparation. The counts hardly differ between runs and
between machines, so they show the effect of a change. MICRO names the program."""
import os
import re
import subprocess
import tempfile

MICRO = os.environ.get("MICRO", "build/bench/micro")
TIMES = 20_000


def instructions(name, times):
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder}/out", MICRO, "--count",
                   name, str(times)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr).group(1))


def main():
    names = subprocess.run([MICRO, "--names"], capture_output=True, text=True, check=True).stdout
    print(f"{'case':<28} {'unit':<8} {'instructions':>12}")
    for line in names.splitlines():
        name, unit = line.split()
        each = (instructions(name, 2 * TIMES) - instructions(name, TIMES)) / TIMES
        print(f"{name:<28} {unit:<8} {each:>12,.0f}", flush=True)


if __name__ == "__main__":
    main()
