#!/usr/bin/env python3
"""Makes the data folders of a released version: make.py SERVER, as root. README.md says what for, and how.

SERVER is the holdfast-server of that version. The folders go to tests/folders/VERSION, and beside them
expected.json: what that server had before each stop. upgrade_test.py compares later servers with it."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from folder_state import Reader, plain  # noqa: E402, this needs the path above
from harness import Client, Server, until  # noqa: E402

BOOT_ID = "/proc/sys/kernel/random/boot_id"
A_BOOT_ID = "00000000-0000-4000-8000-000000000001\n"  # no machine has it: for later servers it has rebooted
HOUR_MS = 3_600_000
YEARS_MS = 100 * 365 * 24 * HOUR_MS
BYTES = bytes(range(256))
# How each folder is written: the options of the server, whether a snapshot is made between the two halves
# of the changes, and whether the server is stopped or killed.
FOLDERS = {
    "stopped": ([], False, "stop"),
    "saved-and-stopped": ([], True, "stop"),
    "snapshot-only": (["--appendonly", "no", "--compress", "no", "--save", "3600 1000000"], False, "stop"),
    "killed": (["--appendfsync", "always"], True, "kill"),
    "crashed": ([], False, "kill"),
}


def locks(ask):
    ask("LOCK", "exclusive", "alice", HOUR_MS)
    ask("LOCK", "exclusive without end", "alice", 0)
    ask("LOCK", "for years", "alice", YEARS_MS)
    for i in range(3):
        ask("LOCK", "shared", f"reader-{i}", HOUR_MS + i, "SHARED")
    for i in range(2):
        ask("LOCK", "semaphore", f"job-{i}", HOUR_MS, "LIMIT", 3)
    ask("LOCK", "delayed", "alice", HOUR_MS, "DELAY", 5 * HOUR_MS)
    ask("LOCKS", "BREAK", "delayed")
    ask("LOCK", "shared and delayed", "alice", HOUR_MS, "SHARED", "DELAY", 9 * HOUR_MS)
    ask("LOCK", "session", "alice", HOUR_MS, "SESSION")
    ask("LOCK", BYTES, BYTES[:200], HOUR_MS)
    ask("LOCK", b"k" * 1500, "owner of a long key", HOUR_MS)
    ask("LOCK", "renewed", "alice", HOUR_MS)
    ask("RENEW", "renewed", "alice", 2 * HOUR_MS)
    ask("LOCK", "fenced", "alice", HOUR_MS)
    ask("FENCE", "fenced", "alice", int(ask("TIME")[0]) * 1_000_000 + 40_000_000)
    for key in ("released", "released twice"):
        ask("LOCK", key, "alice", HOUR_MS)
        ask("UNLOCK", key, "alice")
    ask("LOCK", "released twice", "alice", HOUR_MS, "SHARED")
    ask("UNLOCK", "released twice", "alice")
    ask("LOCK", "expires at once", "alice", 1)
    ask("LOCK", "far ahead", "alice", HOUR_MS)  # of the clock: such a token is in meta by itself
    ask("FENCE", "far ahead", "alice", (int(ask("TIME")[0]) * 1000 + 10 * HOUR_MS) * 1000)


def notes(ask):
    """A version without notes answers with an error, and grants nothing."""
    ask("LOCK", "noted", "alice", HOUR_MS, "NOTE", "nightly report", may_fail=True)
    ask("LOCK", "shared and noted", "alice", HOUR_MS, "SHARED", "NOTE", BYTES[:50], may_fail=True)


def leases(ask):
    ask("LEASE", "GRANT", "granted", HOUR_MS, "desk:1", "alice", "desk:2", "alice")
    ask("LEASE", "GRANT", "for years", YEARS_MS, "desk:3", "alice")
    for end in ("CONFIRM", "CANCEL"):
        ask("LEASE", "GRANT", end, HOUR_MS, f"desk:{end}", "alice")
        ask("LEASE", end, end)


def values(ask):
    ask("SET", "string", "value")
    ask("SET", "string with ttl", "value", "PX", HOUR_MS)
    ask("SET", "empty", "")
    ask("SET", "bytes", BYTES)
    ask("SET", "long", b"v" * 5_000)
    ask("SET", "number", 41)
    ask("INCR", "number")
    ask("HSET", "hash", "field", "value", BYTES, BYTES, "empty", "")
    ask("HSET", "large hash", *(word for i in range(120) for word in (f"field:{i}", f"value:{i}")))
    ask("HDEL", "large hash", "field:0")
    ask("PEXPIRE", "large hash", HOUR_MS)
    ask("EVAL", "return redis.call('set', KEYS[1], 'by a script')", 1, "scripted")
    ask("RENAME", "scripted", "renamed")
    ask("SET", "deleted", "value")
    ask("DEL", "deleted")
    ask("SELECT", 3)
    ask("LOCK", "in database 3", "alice", HOUR_MS)
    ask("HSET", "hash in database 3", "field", "value")
    ask("SELECT", 5)
    ask("SET", "flushed", "value")
    ask("FLUSHDB")
    ask("SELECT", 0)


def changes_after_the_snapshot(ask):
    ask("LOCK", "later", "alice", HOUR_MS)
    ask("LOCK", "shared", "reader-9", HOUR_MS, "SHARED")
    ask("UNLOCK", "shared", "reader-0")
    ask("UNLOCK", "exclusive without end", "alice")
    ask("LOCK", "exclusive without end", "bob", 0)
    ask("RENEW", "exclusive", "alice", 3 * HOUR_MS)
    ask("SET", "string", "changed")
    ask("HSET", "hash", "another field", "value")
    ask("HDEL", "hash", "empty")
    ask("DEL", "empty")
    ask("LEASE", "GRANT", "later", HOUR_MS, "desk:later", "bob")
    ask("SELECT", 3)
    ask("SWAPDB", 3, 4)
    ask("SELECT", 0)


class Checked:
    """Sends requests of which none may fail. Remembers the last token of each key, and the leases."""

    def __init__(self, server):
        self.server = server
        self.tokens = {}
        self.leases = set()

    def __call__(self, *words, may_fail=False):
        reply = self.server.ask(*words)
        if isinstance(reply, Exception) and not may_fail:
            raise AssertionError(f"{words!r:.200}: {reply}")
        token = {"LOCK": lambda: reply[1], "FENCE": lambda: reply}.get(words[0])
        if token and not isinstance(reply, Exception):
            self.tokens[plain(words[1])] = token()
        if words[:2] == ("LEASE", "GRANT"):
            self.leases.add(words[2])
        return reply


def write_until_killed(server):
    """Kills the server while it writes. Returns the tokens of the grants that it answered, by key."""
    tokens = {}
    with contextlib.suppress(EOFError, OSError):
        for i in range(10_000):
            server.send(("LOCK", f"load:{i}", "alice", HOUR_MS))
            if i == 40:
                threading.Thread(target=server.process.kill).start()
            tokens[f"load:{i}"] = server.reply()[1]
    server.kill()
    return tokens


def make(path, command, options, saves, end):
    """Makes one folder. Returns the state that a later server must have."""
    with Server(path, "--session-grace", str(HOUR_MS), *options, command=command) as server:
        ask = Checked(server)
        for part in (locks, notes, leases, values):
            part(ask)
        if saves:
            ask("SAVE")
        changes_after_the_snapshot(ask)
        state = state_with_a_waiter(server.path, ask)
        state["tokens"] = ask.tokens
        state["answered"] = write_until_killed(server) if end == "kill" else {}
    (path / "lock").unlink()
    return state


def state_with_a_waiter(path, ask):
    """The state of the server while a client waits. The end of the server ends the wait too."""
    waiter = Client(path)
    waiter.send(("LOCK", "exclusive", "a waiter", HOUR_MS, "WAIT", HOUR_MS))
    reader = Reader(Client(path))
    until(lambda: "a waiter" in str(reader.ask("LOCKS", "INFO", "exclusive")))
    return {**reader.state(ask.tokens, sorted(ask.leases)), "at_ms": reader.end_ms(0)}


def make_all(command):
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    version = HERE / said.split()[1]
    version.mkdir()
    expected = {}
    with tempfile.TemporaryDirectory() as work:
        for name, how in FOLDERS.items():
            expected[name] = make(pathlib.Path(work, name), command, *how)
            shutil.copytree(pathlib.Path(work, name), version / name)
    text = json.dumps(expected, separators=(",", ":"), sort_keys=True).replace("},", "},\n")
    (version / "expected.json").write_text(text + "\n", encoding="ascii")


def main():
    if pathlib.Path(BOOT_ID).read_text(encoding="ascii") == A_BOOT_ID:
        return make_all(os.path.abspath(sys.argv[1]))
    with tempfile.NamedTemporaryFile("w", encoding="ascii") as boot_id:
        boot_id.write(A_BOOT_ID)
        boot_id.flush()
        with_id = f'mount --bind {boot_id.name} {BOOT_ID} && exec "$@"'
        again = ["unshare", "--mount", "sh", "-c", with_id, "sh", sys.executable, *sys.argv]
        return subprocess.run(again, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
