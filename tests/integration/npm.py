"""The npm packages that a folder's package-lock.json names, installed in a folder of build/. If `npm ci`
fails, no suite of the same run tries it again: the tests that need packages are skipped, with the reason of
the first failure. HOLDFAST_RUN identifies the run; without it each process is a run of its own."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import shutil
import subprocess

from harness import Skipped

LIMIT_S = 120  # timeout of one `npm ci`
STATE = pathlib.Path(__file__).resolve().parents[2] / "build/npm-failed.json"
RUN = os.environ.get("HOLDFAST_RUN") or f"process {os.getpid()}"
COMMAND = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1")


@contextlib.contextmanager
def locked():
    """One suite at a time installs packages; the others wait for its result."""
    STATE.parent.mkdir(parents=True, exist_ok=True)
    with STATE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def failure():
    """Why `npm ci` failed earlier in this run, or None."""
    with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
        state = json.loads(STATE.read_text("utf-8"))
        return state["reason"] if state["run"] == RUN else None


def cause_of(output):
    """The first error that npm prints. Warnings about engines (EBADENGINE) come before the errors."""
    errors = [line for line in output.splitlines() if re.match(r"npm (ERR!|error)", line)]
    told = [line for line in errors if re.search("request to|certificate", line)]
    return told[0] if told else "; ".join(errors[:3])


def run_npm(folder):
    """The reason why `npm ci` failed, or None."""
    try:
        done = subprocess.run(COMMAND, cwd=folder, text=True, stdin=subprocess.DEVNULL, timeout=LIMIT_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    except OSError as error:
        return f"npm does not start: {error}"
    except subprocess.TimeoutExpired:
        return f"npm ci did not end within {LIMIT_S} s"
    if done.returncode != 0:
        return f"npm ci failed: {cause_of(done.stdout) or f'status {done.returncode}'}"
    return None


def install(source, build):
    """Installs the packages of source/package-lock.json in build/node_modules, unless they are there.
    Raises Skipped if that fails, or if `npm ci` has failed in this run."""
    lock = (source / "package-lock.json").read_bytes()
    installed = build / "installed.json"
    with locked():
        if installed.exists() and installed.read_bytes() == lock:
            return
        if not (reason := failure()):
            build.mkdir(parents=True, exist_ok=True)
            installed.unlink(missing_ok=True)
            for name in ("package.json", "package-lock.json"):
                shutil.copy(source / name, build / name)
            if reason := run_npm(build):
                STATE.write_text(json.dumps({"run": RUN, "reason": reason}), "utf-8")
            else:
                installed.write_bytes(lock)
    if reason:
        raise Skipped(reason)
