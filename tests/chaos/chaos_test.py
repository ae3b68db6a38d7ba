#!/usr/bin/env python3
"""Tests the chaos test. A short run finds no violation. A run on servers that lose their locks finds the
violations. No run leaves network namespaces behind. The last line is "N passed, N failed"."""
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import LIMIT_S, equal, has, run_tests, test
from network import PREFIX, SPACES
from schedule import KINDS, make_schedule


def begin(*args):
    return subprocess.Popen([HERE / "chaos.py", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True)


def chaos(*args):
    """Runs chaos.py to its end. Returns its output and exit status."""
    run = begin(*args)
    told, _ = run.communicate(timeout=2 * LIMIT_S)
    equal(left_behind(run.pid), [])
    return told, run.returncode


def left_behind(pid):
    return [path.name for path in SPACES.glob(f"{PREFIX}{pid}-*")]


@test
def a_short_run_finds_no_violation(_):
    told, status = chaos("--seconds", "7", "--servers", "3")
    print(told, end="")
    equal(status, 0)
    has(told, "violations 0", "7 passed, 0 failed")


@test
def a_run_finds_the_locks_that_a_server_loses(_):
    told, status = chaos("--seconds", "9", "--servers", "1", "--durability", "forgetful", "--faults",
                         "kill", "--seed", "5", "--settle", "1")
    equal(status, 1)
    # If no owner noticed its loss, another owner must have got the lock while the first relied on it.
    if "FAILED durability: lost" not in told:
        has(told, "FAILED mutual exclusion")


@test
def an_interrupted_run_leaves_no_namespaces(_):
    for number in (signal.SIGINT, signal.SIGTERM):
        run = begin("--seconds", "60", "--servers", "1")
        for line in run.stdout:
            if "servers: " in line:
                break
        time.sleep(0.3)  # at some point of its start
        os.kill(run.pid, number)
        run.communicate(timeout=LIMIT_S)
        equal((run.returncode != 0, left_behind(run.pid)), (True, []))


@test
def a_seed_determines_the_faults(_):
    def made(seed):
        return make_schedule(seed, 30, ["s0", "s1"], ["c0"], KINDS)

    equal(made(7), made(7))
    equal(made(7) == made(8), False)
    equal({fault.kind for seed in range(20) for fault in made(seed)}, set(KINDS))


if __name__ == "__main__":
    run_tests()
