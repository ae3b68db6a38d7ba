"""Runs the stages that a change must pass: lint, packages, build, test, and a slice of the heavy tests.

Prints the wall and CPU minutes of each stage. The run fails if a stage fails, if all stages together use
more than 40 minutes of CPU (70 with packages; the run of a red seed on the base does not count), if they
take 60 minutes, or if the last `make test-all` is too old. The last line is
"N passed, N failed[, N skipped]", summed over the stages with tests.
"""
import dataclasses
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time

MOST_CPU_MINUTES = 40
PACKAGES_CPU_MINUTES = 30  # more, if a suite needs the packages
PACKAGES = "packages-for-tests"  # the target of make that builds them
MOST_WALL_MINUTES = 60
STOP_GRACE_S = 20  # the runner of tests ends its suites within it
ON_BASE = re.compile(r"== on the base: ([\d.]+) minutes of CPU\n?")
SUM = re.compile(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\n?")
RUNNER = ["python3", "-B", "tests/run.py"]
BEGAN = time.monotonic()


@dataclasses.dataclass
class Stage:
    """`ends`: whether the next stages cannot run without this one."""
    name: str
    command: list[str]
    ends: bool = True


@dataclasses.dataclass
class Totals:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    base_minutes: float = 0  # of CPU
    faults: list[str] = dataclasses.field(default_factory=list)

    @property
    def closing_line(self) -> str:
        failed = self.failed + len(self.faults)
        return f"{self.passed} passed, {failed} failed" + f", {self.skipped} skipped" * (self.skipped > 0)


def cpu_s() -> float:
    """The CPU time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def needs_of(*options: str) -> list[str]:
    """The targets of make that the suites of such a run need."""
    return subprocess.run([*RUNNER, *options, "--needs"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()


def stages() -> list[Stage]:
    """The packages are a stage if the change touches what they consist of, or if the slice needs them. In the
    first case most suites of the slices run anyhow, and there is no slice."""
    changed = needs_of()
    packages = changed or [target for target in needs_of("--slice") if target == PACKAGES]
    return [Stage("lint", ["make", "lint"]),
            *([Stage("packages", ["make", *packages])] if packages else []),
            Stage("build", ["make", "test-build"]),
            Stage("test", ["make", "test"], ends=False),
            *([] if changed else [Stage("slice", [*RUNNER, "--slice"], ends=False)])]


def stop(process: subprocess.Popen) -> None:
    """Ends a stage that is over the limit of the whole run."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(STOP_GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)


def run_command(command: list[str], totals: Totals) -> tuple[int, bool]:
    """Runs a command and prints its output, except the sums, which it adds up. Returns the exit status,
    and whether the command had to be ended."""
    left_s = MOST_WALL_MINUTES * 60 - (time.monotonic() - BEGAN)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: (stop(process), os._exit(128 + number)))
    ended = []
    timer = threading.Timer(max(left_s, 0), lambda: (ended.append(True), stop(process)))
    timer.start()
    for line in process.stdout:
        if found := SUM.fullmatch(line):
            totals.passed += int(found[1])
            totals.failed += int(found[2])
            totals.skipped += int(found[3] or 0)
            continue
        if found := ON_BASE.fullmatch(line):
            totals.base_minutes += float(found[1])
        print(line, end="", flush=True)
    status = process.wait()
    timer.cancel()
    return status, bool(ended)


def run_stage(stage: Stage, totals: Totals) -> str:
    """Runs a stage, and prints its minutes. Returns the line about them."""
    began_s, cpu_before_s, failed_before = time.monotonic(), cpu_s(), totals.failed
    print(f"== stage {stage.name}", flush=True)
    status, ended = run_command(stage.command, totals)
    wall = (time.monotonic() - began_s) / 60
    told = f"stage {stage.name}: {wall:.1f} minutes, {(cpu_s() - cpu_before_s) / 60:.1f} minutes of CPU"
    print(f"== {told}", flush=True)
    if ended:
        totals.faults.append(f"the run took {MOST_WALL_MINUTES} minutes, its limit, in stage {stage.name}")
    elif status != 0 and totals.failed == failed_before:
        totals.faults.append(f"stage {stage.name} ended with status {status}")
    return told


def run_all(totals: Totals) -> list[str]:
    """Runs the stages until one fails without which the next ones cannot run."""
    told = []
    for stage in stages():
        faults = len(totals.faults)
        told.append(run_stage(stage, totals))
        if len(totals.faults) > faults and (stage.ends or time.monotonic() - BEGAN > MOST_WALL_MINUTES * 60):
            break
    return told


def main() -> int:
    totals = Totals()
    age = subprocess.run([*RUNNER, "--age"], stdout=subprocess.PIPE, text=True, check=False)
    if age.returncode != 0:
        totals.faults.append(age.stdout.strip())
    told = run_all(totals)
    cpu_minutes, wall_minutes = cpu_s() / 60, (time.monotonic() - BEGAN) / 60
    most = MOST_CPU_MINUTES + PACKAGES_CPU_MINUTES * any(line.startswith("stage packages") for line in told)
    if cpu_minutes - totals.base_minutes > most:
        totals.faults.append(f"the run used {cpu_minutes:.1f} minutes of CPU, more than {most}")
    for line in told:
        print(line)
    print(f"all stages: {wall_minutes:.1f} minutes, {cpu_minutes:.1f} minutes of CPU")
    for fault in totals.faults:
        print(f"FAILED: {fault}")
    print(totals.closing_line, flush=True)
    return 1 if totals.failed or totals.faults else 0


if __name__ == "__main__":
    sys.exit(main())
