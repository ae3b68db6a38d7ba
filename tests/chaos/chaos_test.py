#!/usr/bin/env python3
"""Tests the chaos test. A short run finds no violation. A run on servers that lose their locks finds the
violations. No run leaves namespaces, folders, mounts or processes behind. The last line is "N passed,
N failed"."""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

TRIES = 3  # on a busy machine few locks are granted, and their owners may not notice the loss
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import LIMIT_S, equal, has, run_tests, test, until
from chaos import FOLDER
from disk import HOWS
from history import Recorder, load
from network import PREFIX, SPACES
from processes import Helper
from schedule import KINDS, choose_kinds, make_schedule
from silence import faults_of_silence


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
    """The namespaces of a test, its folders, and the processes that use them."""
    spaces = [path.name for path in SPACES.glob(f"{PREFIX}{pid}-*")]
    folders = [path.name for path in pathlib.Path(tempfile.gettempdir()).glob(f"{FOLDER}{pid}-*")]
    words = [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    processes = [text for text in words if f"{FOLDER}{pid}-".encode() in text]
    mounts = f"{FOLDER}{pid}-" in pathlib.Path("/proc/mounts").read_text("utf-8")
    return [*spaces, *folders, *processes, *(["a mount"] if mounts else [])]


@test
def a_short_run_finds_no_violation(_):
    told, status = chaos("--seconds", "6", "--servers", "3", "--faults", "all")
    print(told, end="")
    equal(status, 0)
    has(told, "violations 0", "8 passed, 0 failed")


@test
def a_run_finds_the_locks_that_a_server_loses(_):
    for _ in range(TRIES):
        told, status = chaos("--seconds", "7", "--servers", "1", "--durability", "forgetful", "--faults",
                             "kill", "--seed", "1194", "--settle", "1")
        # If no owner noticed its loss, another owner must have got the lock while the first relied on it.
        if status == 1 and ("FAILED durability: lost" in told or "FAILED mutual exclusion" in told):
            return
    raise AssertionError(told)


@test
def the_prober_notices_a_server_that_stops(_):
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder, contextlib.ExitStack() as ends:
        folder = pathlib.Path(folder)
        sockets = {name: str(folder / name) for name in ("s0", "null")}
        servers = {name: Helper(name, folder, [path]) for name, path in sockets.items()}
        history = folder / "h"
        prober = Helper("prober", folder, [{"servers": sockets, "name": "prober", "history": str(history),
                                            "until": time.monotonic() + LIMIT_S}])
        for process in (*servers.values(), prober):
            process.start()
            ends.callback(process.kill)
            if process is not prober:
                process.until_listening(sockets[process.node])
        until(history.exists)
        until(lambda: any(probe.place == "s0" for probe in load([history]).probes))
        faults = Recorder(folder / "f", "faults")
        number = faults.invoke(op="stop", place="s0")[0]
        servers["s0"].signal(signal.SIGSTOP)
        time.sleep(1.8)
        servers["s0"].signal(signal.SIGCONT)
        faults.returned(number, "ok")
        until(lambda: faults_of_silence(load([history])))
        equal(faults_of_silence(load([history, folder / "f"])), [])


@test
def an_interrupted_run_leaves_nothing_behind(_):
    for number in (signal.SIGINT, signal.SIGTERM):
        run = begin("--seconds", "60", "--servers", "1", "--faults", "full")
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
    equal({fault.how for seed in range(90) for fault in made(seed) if fault.kind == "folder"}, set(HOWS))


@test
def a_seed_chooses_the_kinds_of_faults(_):
    chosen = [choose_kinds(seed, KINDS) for seed in range(50)]
    equal(chosen, [choose_kinds(seed, KINDS) for seed in range(50)])
    equal({kind for kinds in chosen for kind in kinds}, set(KINDS))
    equal(min(map(len, chosen)) >= 3 and max(map(len, chosen)) < len(KINDS), True)
    equal(choose_kinds(1, ["kill"]), ["kill"])


if __name__ == "__main__":
    run_tests()
