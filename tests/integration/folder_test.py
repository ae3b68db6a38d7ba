#!/usr/bin/env python3
"""The data folder of the real server: its lock against a second server, the data that survives a stop, and
the times of snapshots. Also the errors if the folder is damaged, of a newer version, removed or full, or
may have lost holds. The last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import gzip
import re
import select
import shutil
import subprocess
import time

from harness import (HOLDFAST, LIMIT_S, SANITIZED, TTL_MS, Client, Server, edit_meta, equal, has, journals,
                     left_behind, refusal, run_tests, test, until)


@test
def a_second_server_is_rejected_with_the_pid_of_the_first(folder):
    with Server(folder) as server:
        has(refusal(folder), str(server.process.pid), str(folder))
        equal(server.ask("PING"), "PONG")
    with Server(folder) as server:
        equal(server.ask("PING"), "PONG")


@test
def locks_survive_every_graceful_stop_and_tokens_continue_to_grow(folder):
    last = 0
    for i, stop in enumerate([None, ["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE"], None]):
        with Server(folder) as server:
            for before in range(i):
                equal(server.ask("GET", f"key:{before}"), b"alice")
            token = server.lock(f"key:{i}")
            equal(token > last, True)
            last = server.lock(f"other:{i}")
            if stop is None:
                server.process.terminate()
                server.process.wait(LIMIT_S)  # because a second signal would end it at once
            else:
                with contextlib.suppress(EOFError, ConnectionError):
                    equal(server.ask(*stop), "closed")
                server.process.wait(LIMIT_S)  # because a signal would end it at once


@test
def a_graceful_stop_is_marked_as_clean_and_a_kill_is_not(folder):
    for stop in (None, ["SHUTDOWN"], ["SHUTDOWN", "NOSAVE"], ["SHUTDOWN", "SAVE"]):
        with Server(folder) as server:
            server.lock("k")
            has((folder / "meta").read_text(), "\nclean no\n")
            if stop is not None:
                with contextlib.suppress(EOFError, ConnectionError):
                    equal(server.ask(*stop), "closed")
                server.process.wait(LIMIT_S)  # because a signal would end it at once
        has((folder / "meta").read_text(), "\nclean yes\n")
    left_behind(folder, 1)
    has((folder / "meta").read_text(), "\nclean no\n")


@test
def clients_get_loading_while_a_large_snapshot_is_loaded(folder):
    number = 200_000 if SANITIZED else 500_000
    with Server(folder) as server:
        for start in range(0, number, 1000):
            equal(server.ask("MSET", *(text for i in range(start, start + 1000)
                                       for text in (f"key:{i}", f"value:{i}"))), "OK")
        equal(server.ask("SAVE"), "OK")
    with Server(folder, loaded=False) as server:
        server.socket.sendall(b"GET key:1\r\nINFO persistence\r\n")  # at once, because the load is short
        has(server.reply(), "LOADING")
        text = server.reply().decode()
        facts = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
        equal(facts["loading"], "1")
        total = int(facts["loading_total_bytes"])
        equal(total >= (folder / "dump.rdb.gz").stat().st_size, True)
        equal(0 <= int(facts["loading_loaded_bytes"]) <= total, True)
        equal(abs(int(facts["loading_start_time"]) - time.time()) < LIMIT_S, True)
        until(lambda: server.ask("PING") == "PONG")
        equal(server.info("loading"), "0")
        equal(server.ask("DBSIZE"), number)
        equal(server.ask("GET", f"key:{number - 1}"), b"value:%d" % (number - 1))


@test
def snapshots_by_command_are_shown_by_info_and_lastsave(folder):
    with Server(folder) as server:
        begun = int(time.time())
        server.lock("a")
        equal(server.info("rdb_changes_since_last_save"), "1")
        equal(server.ask("SAVE"), "OK")
        equal(server.info("rdb_changes_since_last_save"), "0")
        equal(begun <= server.ask("LASTSAVE") <= time.time(), True)
        equal(server.info("rdb_last_save_time"), str(server.ask("LASTSAVE")))
        for command, said in (("BGSAVE", "Background"), ("BGREWRITEAOF", "Background")):
            (folder / "dump.rdb.gz").unlink()
            server.lock(command)
            has(server.ask(command), said)
            until(lambda: server.info("rdb_bgsave_in_progress") == "0")
            equal(server.info("rdb_last_bgsave_status"), "ok")
            data = (folder / "dump.rdb.gz").read_bytes()
            equal(server.info("rdb_last_bgsave_bytes"), str(len(data)))
            equal(command.encode() in gzip.decompress(data), True)
        equal(len(journals(folder)), 1)
        equal((server.info("aof_enabled"), server.info("aof_last_write_status")), ("1", "ok"))


@test
def grants_continue_during_snapshots_and_the_syncs_after_them(folder):
    for policy in ("everysec", "always"):
        with Server(folder, "--appendfsync", policy, "--fsync-interval", "50") as server:
            for save in ("SAVE", "BGSAVE"):
                server.ask("LOCK", "a", "o", TTL_MS)
                server.ask(save)
                for key in ("b", "c", "d"):
                    equal(server.ask("LOCK", key, "o", TTL_MS)[0], b"o")
                    until(lambda: server.info("rdb_bgsave_in_progress") == "0"
                          and server.info("journal_unsynced") == "0")
                equal(server.info("aof_last_write_status"), "ok")


def saves_by_itself(folder, *options):
    with Server(folder, *options) as server:
        for i in range(5):
            server.lock(f"key:{i}")
        until((folder / "dump.rdb.gz").exists)
        until(lambda: server.info("rdb_changes_since_last_save") == "0")


@test
def save_makes_a_snapshot_after_n_seconds_with_n_changes(folder):
    saves_by_itself(folder, "--save", "1 5")


@test
def write_threshold_makes_a_snapshot_after_n_changes(folder):
    saves_by_itself(folder, "--write-threshold", "5")


@test
def autosave_makes_a_snapshot_every_n_milliseconds(folder):
    saves_by_itself(folder, "--autosave", "500")


@test
def a_torn_journal_is_truncated_with_the_number_of_bytes_in_a_warning(folder):
    path = left_behind(folder)
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    with Server(folder) as server:
        equal(server.ask("GET", "key:48"), b"alice")
        equal(server.ask("GET", "key:49"), None)
        cut = re.search(r"cut off its last (\d+) bytes, from byte (\d+) on", server.log)
        if not cut:
            raise AssertionError(server.log)
        equal(int(cut[1]) + int(cut[2]), len(data) - 3)
        server.lock("key:50")
    with Server(folder) as server:
        equal("cut off" in server.log, False)
        equal(server.ask("GET", "key:50"), b"alice")


@test
def a_journal_with_a_flipped_byte_prevents_the_start_and_stays_unchanged(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    at = len(data) // 2
    data[at] ^= 0x10
    path.write_bytes(data)
    said = refusal(folder)
    has(said, path.name, "holdfast check --repair")
    where = int(re.search(r"damaged at byte (\d+)", said)[1])
    equal(0 <= at - where < 200, True)
    equal(path.read_bytes(), bytes(data))


@test
def a_damaged_meta_is_rejected_by_name(folder):
    left_behind(folder)
    meta = folder / "meta"
    text = meta.read_bytes()
    for at in (0, len(text) // 2, len(text) - 2):
        meta.write_bytes(text[:at] + bytes([text[at] ^ 1]) + text[at + 1:])
        has(refusal(folder), f"{folder}/meta: ")
    meta.write_bytes(b"")
    has(refusal(folder), f"{folder}/meta: ")
    meta.write_bytes(text)
    with Server(folder) as server:
        equal(server.ask("GET", "key:1"), b"alice")


@test
def a_meta_of_a_newer_version_is_rejected(folder):
    left_behind(folder)
    edit_meta(folder, "^version 3$", "version 6")
    has(refusal(folder), f"{folder}/meta: ", "newer", "6")


@test
def a_removed_folder_stops_grants_until_it_exists_again(folder):
    with Server(folder) as server:
        server.lock("mine")
        shutil.rmtree(folder)
        refused = until(lambda: error(server.ask("LOCK", "k", "bob", TTL_MS)) or server.ask("DEL", "k") < 0)
        has(refused, "MISCONF persistence failed")
        equal(server.ask("GET", "mine"), b"alice")
        folder.mkdir()
        until(lambda: not error(server.ask("LOCK", "k", "bob", TTL_MS)))
        until(lambda: (folder / "dump.rdb.gz").exists())
        server.kill()
    with Server(folder) as server:
        equal((server.ask("GET", "mine"), server.ask("GET", "k")), (b"alice", b"bob"))


def error(reply):
    return reply if isinstance(reply, RuntimeError) else None


@test
def a_limit_on_the_size_of_files_is_as_a_full_disk(folder):
    wrapper = folder.parent / "limited"
    wrapper.write_text(f'#!/bin/bash\nulimit -f 64\nexec "{HOLDFAST}" "$@"\n', "ascii")
    wrapper.chmod(0o755)
    with Server(folder, command=wrapper, status=1) as server:  # it could not keep all changes
        for n in range(60):  # the reply to the one that meets the limit waits for a new journal
            server.send(["SET", f"key {n}", "x" * 2000])
        other = Client(server.path)
        until(lambda: "MISCONF" in str(other.ask("SET", "other", "x")))
        has(other.ask("SET", "other", "x"), "File too large")
        other.close()


@test
def a_full_disk_stops_grants_and_nothing_else_until_there_is_space(folder):
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(f"skipped: a tmpfs cannot be mounted: {done.stdout.strip()}")
        return
    try:
        fill_the_disk(folder)
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


def fill_the_disk(folder):
    with Server(folder) as server:
        for i in range(600):
            server.lock(f"key:{i}")
        with contextlib.suppress(OSError), open(folder / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(bytes(4096))
        for i in range(400):  # more records than fit in the rest of the journal's last page
            equal(server.ask("UNLOCK", f"key:{i}", "alice"), 1)
        equal(server.info("aof_last_write_status"), "err")
        has(server.ask("LOCK", "key:0", "bob", TTL_MS), "MISCONF", "No space left on device")
        equal(server.ask("GET", "key:599"), b"alice")
        (folder / "filler").unlink()
        until(lambda: not error(server.ask("LOCK", "healed", "bob", TTL_MS)))
        equal(server.info("aof_last_write_status"), "ok")
        server.kill()
    with Server(folder) as server:
        equal([server.ask("GET", f"key:{i}") for i in range(600)], [None] * 400 + [b"alice"] * 200)
        equal(server.ask("GET", "healed"), b"bob")


def probe(server, *args):
    """The reply on a new connection, or None if the server withholds it: the disk failed in the iteration
    of the loop that granted the lock."""
    client = Client(server.path)
    client.socket.settimeout(1)
    try:
        return client.ask(*args)
    except TimeoutError:
        return None


@test
def a_folder_that_becomes_read_only_stops_grants_and_heals(folder):
    with Server(folder) as server:
        server.lock("mine", ttl=600_000)  # `meta` covers this TTL, but not a much longer one
        server.lock("yours", ttl=600_000)
        folder.chmod(0o500)
        waiting = Client(server.path)
        waiting.send(("LOCK", "held back", "bob", TTL_MS))
        refused = until(lambda: error(probe(server, "LOCK", "key", "bob", TTL_MS)))
        has(refused, "MISCONF", "Permission denied")
        has(server.ask("SAVE"), "Permission denied")
        equal(server.ask("UNLOCK", "mine", "alice"), 1)
        waiting.send(("PING",))  # its reply waits behind the held one
        equal(server.ask("GET", "yours"), b"alice")
        equal(select.select([waiting.socket], [], [], 0.2)[0], [])
        folder.chmod(0o700)
        until(lambda: not error(server.ask("LOCK", "healed", "bob", TTL_MS)))
        equal((waiting.reply()[0], waiting.reply()), (b"bob", "PONG"))
        waiting.close()
        equal(server.ask("SAVE"), "OK")
        server.kill()
    folder.chmod(0o500)
    with Server(folder) as server:  # it serves the data that it can read
        has(server.log, "Permission denied")
        has(error(server.ask("LOCK", "key", "bob", TTL_MS)), "MISCONF", "Permission denied")
        equal(server.ask("GET", "yours"), b"alice")
        folder.chmod(0o700)
        until(lambda: not error(server.ask("LOCK", "key", "bob", TTL_MS)))
    with Server(folder) as server:
        equal(server.ask("GET", "key"), b"bob")
        equal([server.ask("GET", key) for key in ("mine", "yours", "healed")], [None, b"alice", b"bob"])


@test
def after_a_restart_a_session_hold_ends_after_its_grace(folder):
    with Server(folder, "--session-grace", "700") as server:
        server.lock("session", "alice", TTL_MS, "SESSION")
        server.lock("plain")
        server.kill()
    with Server(folder, "--session-grace", "700") as server:
        equal(server.ask("GET", "plain"), b"alice")
        equal(server.ask("LOCK", "session", "bob", TTL_MS, "WAIT", LIMIT_S * 1000)[0], b"bob")
        equal(server.ask("GET", "plain"), b"alice")


def recovers(folder, *options):
    """A server that may have lost holds grants nothing for the recovery wait, but still releases and reads.
    The wait begins with the start. If a slow machine is not ready before its end, a longer one is tried."""
    for wait_ms in (1500, 6000, 24_000):
        copy = folder.with_name(f"for {wait_ms} ms")
        shutil.copytree(folder, copy)
        if recovers_after(wait_ms, copy, *options):
            return
    raise AssertionError(f"the server was not ready within {wait_ms} ms")


def recovers_after(wait_ms, folder, *options):
    began = time.monotonic()
    with Server(folder, "--recovery-wait", str(wait_ms), *options) as server:
        reply, left_ms = str(server.ask("LOCK", "k", "bob", TTL_MS)), int(server.info("recovering_ms"))
        if "RECOVERING" not in reply or left_ms == 0:
            equal((time.monotonic() - began) * 1000 >= wait_ms, True)
            return False
        equal(left_ms <= wait_ms, True)
        equal((server.ask("GET", "a"), server.ask("UNLOCK", "a", "alice")), (b"alice", 1))
        left_ms, read_at = int(server.info("recovering_ms")), time.monotonic()

        def granted():
            passed_ms = (time.monotonic() - read_at) * 1000
            equal(int(server.info("recovering_ms")) <= max(left_ms - passed_ms + 2, 0), True)
            return not error(server.ask("LOCK", "k", "bob", TTL_MS))

        until(granted)
        equal(server.info("recovering_ms"), "0")
        return True


@test
def after_a_kill_without_a_journal_the_server_grants_nothing_for_the_recovery_wait(folder):
    with Server(folder, "--appendonly", "no", "--recovery-wait", "1500") as server:
        server.lock("a")
        equal(server.ask("SAVE"), "OK")
        server.lock("lost")
        server.kill()
    recovers(folder, "--appendonly", "no")


@test
def after_a_reboot_the_server_grants_nothing_for_the_recovery_wait(folder):
    with Server(folder, "--recovery-wait", "1500") as server:
        server.lock("a")
        server.kill()
    edit_meta(folder, "^boot-id .*$", "boot-id another")
    edit_meta(folder, "^clock-boot-id .*$", "clock-boot-id another")
    recovers(folder)


@test
def a_kill_with_a_journal_needs_no_recovery_wait(folder):
    left_behind(folder)
    with Server(folder) as server:
        equal(server.info("recovering_ms"), "0")
        server.lock("k")


if __name__ == "__main__":
    run_tests()
