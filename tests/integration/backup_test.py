#!/usr/bin/env python3
"""The commands `holdfast backup` and `holdfast restore` on the real server: under load, with the clock days
later, with damaged and cut files, full disks and vanished clients. The last line is "N passed, N failed".
HOLDFAST_SERVER names the server; the command is in the same folder."""
import contextlib
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from backups import COMMAND, Source, run
from harness import (FAKETIME, HOLDFAST, LIMIT_S, TTL_MS, Client, Clock, Server, Skipped,
                     client_if_listening, end_with_parent, equal, has, part_of, refusal, run_tests, test,
                     until)

HOUR = 3600
DAY = 24 * HOUR
DAY_US = DAY * 10**6


class Load:
    """Clients that acquire and release locks on their own threads, and record every token."""

    def __init__(self, server, clients=4, keys=20):
        self.tokens = {}
        self.grants = 0
        self.guard = threading.Lock()
        self.ends = False
        self.errors = []
        self.threads = [threading.Thread(target=self.work, args=(server.path, n, keys))
                        for n in range(clients)]

    def work(self, path, number, keys):
        client = Client(path)
        try:
            for i in range(sys.maxsize):
                if self.ends:
                    break
                key = f"load:{(number * 7 + i) % keys}"
                reply = client.ask("LOCK", key, f"owner{number}", 60_000)
                if reply is None:
                    continue
                with self.guard:
                    self.tokens[key] = max(self.tokens.get(key, 0), reply[1])
                    self.grants += 1
                client.ask("UNLOCK", key, f"owner{number}")
        except (EOFError, OSError, TypeError) as error:
            self.errors.append(error)
        client.close()

    def more(self, grants=200):
        """Waits for so many grants after this moment."""
        wanted = self.grants + grants
        until(lambda: self.grants >= wanted or self.errors)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends = True
        for thread in self.threads:
            thread.join()
        equal(self.errors, [])


def small_backup(folder):
    """Makes the backup of a server with a few locks of each kind, and returns its path."""
    path = folder.with_suffix(".backup")
    with Source(folder) as server:
        server.lock("exclusive", "alice", TTL_MS, "NOTE", "a note")
        server.lock("shared", "alice", TTL_MS, "SHARED")
        server.lock("shared", "bob", TTL_MS, "SHARED")
        server.ask("SET", "value", "text")
        server.backup(path)
    return path


def leaves_nothing(folder, path, status=1):
    """The restore of the file must fail and leave no folder. Returns its error."""
    text = run(status, "restore", "--dir", folder, path)
    equal(folder.exists(), False)
    return text


def tokens_above(folder, tokens, *options, env=None):
    """A server on the folder must give every key a token above the given one."""
    with Server(folder, "--recovery-wait", "0", *options, env=env) as server:
        for key, token in tokens.items():
            server.ask("LOCKS", "BREAK", key)  # it may have a holder in the backup
            reply = server.ask("LOCK", key, "new", 60_000)
            if not isinstance(reply, list) or reply[1] <= token:
                raise AssertionError(f"{key}: {reply!r}, but {token} was issued before")


@test
def a_backup_under_load_has_all_data_and_no_token_comes_twice(folder):
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".new")
    with Source(folder) as server:
        for i in range(2000):
            server.ask("SET", f"value:{i}", f"text {i}")
        held = server.lock("held", "alice")
        with Load(server) as load:
            load.more()
            has(server.backup(path), "a backup of 127.0.0.1", "bytes")
            load.more()
        server.kill()
    # Some of the clients of the load held a lock, too.
    restored = run(0, "restore", "--dir", new, path)
    counted = re.search(r"restored the backup of \S+Z: (\d+) strings", restored)
    equal(2001 <= int(counted.group(1)) <= 2005, True)
    has(run(0, "check", new), "good")
    with Server(new) as server:
        has(server.ask("LOCK", "free", "bob", TTL_MS), "RECOVERING")
        equal(server.ask("RENEW", "held", "alice"), 1)
        equal(server.ask("LOCKS", "CHECK", "held", held), 1)
        equal(server.ask("GET", "value:1999"), b"text 1999")
        server.kill()
    tokens_above(new, load.tokens)


def at_later_times(folder, seconds, *, ahead=()):
    """Makes a backup, grants locks when the clock is `seconds` later, and restores the backup then. `ahead`
    are tokens that a client names after the backup: so many us before the limit of max-token-lead."""
    if FAKETIME is None:
        raise Skipped("libfaketime is not installed")
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".new")
    clock = Clock(folder.with_suffix(".clock"))
    tokens = {}

    def grant(server, key, *more):
        reply = server.ask("LOCK", key, "old", 60_000, *more)
        if not isinstance(reply, list):
            raise AssertionError(f"{key}: {reply!r}")
        tokens[key] = reply[1]
        equal(server.ask("UNLOCK", key, "old"), 1)

    with Source(folder, env=clock.environment()) as server:
        far = server.ask("LOCKS", "RAISE", "far", (int(time.time()) + 30 * DAY) * 10**6)
        grant(server, "far")
        equal(tokens["far"], far + 1)
        server.lock("expires", "alice", 1000)
        server.lock("lasts", "alice", seconds * 1000 + TTL_MS)
        server.backup(path)
        clock.set(seconds)
        with Load(server) as load:
            load.more(500)
        for _ in range(50):
            grant(server, "far")
        for i, less in enumerate(ahead):
            now_us = int(server.ask("TIME")[0]) * 10**6
            grant(server, f"ahead:{i}", "TOKEN", now_us + DAY_US - less)
        until(lambda: server.ask("GET", "expires") is None)
        server.kill()
    with Source(folder, env=clock.environment()) as server:  # after a kill tokens move ahead
        for key in list(load.tokens)[:5]:
            grant(server, key)
    tokens = {key: max(tokens.get(key, 0), load.tokens.get(key, 0)) for key in {*tokens, *load.tokens}}
    run(0, "restore", "--dir", new, path, env=clock.environment())
    tokens_above(new, tokens, env=clock.environment())
    with Server(new, env=clock.environment()) as server:
        equal(server.ask("GET", "lasts"), b"alice")
        equal(server.ask("GET", "expires"), None)


@test
def a_backup_of_hours_ago_gives_no_token_a_second_time(folder):
    at_later_times(folder, 5 * HOUR)


@test
def a_backup_of_days_ago_gives_no_token_a_second_time_though_clients_named_tokens_since(folder):
    at_later_times(folder, 40 * DAY, ahead=(1, HOUR * 10**6))


@test
def a_restore_that_starts_days_after_it_was_made_gives_no_token_a_second_time(folder):
    if FAKETIME is None:
        raise Skipped("libfaketime is not installed")
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".restored")
    clock = Clock(folder.with_suffix(".clock"))
    with Source(folder, env=clock.environment()) as server:
        server.backup(path)
        run(0, "restore", "--dir", new, path, env=clock.environment())
        clock.set(9 * DAY)
        now_us = int(server.ask("TIME")[0]) * 10**6
        token = server.lock("k", "alice", TTL_MS, "TOKEN", now_us + DAY_US - 1)
        server.kill()
    tokens_above(new, {"k": token}, env=clock.environment())


@test
def a_clock_before_the_time_of_the_backup_is_refused(folder):
    if FAKETIME is None:
        raise Skipped("libfaketime is not installed")
    path = small_backup(folder)
    shutil.rmtree(folder)
    clock = Clock(folder.with_suffix(".clock"))
    clock.set(-HOUR)
    has(run(1, "restore", "--dir", folder, path, env=clock.environment()), "before the time of the backup")
    equal(folder.exists(), False)


@test
def the_restored_folder_has_an_id_of_its_own_and_continues_as_any_other(folder):
    path, new = small_backup(folder), folder.with_suffix(".new")
    run(0, "restore", "--dir", new, path)
    with Server(folder) as old, Server(new, "--recovery-wait", "0") as server:
        equal(old.info("folder_id") != server.info("folder_id"), True)
        token = server.lock("k")
        equal(server.ask("LOCKS", "INFO", "shared") is not None, True)
        equal(token > 1_000_000 * time.time() + DAY_US, True)
    equal("tokens-at-us" in (new / "meta").read_text(), False)
    with Server(new) as server:  # the stop was clean: no wait, and no further lead
        equal(server.ask("GET", "k"), b"alice")
        equal(server.lock("k2") < token + HOUR * 10**6, True)


@test
def each_byte_that_is_flipped_or_missing_refuses_the_restore_and_is_named(folder):
    path = small_backup(folder)
    shutil.rmtree(folder)
    good = path.read_bytes()
    bad = folder.with_suffix(".bad")
    for at in part_of(range(0, len(good), 7), 3):
        bad.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
        named = int(re.search(r"(?:damaged|cut off) at byte (\d+)", leaves_nothing(folder, bad)).group(1))
        equal(named <= at or named == len(good), True)
    for at in part_of(range(0, len(good), 29), 2):
        bad.write_bytes(good[:at])
        has(leaves_nothing(folder, bad), f"cut off at byte {at}:")
    bad.write_bytes(good + b"x")
    has(leaves_nothing(folder, bad), f"damaged at byte {len(good)}: bytes follow the end")
    bad.write_bytes(b"REDIS0010 and so on, and so on")
    has(leaves_nothing(folder, bad), "damaged at byte 0")
    has(leaves_nothing(folder, folder.with_suffix(".missing")), "cannot open", "No such file")
    run(0, "restore", "--dir", folder, path)


@test
def a_folder_in_use_is_refused_and_stays_as_it_is(folder):
    path = small_backup(folder)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    has(run(1, "restore", "--dir", folder, path), f"{folder} is not empty", "new folder")
    equal({file.name: file.read_bytes() for file in folder.iterdir()}, before)
    stray = folder.with_suffix(".stray")
    stray.mkdir()
    (stray / "notes.txt").write_text("mine")
    has(run(1, "restore", "--dir", stray, path), "is not empty: it has notes.txt")
    equal([file.name for file in stray.iterdir()], ["notes.txt"])
    empty = folder.with_suffix(".empty")
    empty.mkdir()
    (empty / "lost+found").mkdir()
    run(0, "restore", "--dir", empty, path)
    has(run(74, "restore", "--dir", folder / "a" / "b", path), "cannot make the folder")


@test
def an_unfinished_restore_refuses_the_start_and_may_be_repeated(folder):
    path, new = small_backup(folder), folder.with_suffix(".new")
    new.mkdir()
    for name in ("restore.tmp", "meta", "journal.7"):
        (new / name).write_text("a part")
    has(refusal(new), "a restore did not end", "holdfast restore")
    has(run(1, "check", new), "a restore did not end")
    run(0, "restore", "--dir", new, path)
    equal((new / "restore.tmp").exists() or (new / "journal.7").exists(), False)
    with Server(new) as server:
        equal(server.ask("GET", "value"), b"text")


def limited(size):
    """The command gets no file larger than `size`, as on a full disk."""
    def prepare():
        end_with_parent()
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return prepare


@test
def a_full_disk_fails_the_command_and_leaves_no_file(folder):
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".new")
    with Source(folder) as server:
        server.ask("SET", "random", os.urandom(200_000))
        text = server.backup(path, status=74, prepare=limited(50_000))
        has(text, f"{path}.tmp cannot be written: File too large")
        equal([file.name for file in folder.parent.iterdir()], ["data"])
        path.write_text("the former backup")
        server.backup(path, status=74, prepare=limited(50_000))
        equal(path.read_text(), "the former backup")
        server.backup(path)
    text = run(74, "restore", "--dir", new, path, prepare=limited(50_000))
    has(text, "cannot be written: File too large")
    equal(new.exists(), False)
    with Source(folder) as server:
        (folder / "dump.rdb.gz").unlink(missing_ok=True)
        (folder / "dump.rdb.gz").mkdir()  # no snapshot can get this name
        has(server.backup(path, status=69), "the backup failed", "dump.rdb.gz")
        (folder / "dump.rdb.gz").rmdir()
        server.backup(path)


@test
def a_folder_or_output_that_cannot_be_written_is_an_error(folder):
    with Source(folder) as server:
        sealed = folder.with_suffix(".sealed")
        sealed.mkdir(mode=0o500)
        has(server.backup(sealed / "backup", status=74), "Permission denied")
        has(server.backup(folder / "no" / "backup", status=74), "No such file")
        with open("/dev/full", "wb") as full:
            done = subprocess.run([COMMAND, "backup", "--servers", f"127.0.0.1:{server.port}", "-"],
                                  stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                                  check=False)
        equal(done.returncode, 74)
        has(done.stderr, "No space left on device")


@test
def a_backup_passes_through_a_pipe(folder):
    new = folder.with_suffix(".new")
    with Source(folder) as server:
        server.lock("k")
        with subprocess.Popen([COMMAND, "backup", "--servers", f"127.0.0.1:{server.port}", "-"],
                              stdout=subprocess.PIPE) as backup:
            has(run(0, "restore", "--dir", new, "-", stdin=backup.stdout), "restored the backup of")
        equal(backup.returncode, 0)
    with Server(new) as server:
        equal(server.ask("GET", "k"), b"alice")


@test
def only_the_user_may_read_the_file_and_a_quorum_or_a_server_without_folder_is_refused(folder):
    path = folder.with_suffix(".backup")
    with Source(folder) as server:
        server.backup(path)
        equal(path.stat().st_mode & 0o777, 0o600)
        quorum = f"127.0.0.1:{server.port},127.0.0.1:1"
        has(run(64, "backup", "--servers", quorum, path), "one Holdfast server")
        equal(server.ask("ACL", "SETUSER", "worker", "on", ">x", "~*", "+@all", "-@dangerous"), "OK")
        worker = Client(server.path)
        equal(worker.ask("AUTH", "worker", "x"), "OK")
        has(worker.ask("BACKUP", "START"), "NOPERM")
        has(worker.ask("BACKUP", "READ"), "NOPERM")
        worker.close()
    has(server.log, 'audit:', '"BACKUP" "START"')
    with tempfile.TemporaryDirectory() as own:
        process = subprocess.Popen([HOLDFAST, "--port", "0", "--unixsocket", f"{own}/s"],
                                   stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)
        client = until(lambda: client_if_listening(f"{own}/s"))
        has(client.ask("BACKUP", "START"), "there is no data folder", "--dir")
        has(client.ask("BACKUP", "READ"), "there is no data folder")
        client.close()
        process.terminate()
        equal(process.wait(LIMIT_S), 0)


def read_part(client):
    """The next bytes of the client's backup; None at its end."""
    while (part := client.ask("BACKUP", "READ")) == b"":
        time.sleep(0.001)
    return part


def open_snapshots(server):
    """The number of files of snapshots that the server has open."""
    links = pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()
    number = 0
    for link in links:
        with contextlib.suppress(FileNotFoundError):
            number += "dump.rdb" in os.readlink(link)
    return number


@test
def a_slow_reader_gets_one_moment_though_the_snapshot_is_replaced(folder):
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".new")
    with Source(folder, "--compress", "no") as server:
        for i in range(20):
            server.ask("SET", f"big:{i}", os.urandom(100_000))
        server.ask("SET", "value", "before")
        reader = Client(server.path)
        equal(reader.ask("BACKUP", "START"), "OK")
        parts = [read_part(reader)]
        server.ask("FLUSHALL")
        server.ask("SET", "value", "after")
        for _ in range(3):
            equal(server.ask("SAVE"), "OK")
        while (part := read_part(reader)) is not None:
            equal(len(part) <= 300_000, True)
            parts.append(part)
        has(reader.ask("BACKUP", "READ"), "send BACKUP START first")
        reader.close()
        equal(open_snapshots(server), 0)
    path.write_bytes(b"".join(parts))
    run(0, "restore", "--dir", new, path)
    with Server(new) as server:
        equal((server.ask("GET", "value"), server.ask("DBSIZE")), (b"before", 21))


@test
def a_backup_ends_with_its_client_or_with_the_server(folder):
    with Source(folder, "--compress", "no") as server:
        server.ask("SET", "big", os.urandom(2_000_000))
        gone = Client(server.path)
        equal(gone.ask("BACKUP", "START"), "OK")
        read_part(gone)
        equal(open_snapshots(server), 1)
        gone.close()
        until(lambda: open_snapshots(server) == 0)
        stays = Client(server.path)
        equal(stays.ask("BACKUP", "START"), "OK")
        read_part(stays)
        waits = Client(server.path)
        equal(waits.ask("BACKUP", "START"), "OK")
        server.process.terminate()
        server.ended()
        stays.close()
        waits.close()
    equal(server.process.returncode, 0)
    equal([file.name for file in folder.iterdir() if "tmp" in file.name], [])


@test
def two_backups_at_once_are_good_and_a_fifth_is_refused(folder):
    with Source(folder) as server:
        server.lock("k")
        paths = [folder.with_suffix(f".{i}") for i in range(2)]
        threads = [threading.Thread(target=server.backup, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        clients = [Client(server.path) for _ in range(5)]
        equal([client.ask("BACKUP", "START") for client in clients[:4]], ["OK"] * 4)
        has(clients[4].ask("BACKUP", "START"), "4 other backups")
        equal(clients[0].ask("BACKUP", "START"), "OK")  # again: in place of its own
        clients[0].close()
        until(lambda: clients[4].ask("BACKUP", "START") == "OK")
        for client in clients[1:]:
            has(read_part(client), b"HOLDFAST BACKUP 1\n")
            client.close()
        has(server.ask("BACKUP", "READ"), "send BACKUP START first")
    for i, path in enumerate(paths):
        run(0, "restore", "--dir", folder.with_suffix(f".new{i}"), path)


@test
def an_interrupted_command_leaves_no_file(folder):
    path = folder.with_suffix(".backup")
    with Source(folder, "--compress", "no") as server:
        for i in range(60):
            server.ask("SET", f"big:{i}", os.urandom(1_000_000))
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([COMMAND, "backup", "--servers", f"127.0.0.1:{server.port}", path],
                                       stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
            until(lambda: os.path.exists(f"{path}.tmp"))
            process.send_signal(number)
            has(process.communicate(timeout=LIMIT_S)[1], "interrupted: no backup was written")
            equal(process.returncode, 128 + number)
            equal([file.name for file in folder.parent.iterdir()], ["data"])
        process = subprocess.Popen([COMMAND, "backup", "--servers", f"127.0.0.1:{server.port}", path],
                                   stderr=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
        until(lambda: os.path.exists(f"{path}.tmp"))
        server.kill()
        equal((process.communicate(timeout=LIMIT_S)[1] != "", process.returncode), (True, 69))
        equal([file.name for file in folder.parent.iterdir()], ["data"])


@test
def a_backup_during_another_snapshot_and_without_a_journal_has_the_latest_changes(folder):
    for number, options in enumerate((("--appendonly", "no"), ("--appendfsync", "always"))):
        data, path = folder.with_suffix(f".{number}"), folder.with_suffix(f".backup{number}")
        new = folder.with_suffix(f".new{number}")
        with Source(data, *options) as server:
            server.ask("MSET", *(word for i in range(20_000) for word in (f"value:{i}", "text")))
            server.ask("BGSAVE")
            server.lock("last")
            server.backup(path)
        run(0, "restore", "--dir", new, path)
        with Server(new, *options) as server:
            equal((server.ask("GET", "last"), server.ask("DBSIZE")), (b"alice", 20_001))
            has(server.ask("LOCK", "k", "bob", TTL_MS), "RECOVERING")


@test
def the_commands_of_the_page_work_with_the_rights_of_the_page(folder):
    page = pathlib.Path(__file__).resolve().parents[2].joinpath("docs/operations.md").read_text("utf-8")
    section = page.split("\n## Backup\n")[1].split("\n## ")[0]
    lines = re.findall(r"^    (.*)$", section, re.MULTILINE)
    equal([line.split()[0] for line in lines], ["holdfast"] * 3 + ["ACL"])
    for place in ("var/backups", "var/lib/holdfast"):
        (folder / place).mkdir(parents=True)
    secret = folder / "secret"
    secret.write_text("PASSWORD\n")
    with Source(folder / "data") as server:
        equal(server.ask(*lines.pop().split()), "OK")
        server.lock("k")
        for line in lines:
            line = line.replace("127.0.0.1:7379", f"127.0.0.1:{server.port}")
            words = line.replace(" /var", f" {folder}/var").split()[1:]
            if words[0] == "backup":
                words[1:1] = ["--user", "backup", "--password-file", str(secret)]
            has(run(0, *words), "backup" if words[0] != "check" else "good")


if __name__ == "__main__":
    run_tests()
