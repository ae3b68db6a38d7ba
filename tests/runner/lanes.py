"""Runs jobs beside each other: at most `lanes` at once, and of those that keep a core busy at most one for
each core. The longest ones start first. Beyond one job for each core, another starts only while the cores
have idle time: on a busy machine more jobs would only be slower, and exceed their timeouts."""
import collections.abc
import os
import pathlib
import time

from job import Job, Result, Running

POLL_S = 0.05
Report = collections.abc.Callable[[Result], None]


class IdleMeter:
    """Whether the machine was idle for at least a fifth of the last second. Answers once in a second."""

    def __init__(self):
        self.at_s = 0.0
        self.idle, self.all = 0, 0

    def has_idle_time(self) -> bool:
        if time.monotonic() < self.at_s + 1:
            return False
        line = pathlib.Path("/proc/stat").read_text("ascii").split("\n")[0]
        ticks = [int(word) for word in line.split()[1:]]
        idle, total = ticks[3] + ticks[4], sum(ticks)  # also while the disk is awaited
        is_idle = (idle - self.idle) * 5 > total - self.all
        self.at_s, self.idle, self.all = time.monotonic(), idle, total
        return is_idle


class Lanes:
    """The jobs that run and those that wait. `meter`: None to start jobs without regard to idle time."""

    def __init__(self, lanes: int, cores: int, logs: pathlib.Path, meter: IdleMeter | None = None):
        self.lanes = lanes
        self.cores = min(cores, lanes)
        self.logs = logs
        self.meter = meter
        self.running: dict[int, Running] = {}
        self.starting = False
        self.signals: list[int] = []  # that came while a job started
        logs.mkdir(parents=True, exist_ok=True)

    def fits(self, job: Job) -> bool:
        if len(self.running) >= self.lanes:
            return False
        busy = sum(running.job.weight == "cpu" for running in self.running.values())
        if job.weight == "cpu" and busy >= self.cores:
            return False
        return len(self.running) < self.cores or self.meter is None or self.meter.has_idle_time()

    def start(self, waiting: list[Job]) -> None:
        """Starts the jobs that fit, in their order, and takes them off the list."""
        for job in list(waiting):
            if self.fits(job):
                waiting.remove(job)
                print(f"== {job.name}: started", flush=True)
                self.starting = True
                running = Running(job, self.logs)
                self.running[running.pid] = running
                self.starting = False
                for number in self.signals:
                    os.kill(os.getpid(), number)

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
