#!/usr/bin/env python3
"""The files that `holdfast backup` and `holdfast restore` write: links, pipes, leftovers, and a second
command at the same file. The last line is "N passed, N failed". HOLDFAST_SERVER names the server; the
command is in the same folder."""
import fcntl
import os
import stat
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from backups import Source, run
from harness import equal, has, run_tests, test


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@test
def a_second_backup_to_a_file_is_refused_while_the_first_writes_it(folder):
    path, beside = folder.with_suffix(".backup"), folder.with_suffix(".backup.tmp")
    with Source(folder) as server, beside.open("w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        first.write("a part")
        first.flush()
        has(server.backup(path, status=74), f"another backup is being written to {path}")
        equal(beside.read_text(), "a part")
        equal(path.exists(), False)
        fcntl.flock(first, fcntl.LOCK_UN)
        server.backup(path)
    equal(beside.exists(), False)
    run(0, "restore", "--dir", folder.with_suffix(".new"), path)


@test
def a_pipe_or_a_device_is_never_replaced(folder):
    pipe = folder.with_suffix(".pipe")
    link = folder.with_suffix(".link")
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with Source(folder) as server:
        for path in pipe, link, folder:
            has(server.backup(path, status=74), f"{path} is not a regular file")
    equal(stat.S_ISFIFO(pipe.stat().st_mode), True)
    equal(names(folder.parent), ["data", "data.link", "data.pipe"])


@test
def a_link_stays_and_the_file_behind_it_is_replaced(folder):
    path, link = folder.with_suffix(".backup"), folder.with_suffix(".link")
    path.write_text("the former backup")
    link.symlink_to(path.name)
    with Source(folder) as server:
        server.backup(link)
        equal(link.is_symlink(), True)
        has(path.read_bytes()[:17].decode(), "HOLDFAST BACKUP 1")
        equal(path.stat().st_mode & 0o777, 0o600)
        path.unlink()
        has(server.backup(link, status=74), f"cannot follow the link {link}")


@test
def a_file_of_the_temporary_name_is_not_followed_and_gives_no_rights(folder):
    path, beside = folder.with_suffix(".backup"), folder.with_suffix(".backup.tmp")
    precious = folder.with_suffix(".precious")
    precious.write_text("precious")
    with Source(folder) as server:
        beside.symlink_to(precious)
        has(server.backup(path, status=74), f"cannot create {beside}")
        beside.unlink()
        os.link(precious, beside)
        has(server.backup(path, status=74), f"{beside} is not a file of this user alone")
        beside.unlink()
        beside.write_text("a part")
        beside.chmod(0o666)
        server.backup(path)
    equal(path.stat().st_mode & 0o777, 0o600)
    equal(precious.read_text(), "precious")


@test
def a_restore_follows_no_link_out_of_its_folder(folder):
    path, new = folder.with_suffix(".backup"), folder.with_suffix(".new")
    precious = folder.with_suffix(".precious")
    precious.write_text("precious")
    with Source(folder) as server:
        server.backup(path)
    for name, status in ("lock", 1), ("restore.tmp", 74):
        new.mkdir()
        (new / name).symlink_to(precious)
        has(run(status, "restore", "--dir", new, path), f"{new}/{name}")
        equal(precious.read_text(), "precious")
        for left in new.iterdir():
            left.unlink()
        new.rmdir()


@test
def a_folder_that_cannot_be_made_is_a_fault_of_the_disk(folder):
    path = folder.with_suffix(".backup")
    with Source(folder) as server:
        server.backup(path)
    has(run(74, "restore", "--dir", folder / "no" / "new", path), "cannot make the folder", "No such file")
    has(run(74, "restore", "--dir", path, path), "Not a directory")
    has(run(1, "restore", "--dir", folder, path), "is not empty")


run_tests()
