"""The results of runs on one tree, so that a run that failed in one suite need not repeat the others."""
import json
import pathlib

from job import Job, Result

FIELDS = ("passed", "skipped", "wall_s", "cpu_s")


class Kept:
    """The jobs that have passed on this tree, and how often each has run. Each change is written to the
    file, so that a run that was stopped has lost nothing. `tree`: the hash of the tree; the file of another
    tree does not count."""

    def __init__(self, path: pathlib.Path, tree: str):
        self.path = path
        self.tree = tree
        self.jobs: dict[str, dict] = {}
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if found.get("tree") == tree:
            self.jobs = found["jobs"]

    def add(self, result: Result) -> None:
        runs = self.jobs.get(result.job.name, {}).get("runs", 0) + 1
        self.jobs[result.job.name] = {"runs": runs, "failed": result.failed,
                                      **{name: getattr(result, name) for name in FIELDS}}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps({"tree": self.tree, "jobs": self.jobs}), encoding="utf-8")
        new.replace(self.path)

    def passed(self, job: Job, logs: pathlib.Path) -> Result | None:
        """The result of a job that has passed; its log is that of the run. None: it must run."""
        found = self.jobs.get(job.name)
        log = logs / f"{job.name}.log"
        if not found or found["failed"] or not log.exists():
            return None
        return Result(job, failed=0, log=log, **{name: found[name] for name in FIELDS})

    def repeated(self) -> list[str]:
        """The jobs that have run more than once."""
        return sorted(name for name, found in self.jobs.items() if found["runs"] > 1)
