#!/usr/bin/env python3
"""Runs the compatibility suite: each case once with Holdfast and once with stock Redis, at the same time.

Redis is the oracle: the same steps must have the same outcomes, line by line. Prints the differences and a
table of all cases. The last line is "N passed, N failed", with ", N skipped" if `npm ci` fails.
HOLDFAST_SERVER and REDIS_SERVER name the two binaries.
    run.py [--only NAME]... [--origin debian|npm] [--against redis]
"""
import argparse
import concurrent.futures
import ctypes
import difflib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from cases import ORIGINS, all_cases
from harness import Skipped

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOLDFAST = ROOT / os.environ.get("HOLDFAST_SERVER", "build/holdfast-server")
REDIS = ROOT / os.environ.get("REDIS_SERVER", "build/redis-server")
LIMIT_S = 60  # time limit of one side of one case
AT_ONCE = 2


def end_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Server:
    """A server for one side of one case. It starts without scripts, settings and data."""

    def __init__(self, is_holdfast):
        self.name = "Holdfast" if is_holdfast else "Redis"
        self.is_holdfast = is_holdfast

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-compat-")
        for _ in range(3):  # another process may take the port between its choice and its use
            if self.start():
                return self
        self.folder.cleanup()
        raise RuntimeError(f"{self.name} did not start:\n{self.log}")

    def start(self):
        self.port = free_port()
        command = [REDIS, "--port", self.port, "--save", "", "--appendonly", "no", "--dir",
                   self.folder.name]
        if self.is_holdfast:
            command = [HOLDFAST, "--port", "auto"]
        self.process = subprocess.Popen([*command, "--bind", "127.0.0.1"], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, preexec_fn=end_with_parent)
        self.log = ""
        for line in self.process.stdout:
            self.log += line
            if ready := re.search(r"eady to accept connections(?: on \S+:(\d+))?", line):
                self.port = ready.group(1) or self.port
                return True
        self.process.wait()
        return False

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.log += self.process.communicate(timeout=LIMIT_S)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.log += self.process.communicate()[0] + "\nit did not stop on SIGTERM"
        self.folder.cleanup()
        if self.process.returncode != 0:
            raise RuntimeError(f"{self.name} ended with status {self.process.returncode}:\n{self.log}")


def command_output(case, command, environment):
    """The exit status, output and errors of a command. After the time limit its process group ends."""
    process = subprocess.Popen(command, cwd=case.folder, env=os.environ | case.environment | environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, errors="backslashreplace", start_new_session=True,
                               preexec_fn=end_with_parent)
    try:
        out, errors = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, errors = process.communicate()
        errors += f"did not end within {LIMIT_S} s"
    return process.returncode, out, errors


def play(case, is_holdfast):
    """Runs a case on one server, and returns the lines of its steps."""
    with Server(is_holdfast) as server:
        side = {"HOST": "127.0.0.1", "PORT": server.port} | ({"HOLDFAST": "1"} if is_holdfast else {})
        status, out, errors = command_output(case, case.command, side)
    if status != 0:
        raise RuntimeError(f"with {server.name} it ended with status {status} after:\n{out}{errors}")
    lines = out.splitlines()
    if not lines:
        raise RuntimeError(f"with {server.name} it printed no step")
    return lines


def compared(lines):
    return [line for line in lines if not line.startswith("native:")]


def result_of(case, against_redis):
    """The result for the table, and the reason if the case failed."""
    with concurrent.futures.ThreadPoolExecutor(2) as sides:
        ours = sides.submit(play, case, not against_redis)
        theirs = sides.submit(play, case, False)
    try:
        left, right = compared(ours.result()), compared(theirs.result())
    except Exception as failure:  # after any failure the other cases still run
        return "failed", str(failure)
    difference = "\n".join(difflib.unified_diff(right, left, "Redis", "Holdfast", lineterm="", n=1))
    return ("failed", difference) if difference else ("passed", "")


def version_of(case):
    if isinstance(case.version, str):
        return case.version
    status, out, errors = command_output(case, case.version, {})
    return out.splitlines()[0].strip() if status == 0 and out else f"unknown ({errors.strip()})"


def run_case(case, broken, against_redis, last=False):
    """Runs a case and returns its row of the table. The result "again" means that it failed beside other
    cases: run_all() then runs it alone, as some libraries have deadlines that a busy machine misses."""
    began = time.monotonic()
    result, reason = broken.get(case.prepare) or result_of(case, against_redis)
    final = "again" if result == "failed" and not last and case.prepare not in broken else result
    text = f"{case.library}, {case.how}: {final} ({time.monotonic() - began:.1f} s)"
    mark = {"failed": "FAILED ", "skipped": "SKIPPED "}.get(final, "")
    print(mark + text + (": " if final == "skipped" else "\n") * bool(reason) + reason, flush=True)
    return case.library, version_of(case), case.how, final


def run_all(cases, against_redis):
    broken = prepared(cases)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        rows = list(pool.map(lambda case: run_case(case, broken, against_redis), cases))
    for at, case in enumerate(cases):
        if rows[at][3] == "again":
            rows[at] = run_case(case, broken, against_redis, last=True)
            if rows[at][3] == "passed":
                rows[at] = (*rows[at][:3], "passed alone")
    return rows


def prepared(cases):
    """Installs and compiles for the cases. If a step fails, the cases that need it fail too. If `npm ci`
    fails, the suite skips them."""
    broken = {}
    for prepare in dict.fromkeys(case.prepare for case in cases if case.prepare):
        try:
            prepare()
        except Skipped as reason:
            broken[prepare] = ("skipped", str(reason))
        except Exception as failure:
            broken[prepare] = ("failed", f"its preparation failed: {failure}")
    return broken


def print_table(rows):
    rows = [("library", "version", "how", "result"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    rows.insert(1, tuple("-" * width for width in widths))
    for row in rows:
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", metavar="NAME", action="append",
                         help="run the cases with NAME in their library's name")
    options.add_argument("--origin", choices=ORIGINS,
                         help="run the cases whose libraries come from there")
    options.add_argument("--against", choices=["holdfast", "redis"], default="holdfast",
                         help="redis: both sides are stock Redis, to work at the suite itself")
    chosen = options.parse_args()
    os.environ.pop("HOLDFAST", None)  # a case reads it to learn its side
    names = [name.lower() for name in chosen.only or [""]]
    cases = [case for case in all_cases(chosen.origin)
             if any(name in case.library.lower() for name in names)]
    if not cases:
        sys.exit(f"no library's name contains any of {chosen.only}")
    rows = run_all(cases, chosen.against == "redis")
    print_table(rows)
    failed = sum(row[3] == "failed" for row in rows)
    skipped = sum(row[3] == "skipped" for row in rows)
    told = f"{len(rows) - failed - skipped} passed, {failed} failed"
    print(told + f", {skipped} skipped" * (skipped > 0))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
