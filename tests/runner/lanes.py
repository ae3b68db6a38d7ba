"""Runs jobs beside each other: at most `lanes` at once, and of those that keep a core busy at most one for
each core. The longest ones start first."""
import collections.abc
import os
import pathlib
import time

from job import Job, Result, Running

POLL_S = 0.05
Report = collections.abc.Callable[[Result], None]


class Lanes:
    """The jobs that run and those that wait."""

    def __init__(self, lanes: int, cores: int, logs: pathlib.Path):
        self.lanes = lanes
        self.cores = min(cores, lanes)
        self.logs = logs
        self.running: dict[int, Running] = {}
        logs.mkdir(parents=True, exist_ok=True)

    def fits(self, job: Job) -> bool:
        if len(self.running) >= self.lanes:
            return False
        busy = sum(running.job.weight == "cpu" for running in self.running.values())
        return job.weight == "wait" or busy < self.cores

    def start(self, waiting: list[Job]) -> None:
        """Starts the jobs that fit, in their order, and takes them off the list."""
        for job in list(waiting):
            if self.fits(job):
                waiting.remove(job)
                print(f"== {job.name}: started", flush=True)
                running = Running(job, self.logs)
                self.running[running.pid] = running

    def ended(self) -> Result | None:
        """The result of a job that has ended, if there is one."""
        for pid in list(self.running):
            found, status, usage = os.wait4(pid, os.WNOHANG)
            if found:
                return self.running.pop(pid).result(status, usage)
        return None

    def run(self, jobs: list[Job], report: Report) -> None:
        """Runs all jobs, and calls report() as soon as one has ended."""
        waiting = sorted(jobs, key=lambda job: -job.seconds)
        while waiting or self.running:
            self.start(waiting)
            if result := self.ended():
                report(result)
                continue
            for running in self.running.values():
                running.check_limit(time.monotonic())
            time.sleep(POLL_S)

    def stop(self, number: int, grace_s: float) -> None:
        """Ends all jobs: by this signal, and after grace_s by SIGKILL."""
        for running in self.running.values():
            running.signal(number)
        deadline = time.monotonic() + grace_s
        while self.running and time.monotonic() < deadline:
            if self.ended() is None:
                time.sleep(POLL_S)
        for running in self.running.values():
            running.signal(9)
