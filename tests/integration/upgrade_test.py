#!/usr/bin/env python3
"""Data folders of every released version, in this version: tests/folders has one of each kind of stop, with
what its server had. Also a folder of a newer version, which is rejected and stays as it is. The last line
is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in the same folder."""
import json
import os
import pathlib
import shutil
import subprocess
import time

from folder_state import NO_END, Reader, differences, pairs
from harness import (HOLDFAST, TTL_MS, Clock, Server, crc32c, edit_meta, equal, has, journals,
                     refusal, run_tests, test)

COMMAND = os.path.join(os.path.dirname(HOLDFAST), "holdfast")
FOLDERS = pathlib.Path(__file__).resolve().parent.parent / "folders"
VERSIONS = sorted(path.parent for path in FOLDERS.glob("*/expected.json"))
HOUR_MS = 3_600_000
GRACE = ("--session-grace", str(HOUR_MS))


class Old:
    """A copy of a folder of a released version, and what its server had."""

    def __init__(self, folder, version, name):
        shutil.copytree(version / name, folder)
        self.folder = folder
        self.wanted = json.loads((version / "expected.json").read_text(encoding="ascii"))[name]
        self.clock = Clock(folder.with_suffix(".clock"))

    def open(self, *options, after_s=60):
        """A server on the folder, whose wall clock begins so many seconds after that of the old server."""
        self.clock.set(int(self.wanted["at_ms"] / 1000 + after_s - time.time()))
        return Server(self.folder, *GRACE, *options, env=self.clock.environment())

    def check(self, server):
        """Checks that the server has what the old one had."""
        reader = Reader(server)
        answered = self.wanted["answered"]
        got = reader.state(self.wanted["databases"]["0"], self.wanted["leases"])
        keys = got["databases"]["0"]
        got["databases"]["0"] = {key: keys[key] for key in keys if not key.startswith("load:")}
        equal([], differences(got, {name: self.wanted[name] for name in ("databases", "leases")}))
        holds = [reader.lock(key)["holders"] for key in answered]
        equal([(h["owner"], h["token"]) for (h,) in holds], [("alice", t) for t in answered.values()])


def each_folder(path, *names):
    """The old folders, of all versions. With names: those of these stops."""
    for version in VERSIONS:
        for name in names or sorted(p.name for p in version.iterdir() if p.is_dir()):
            yield Old(path / f"{version.name}-{name}", version, name)


@test
def a_folder_of_each_version_has_its_keys_holds_tokens_and_ttls(folder):
    for old in each_folder(folder):
        done = subprocess.run([COMMAND, "check", str(old.folder)], check=False, capture_output=True,
                              text=True)
        equal((done.returncode, done.stderr), (0, ""))
        with old.open() as server:
            old.check(server)
            server.kill()  # the first start may not rely on a clean stop
        for _ in range(2):
            with old.open() as server:
                old.check(server)


@test
def each_ttl_ends_on_the_wall_clock_of_the_old_server(folder):
    for old in each_folder(folder):
        with old.open(after_s=4500) as server:  # between the two TTLs of an hour and of two hours
            reader = Reader(server)
            now_ms = reader.end_ms(0)
            for key, facts in old.wanted["databases"]["0"].items():
                wanted = [h["owner"] for h in (facts or {}).get("holders", ())
                          if h["end_ms"] > now_ms or h["end_ms"] == NO_END]
                if "fields" in (facts or {}):
                    equal((key, reader.ask("EXISTS", key)), (key, int(key == "hash")))
                    continue
                got = [h["owner"] for h in (reader.lock(key) or {"holders": ()})["holders"]]
                equal((key, got), (key, wanted))
            equal(pairs(reader.ask("LEASE", "INFO", "granted"))["state"], "expired")
            equal(pairs(reader.ask("LEASE", "INFO", "for years"))["state"], "granted")


@test
def tokens_continue_above_those_of_the_old_server_although_the_clock_is_set_back(folder):
    for old in each_folder(folder):
        with old.open("--recovery-wait", "0", after_s=-7200) as server:
            last = {**old.wanted["tokens"], **old.wanted["answered"]}
            for key, token in last.items():
                key = key.encode("latin-1")
                server.ask("DEL", key)
                reply = server.ask("LOCK", key, "bob", TTL_MS)
                if key == b"delayed":
                    equal(reply, None)
                else:
                    equal((key, reply[1] > token), (key, True))


@test
def holds_that_a_crash_may_have_lost_are_not_granted_again(folder):
    for old in each_folder(folder, "crashed"):
        with old.open() as server:
            has(server.ask("LOCK", "any", "bob", TTL_MS), "RECOVERING")
            old.check(server)
    for old in each_folder(folder, "killed", "stopped", "saved-and-stopped", "snapshot-only"):
        with old.open() as server:
            server.lock("any")


def files_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "lock"}


def changed(folder, before):
    """The names of the files that are not as they were."""
    now = files_of(folder)
    return sorted(name for name in before.keys() | now if before.get(name) != now.get(name))


def newer_meta(folder):
    edit_meta(folder, r"^version \d+$", "version 1000000")


def newer_journal(folder):
    """Adds 1 to the version in the head of the journal, whose last four bytes are its checksum."""
    path = journals(folder)[-1]
    line, _, rest = path.read_bytes().partition(b"\n")
    name, _, version = line.rpartition(b" ")
    head = name + b" %d\n" % (int(version) + 1) + rest[:16]
    path.write_bytes(head + crc32c(head).to_bytes(4, "little") + rest[20:])


@test
def a_folder_of_a_newer_version_is_rejected_with_one_error_and_stays_as_it_is(folder):
    for newer, name in ((newer_meta, "meta"), (newer_journal, "journal.2")):
        with Server(folder) as server:
            server.lock("before")
            equal(server.ask("SAVE"), "OK")
            server.lock("after")
        newer(folder)
        before = files_of(folder)
        for _ in range(2):
            (error,) = [line for line in refusal(folder).splitlines() if " notice " not in line]
            has(error, f"{folder}/{name}: ", "written by a newer version of Holdfast", ": use that version")
            equal(changed(folder, before), [])
        for options in ((), ("--repair",)):
            done = subprocess.run([COMMAND, "check", *options, str(folder)], check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            equal(done.returncode, 1)
            has(done.stdout, f"{folder}/{name}: NOT good: ", "written by a newer version")
            equal(changed(folder, before), [])
        shutil.rmtree(folder)


if __name__ == "__main__":
    run_tests()
