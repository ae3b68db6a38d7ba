#!/usr/bin/env python3
"""Plays fresh seeds of a simulation for a time: minutes.py sim|tickets|sim-server SECONDS.

`make test-all` calls it. Each process of the simulation plays a batch of seeds; the first seed is
HOLDFAST_SEED. Prints the last lines of each batch. Ends after SECONDS, or after the first batch that fails.
The last line is "N passed, N failed", counted in batches.
"""
import os
import subprocess
import sys
import time

SCHEDULES = 5_000    # of a batch of build/sim
TICKETS = 200        # random runs of a batch of its waits by ticket, beside all named cases
STEPS = 200_000      # of a batch of build/sim-server
STEPS_OF_RUN = 1_000
LINES = 3


def command(name: str, first: int) -> tuple[list[str], dict[str, str], int]:
    """The command of a batch, its environment, and the first seed of the next batch."""
    if name == "sim":
        settings = {"HOLDFAST_SEED": str(first), "HOLDFAST_SCHEDULES": str(SCHEDULES)}
        return ["build/sim", "-tc=*clients on several*"], settings, first + SCHEDULES
    if name == "tickets":
        settings = {"HOLDFAST_SEED": str(first), "HOLDFAST_SCHEDULES": str(TICKETS),
                    "HOLDFAST_CASES": "all"}
        return ["build/sim", "-tc=tickets simulation*"], settings, first + TICKETS
    return (["build/sim-server", str(first), str(STEPS), str(STEPS_OF_RUN)], {},
            first + 2 * STEPS // STEPS_OF_RUN)  # a run may end before its last step


def play(name: str, first: int) -> tuple[bool, int]:
    """Plays a batch. Returns whether it passed, and the first seed of the next one."""
    words, settings, following = command(name, first)
    done = subprocess.run(words, env=os.environ | settings, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    shown = done.stdout.rstrip("\n").split("\n")
    print("\n".join(shown[-LINES:] if done.returncode == 0 else shown), flush=True)
    return done.returncode == 0, following


def main() -> int:
    name, seconds = sys.argv[1], float(sys.argv[2])
    end, seed, passed, failed = time.monotonic() + seconds, int(os.environ.get("HOLDFAST_SEED", "1")), 0, 0
    while time.monotonic() < end and not failed:
        good, seed = play(name, seed)
        passed, failed = passed + good, failed + (not good)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
