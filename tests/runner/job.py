"""One suite, or one shard of it, as a process group: its start, its limit of seconds, its end, its log."""
import dataclasses
import os
import pathlib
import re
import signal
import subprocess
import time

GRACE_S = 10  # between SIGTERM and SIGKILL
# Suites that call make start a new one, and not a part of the make that started the tests.
OF_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
SUM = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.MULTILINE)
DOCTEST_SUM = re.compile(r"^\[doctest\] test cases: .*\| *(\d+) passed \| *(\d+) failed", re.MULTILINE)


@dataclasses.dataclass
class Job:
    """`target`: of a seeded suite, what to build on the base. `cases`: of a shard, the number of its test
    cases; doctest's own sum has those of all shards. `folder`: where it runs; None: here."""
    name: str
    suite_name: str
    words: list[str]
    weight: str
    seconds: int
    sum: str
    limit_s: float
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    target: str = ""
    cases: int | None = None
    folder: pathlib.Path | None = None


@dataclasses.dataclass
class Result:
    """What a job that ended has to report. `why` is empty, unless the runner itself found a failure."""
    job: Job
    passed: int
    failed: int
    skipped: int
    wall_s: float
    cpu_s: float
    log: pathlib.Path
    why: str = ""

    @property
    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")


def environment_without_make() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in OF_MAKE}


class Running:
    """A job that runs. Its processes are a group of their own, so that all of them can be ended."""

    def __init__(self, job: Job, logs: pathlib.Path):
        self.job = job
        self.log = logs / f"{job.name}.log"
        self.began = time.monotonic()
        self.ended_by_limit = False
        self.kill_at = 0.0
        with self.log.open("wb") as log:
            try:
                self.process = subprocess.Popen(job.words, stdin=subprocess.DEVNULL, stdout=log,
                                                stderr=subprocess.STDOUT, start_new_session=True,
                                                cwd=job.folder,
                                                env={**environment_without_make(), **job.environment})
            except OSError as failure:  # a program that does not exist
                log.write(f"{failure}\n".encode())
                self.process = subprocess.Popen(["false"], start_new_session=True)

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def check_limit(self, now: float) -> None:
        """Ends the job if it is over its limit: by SIGTERM, later by SIGKILL."""
        if self.ended_by_limit:
            if now >= self.kill_at:
                self.signal(signal.SIGKILL)
        elif now - self.began > self.job.limit_s:
            self.ended_by_limit, self.kill_at = True, now + GRACE_S
            self.signal(signal.SIGTERM)

    def result(self, wait_status: int, usage) -> Result:
        """What the job has to report. wait_status and usage are those of os.wait4()."""
        self.process.returncode = os.waitstatus_to_exitcode(wait_status)
        self.signal(signal.SIGKILL)  # what it left behind
        wall_s = time.monotonic() - self.began
        result = Result(self.job, 0, 0, 0, wall_s, usage.ru_utime + usage.ru_stime, self.log)
        counts = counts_of(self.job, result.text, self.process.returncode)
        result.passed, result.failed, result.skipped = counts or (0, 1, 0)
        if self.ended_by_limit:
            result.why = f"it did not end within its limit of {self.job.limit_s:g} s"
        elif counts is None:
            result.why = f"it ended with status {self.process.returncode} and did not print its sum"
        elif self.process.returncode != 0 and result.failed == 0:
            result.why = f"every test passed, but it ended with status {self.process.returncode}"
        result.failed = max(result.failed, 1 if result.why else 0)
        return result


def counts_of(job: Job, text: str, status: int) -> tuple[int, int, int] | None:
    """Passed, failed and skipped tests by the last sum in the output. None if there is no sum."""
    if job.sum == "status":
        return (1, 0, 0) if status == 0 else (0, 1, 0)
    found = (DOCTEST_SUM if job.sum == "doctest" else SUM).findall(text)
    if not found:
        return None
    passed, failed, *skipped = (int(number or 0) for number in found[-1])
    if job.cases is not None:
        passed = job.cases - failed
    return passed, failed, skipped[0] if skipped else 0
