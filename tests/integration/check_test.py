#!/usr/bin/env python3
"""The command `holdfast check` on data folders of the real server: good, damaged and repaired. The last
line is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in the same folder."""
import json
import os
import shutil
import subprocess

from harness import (HOLDFAST, LIMIT_S, TTL_MS, Server, equal, has, journals, left_behind, refusal,
                     run_tests, test, until)

COMMAND = os.path.join(os.path.dirname(HOLDFAST), "holdfast")


def run(status, *args):
    """Returns the output of the command, which must exit with this status."""
    done = subprocess.run([COMMAND, *map(str, args)], check=False, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=LIMIT_S)
    if done.returncode != status:
        raise AssertionError(f"status {done.returncode}, wanted {status}: {done.stdout}")
    return done.stdout


def waits(server):
    """The server must grant no lock, for at least half of the usual recovery wait."""
    has(str(server.ask("LOCK", "free", "bob", TTL_MS)), "RECOVERING")
    equal(int(server.info("recovering_ms")) > 30_000, True)


def saved(folder, *options, clean=False):
    """Makes a folder with a lock in the snapshot and one in journal.2."""
    with Server(folder, "--save", "", *options) as server:
        server.lock("saved")
        equal(server.ask("SAVE"), "OK")
        server.lock("later")
        until(lambda: [path.name for path in journals(folder)] == ["journal.2"])
        if not clean:
            server.kill()


def three_journals(folder):
    """Makes the folder of a killed server whose snapshots failed: a lock in each of three journals."""
    with Server(folder, "--save", "") as server:
        (folder / "dump.rdb.gz").mkdir()  # no snapshot can get this name
        for i in (1, 2, 3):
            server.lock(f"key:{i}")
            if i < 3:
                has(str(server.ask("SAVE")), "ERR")
        server.kill()
    (folder / "dump.rdb.gz").rmdir()
    equal(len(journals(folder)), 3)


def refused_and_reported(folder, text):
    has(refusal(folder), text, "holdfast check --repair")
    has(run(1, "check", folder), text)


@test
def a_missing_journal_that_the_snapshot_names_is_reported_and_the_start_after_the_repair_waits(folder):
    kinds = [((), False), (("--appendfsync", "always"), False), ((), True)]
    for number, (options, clean) in enumerate(kinds):
        data = folder / str(number)
        folder.mkdir(exist_ok=True)
        saved(data, *options, clean=clean)
        (data / "journal.2").unlink()
        refused_and_reported(data, "journal.2 is missing")
        has(run(0, "check", "--repair", data), "will start without them", "recovery-wait")
        run(0, "check", data)
        with Server(data, *options) as server:
            equal((server.ask("GET", "saved"), server.ask("GET", "later")), (b"alice", None))
            waits(server)


@test
def a_missing_journal_between_two_others_is_reported_and_the_start_after_the_repair_waits(folder):
    three_journals(folder)
    (folder / "journal.2").unlink()
    refused_and_reported(folder, "journal.2 is missing")
    run(0, "check", "--repair", folder)
    run(0, "check", folder)
    with Server(folder) as server:
        equal([server.ask("GET", f"key:{i}") for i in (1, 2, 3)], [b"alice", None, None])
        waits(server)
    equal((folder / "journal.3.damaged").exists(), True)


@test
def a_damaged_end_with_another_journal_after_it_is_reported_and_the_start_after_the_repair_waits(folder):
    three_journals(folder)
    path = folder / "journal.2"
    path.write_bytes(path.read_bytes()[:-3])
    refused_and_reported(folder, "journal.3" if "journal.3" in refusal(folder) else "journal.2")
    has(run(0, "check", "--repair", folder), "cut to")
    run(0, "check", folder)
    with Server(folder) as server:
        equal([server.ask("GET", f"key:{i}") for i in (1, 2, 3)], [b"alice", None, None])
        waits(server)


@test
def records_missing_between_two_journals_are_reported(folder):
    three_journals(folder)
    path = folder / "journal.2"
    data = path.read_bytes()
    path.write_bytes(data[:data.rindex(data[39:43])])
    refused_and_reported(folder, "record")
    run(0, "check", "--repair", folder)
    with Server(folder) as server:
        equal([server.ask("GET", f"key:{i}") for i in (1, 2, 3)], [b"alice", None, None])
        waits(server)


@test
def a_snapshot_removed_after_a_clean_stop_is_reported_and_the_start_after_the_repair_waits(folder):
    saved(folder, clean=True)
    (folder / "dump.rdb.gz").unlink()
    refused_and_reported(folder, "journal.1 is missing")
    run(0, "check", "--repair", folder)
    with Server(folder) as server:
        equal(server.ask("GET", "later"), None)
        waits(server)


@test
def a_damaged_snapshot_is_moved_away_by_its_name_only_and_the_start_waits(folder):
    saved(folder, "--appendfsync", "always")
    path = folder / "dump.rdb.gz"
    data = path.read_bytes()
    path.write_bytes(data[:-9])
    has(refusal(folder), "Restore the file from a copy", f"holdfast check --repair {path}")
    has(run(1, "check", "--repair", folder), "dump.rdb.gz: NOT good", f"`--repair {path}`")
    equal(path.read_bytes(), data[:-9])
    has(run(0, "check", "--repair", path), "renamed to dump.rdb.gz.damaged")
    with Server(folder, "--appendfsync", "always") as server:
        equal((server.ask("GET", "saved"), server.ask("GET", "later")), (None, None))
        waits(server)


@test
def a_last_journal_without_a_whole_head_is_good_as_for_the_server(folder):
    path = left_behind(folder)
    for size in (0, 1, 38):
        data = folder.parent / f"{folder.name}-{size}"
        shutil.copytree(folder, data)
        (data / path.name).write_bytes(path.read_bytes()[:size])
        has(run(0, "check", data), "a crash cut it")
        with Server(data) as server:
            has(server.log, f"dropped its {size} bytes")
            equal("cut off its last 0" in server.log, False)
        shutil.rmtree(data)


@test
def a_damaged_meta_is_rebuilt_with_a_wait_and_larger_tokens(folder):
    with Server(folder) as server:
        server.lock("kept")
        server.kill()
    with Server(folder) as server:
        token = server.lock("later")
        server.kill()
    meta = folder / "meta"
    whole = meta.read_text()
    for damaged in ("", whole[:60], whole.replace("clean no", "clean n"), "x" * 100):
        meta.write_text(damaged)
        has(refusal(folder), f"holdfast check --repair {meta}", "recovery wait")
        has(run(1, "check", folder), "meta: NOT good", "`--repair` rebuilds it")
        has(run(0, "check", "--repair", meta), "rebuilt", "meta.damaged")
        equal((folder / "meta.damaged").read_text(), damaged)
        run(0, "check", folder)
        with Server(folder) as server:
            equal((server.ask("GET", "kept"), server.ask("GET", "later")), (b"alice", b"alice"))
            waits(server)
            equal(int(server.info("token_largest")) > token + 500_000_000, True)
            server.kill()


@test
def each_file_of_a_good_folder_is_reported_as_good(folder):
    left_behind(folder)
    with Server(folder) as server:
        server.ask("HSET", "h", "f", "v")
        equal(server.ask("SAVE"), "OK")
        server.lock("later")
    said = run(0, "check", folder)
    has(said, "dump.rdb.gz: good: a snapshot", "50 strings", "1 hashes", "journal.2: good", "meta: good")
    equal("NOT" in said, False)
    has(run(0, "check", folder / "meta", folder / "dump.rdb.gz"), "stopped cleanly", "a snapshot")


@test
def json_has_a_value_for_each_file(folder):
    path = left_behind(folder)
    path.write_bytes(b"?" + path.read_bytes()[1:])
    out = run(1, "check", "--json", folder)
    equal(out.count("\n"), 1)
    rows = {row["path"]: row for row in json.loads(out)}
    equal((rows[str(path)]["good"], rows[str(folder / "meta")]["good"]), (False, True))
    has(rows[str(folder / "meta")]["what"], "tokens up to")


@test
def wrong_usage_exits_with_64(folder):
    for words in ([], ["--frob", folder], ["--repair"]):
        has(run(64, "check", *words), "holdfast check --help")
    has(run(0, "check", "--help"), "\n    holdfast check ")


@test
def a_long_path_is_rejected(folder):
    for path in (folder / ("x" * 250), "/".join(["x" * 200] * 500), "y" * 100_000):
        equal("Sanitizer" in run(1, "check", path), False)


@test
def a_tail_that_a_crash_cut_off_is_not_damage(folder):
    path = left_behind(folder)
    data = path.read_bytes()
    path.write_bytes(data[:-3])
    has(run(0, "check", folder), "a crash cut it")
    equal(path.read_bytes(), data[:-3])


@test
def repair_truncates_a_damaged_journal_and_keeps_the_original(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    has(run(1, "check", folder), "NOT good", "good records follow at byte")
    equal(path.read_bytes(), bytes(data))
    has(refusal(folder), "holdfast check --repair")
    has(run(0, "check", "--repair", path), "NOT good", "cut to")
    equal((path.parent / (path.name + ".damaged")).read_bytes(), bytes(data))
    has(run(0, "check", folder), "journal.1: good")
    with Server(folder) as server:
        equal(server.ask("GET", "key:0"), b"alice")
        equal(server.ask("GET", "key:49"), None)
        has(str(server.ask("LOCK", "key:49", "bob", TTL_MS)), "RECOVERING")  # alice may still use it


@test
def repair_rebuilds_a_damaged_head_without_loss(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    for at in (0, 20, 30, 38):
        damaged = bytearray(data)
        damaged[at] ^= 0x40
        path.write_bytes(damaged)
        has(run(1, "check", folder), "NOT good", "at byte 0", "rebuilds the head")
        has(refusal(folder), "holdfast check --repair", "rewrites the file's head")
        has(run(0, "check", "--repair", path), "NOT good", "the head is rebuilt")
        kept = path.parent / (path.name + ".damaged")
        equal((kept.read_bytes(), path.read_bytes()), (bytes(damaged), bytes(data)))
        kept.unlink()
    with Server(folder) as server:
        equal([server.ask("GET", f"key:{i}") for i in (0, 49)], [b"alice", b"alice"])


@test
def repair_rebuilds_a_damaged_head_and_truncates_at_later_damage(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    data[7] ^= 1
    data[len(data) // 2] ^= 0x10
    path.write_bytes(data)
    has(run(0, "check", "--repair", folder), "the head is rebuilt")
    with Server(folder) as server:
        equal((server.ask("GET", "key:0"), server.ask("GET", "key:49")), (b"alice", None))


@test
def a_journal_whose_head_cannot_be_rebuilt_is_dropped_by_the_repair_and_the_start_waits(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    data[7] ^= 1   # in the head
    data[39] ^= 1  # in the first frame
    path.write_bytes(data)
    text = refusal(folder)
    has(text, "Restore the file from a copy, or `holdfast check --repair", "drops its records")
    has(run(1, "check", path), "the head cannot be rebuilt",
        "restore the file from a copy, or use `--repair`")
    equal(path.read_bytes(), bytes(data))
    has(run(0, "check", "--repair", path), "cut to 0 bytes")
    equal((path.parent / (path.name + ".damaged")).read_bytes(), bytes(data))
    run(0, "check", folder)
    with Server(folder) as server:
        equal(server.ask("GET", "key:0"), None)
        waits(server)


@test
def a_head_is_not_rebuilt_if_the_file_name_has_no_number(folder):
    path = left_behind(folder)
    data = bytearray(path.read_bytes())
    data[30] ^= 1
    other = folder / "copy"
    other.write_bytes(data)
    has(run(1, "check", "--repair", other), "cannot rebuild the head")
    equal(other.read_bytes(), bytes(data))


@test
def a_folder_without_holdfast_files_is_not_good(folder):
    folder.mkdir()
    has(run(1, "check", folder), "NOT good", "no files of Holdfast")
    (folder / "notes").write_text("text")
    has(run(1, "check", folder), "NOT good", "no files of Holdfast")
    equal(json.loads(run(1, "check", "--json", folder))[0]["good"], False)
    has(run(1, "check", folder / "missing"), "NOT good", "No such file")
    has(run(64, "check", ""), "PATH is empty")


@test
def a_folder_in_use_is_not_repaired(folder):
    with Server(folder):
        has(run(1, "check", "--repair", folder), "NOT good")
        run(0, "check", folder)


@test
def a_damaged_snapshot_and_meta_are_reported_with_the_position(folder):
    left_behind(folder)
    with Server(folder) as server:
        equal(server.ask("SAVE"), "OK")
    snapshot = folder / "dump.rdb.gz"
    snapshot.write_bytes(snapshot.read_bytes()[:-9])
    meta = folder / "meta"
    meta.write_text(meta.read_text().replace("clean yes", "clean ye"))
    has(run(1, "check", folder), "dump.rdb.gz: NOT good", "meta: NOT good", "byte", "line")


@test
def a_missing_journal_is_named(folder):
    left_behind(folder)
    (folder / "journal.3").write_bytes((folder / "journal.1").read_bytes())
    has(run(1, "check", folder), "journal.2 is missing")


@test
def a_failed_write_to_standard_output_exits_with_74_and_an_error(folder):
    left_behind(folder)
    for words in (["--help"], ["-h"], ["--version"], ["run", "--help"], ["elect", "-h"], ["check", "-h"],
                  ["list", "--help"], ["check", folder], ["check", "--json", folder]):
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, *map(str, words)], check=False, text=True, stdout=full,
                                  stderr=subprocess.PIPE, timeout=LIMIT_S)
        equal((done.returncode, done.stderr),
              (74, "holdfast: standard output cannot be written: No space left on device\n"))


@test
def wrong_arguments_get_an_error_with_advice(folder):
    has(run(64), "Usage: holdfast VERB")
    has(run(0, "--help"), "check [--repair] PATH")
    has(run(0, "--version"), "holdfast 0")
    has(run(0, "check", "--help"), "--repair")
    has(run(64, "check"), "needs a file or folder", "--help")
    has(run(64, "check", "--frob"), "frob")
    has(run(64, "frob"), "no such verb: frob")
    has(run(0, "-h"), "Usage: holdfast VERB")
    for words in (["--servers", "holdfast://x", "list"], ["--json", "list"]):
        has(run(64, *words), "options must follow the verb", f"holdfast VERB {words[0]}")
    has(run(1, "check", folder / "nothing"), "No such file")


@test
def records_missing_since_a_clean_stop_are_reported_and_repair_accepts_the_loss(folder):
    with Server(folder) as server:
        server.lock("kept")
        server.lock("lost")
    path = journals(folder)[0]
    data = path.read_bytes()
    magic = data[39:43]  # the first bytes after the head
    path.write_bytes(data[:data.rindex(magic)])
    has(refusal(folder), "1 records are missing", f"holdfast check --repair {folder}/meta")
    has(run(1, "check", folder), "1 records are missing", "use `--repair`")
    has(run(0, "check", "--repair", folder / "meta"), "will start without them")
    with Server(folder) as server:
        equal((server.ask("GET", "kept"), server.ask("GET", "lost")), (b"alice", None))
        has(server.ask("LOCK", "lost", "bob", 1000), "RECOVERING")
    has(run(0, "check", folder), "in use, or not stopped cleanly")


if __name__ == "__main__":
    run_tests()
