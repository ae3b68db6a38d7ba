"""Shared by the tests of the command: a server that the command finds, the command as a process, and the
state of its lock on the server."""
import contextlib
import json
import os
import pathlib
import re
import subprocess

from harness import HOLDFAST, LIMIT_S, Server, data_folder, end_with_parent, equal

COMMAND = os.path.join(os.path.dirname(os.path.abspath(HOLDFAST)), "holdfast")
NAME = "job"
# Appends "start TOKEN" and "stop TOKEN" to the file $0. All processes of its group share a flock. If the
# script starts while another group has the flock, it appends "overlap".
RECORDS = """exec 9>"$0.lock"; flock -n 9 || echo overlap >>"$0"
trap 'echo "stop $HOLDFAST_TOKEN" >>"$0"; exit 0' TERM
echo "start $HOLDFAST_TOKEN" >>"$0"; sleep 1000 & wait"""
# The same, but TERM does not end it.
RECORDS_AND_IGNORES_TERM = RECORDS.replace("trap 'echo \"stop", "trap '' TERM; : 'echo \"stop")
IGNORES_TERM = "trap '' TERM; echo up; while :; do sleep 1000; done"


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def port_of(server):
    return re.search(r"connections on 127\.0\.0\.1:(\d+)", server.log).group(1)


def recorded(path):
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


@contextlib.contextmanager
def service():
    with data_folder() as folder, Server(folder, "--port", "auto") as server:
        os.environ["HOLDFAST_SERVERS"] = f"holdfast://127.0.0.1:{port_of(server)}"
        yield server


def start(*words):
    """Starts the command with these words and without input."""
    return subprocess.Popen([COMMAND, *map(str, words)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent)


def ended(process, status):
    """Ends the input of the process, which must exit with this status, or one of these, and returns both
    outputs."""
    out, err = process.communicate(timeout=LIMIT_S)
    if process.returncode not in (status if isinstance(status, tuple) else (status,)) or "Sanitizer" in err:
        raise AssertionError(f"status {process.returncode}, wanted {status}: {out!r} {err!r}")
    return out, err


def call(status, *words):
    return ended(start(*words), status)


def call_json(*words, status=0):
    """The JSON value that the command prints, on one line."""
    out = call(status, *words, "--json")[0]
    equal(out.count("\n"), 1)
    return json.loads(out)


class Run:
    """`holdfast run` with these options and this command; its input and both outputs are pipes."""

    def __init__(self, options, command, before=lambda: None):
        def prepare():
            end_with_parent()
            before()
        words = [COMMAND, "run", *map(str, options), NAME, "--", *command]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=prepare)

    def line(self):
        return self.process.stdout.readline().strip()

    def ended(self, status):
        return ended(self.process, status)


def run(status, options, command):
    return Run(options, command).ended(status)


def info(server):
    """LOCKS INFO as a dict, with holders and waiters as lists of dicts; None if the lock is free."""
    def pairs(flat):
        return {flat[i].decode(): flat[i + 1] for i in range(0, len(flat), 2)}
    flat = server.ask("LOCKS", "INFO", NAME)
    if flat is None:
        return None
    all_of_it = pairs(flat)
    return all_of_it | {role: [pairs(one) for one in all_of_it[role]] for role in ("holders", "waiters")}
