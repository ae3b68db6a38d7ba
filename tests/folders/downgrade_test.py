#!/usr/bin/env python3
"""From this version back to an earlier one: docs/operations.md, "Upgrade and downgrade". The last line is
"N passed, N failed". HOLDFAST_SERVER and OLD_SERVER name the servers, OLD_SERVER that of the earlier
version (default: the one of `make old-server`)."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "integration")]
import make  # noqa: E402, these need the path above
from folder_state import Reader, differences, pairs  # noqa: E402
from harness import LIMIT_S, Server, end_with_parent, equal, has, run_tests, test  # noqa: E402

OLD = os.environ.get("OLD_SERVER", "build/old/holdfast-server")
GRACE = ("--session-grace", str(make.HOUR_MS))


def filled(server, with_notes):
    """Fills the server with all kinds of keys. Returns what was asked, and the state."""
    ask = make.Checked(server)
    for part in (make.locks, make.leases, make.values, *((make.notes,) if with_notes else ())):
        part(ask)
    return ask, Reader(server).state(ask.tokens, ask.leases)


def state(server, ask):
    return Reader(server).state(ask.tokens, ask.leases)


@test
def the_earlier_server_refuses_the_folder_with_one_error_and_this_one_continues(folder):
    with Server(folder, *GRACE) as server:
        ask, before = filled(server, True)
    files = {path: path.read_bytes() for path in folder.iterdir() if path.name not in ("meta", "lock")}
    for _ in range(2):
        done = subprocess.run([OLD, "--port", "auto", "--dir", folder], check=False, text=True,
                              capture_output=True, timeout=LIMIT_S, preexec_fn=end_with_parent)
        equal((done.returncode, len(done.stderr.splitlines())), (1, 1))
        has(done.stderr, f"{folder}/journal.1: written by a newer version")
        equal({path: path.read_bytes() for path in files}, files)
    with Server(folder, *GRACE) as server:
        equal(differences(state(server, ask), before), [])


@test
def the_earlier_server_continues_from_the_last_snapshot_alone(folder):
    """Holds, tokens, TTLs and values remain; notes are unknown there."""
    with Server(folder, *GRACE) as server:
        ask, before = filled(server, False)
        with contextlib.suppress(EOFError, OSError):
            server.ask("SHUTDOWN", "SAVE")
        server.process.wait(LIMIT_S)
    alone = folder.with_name("alone")
    alone.mkdir()
    shutil.copy(folder / "dump.rdb.gz", alone)
    with Server(alone, *GRACE, command=OLD) as server:
        equal(differences(state(server, ask), before), [])
        for key, token in ask.tokens.items():
            key = key.encode("latin-1")
            server.ask("DEL", key)
            reply = server.ask("LOCK", key, "bob", make.HOUR_MS)
            equal((key, key == b"delayed" or reply[1] > token), (key, True))


if __name__ == "__main__":
    run_tests()
