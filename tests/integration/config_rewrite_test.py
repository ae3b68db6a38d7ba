#!/usr/bin/env python3
"""The file that CONFIG REWRITE replaces: links, pipes, groups. The last line is "N passed, N failed".
HOLDFAST_SERVER names the server."""
import os
import stat
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import Server, Skipped, equal, has, run_tests, test


def config_file(folder):
    path = folder.parent / "conf"
    path.write_text("timeout = 3\n", "ascii")
    return path


@test
def a_link_stays_and_the_file_behind_it_is_rewritten(folder):
    path, link = config_file(folder), folder.parent / "link"
    link.symlink_to(path.name)
    with Server(folder, "--config", str(link)) as server:
        equal(server.ask("CONFIG", "SET", "timeout", "4"), "OK")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
    equal(link.is_symlink(), True)
    has(path.read_text("ascii"), "timeout = 4\n")


@test
def a_pipe_at_the_path_is_refused_at_once_and_stays(folder):
    path = config_file(folder)
    with Server(folder, "--config", str(path)) as server:
        path.unlink()
        os.mkfifo(path)
        has(server.ask("CONFIG", "REWRITE"), "Rewriting config file:", f"{path} is not a regular file")
        equal(server.ask("PING"), "PONG")
    equal(stat.S_ISFIFO(path.stat().st_mode), True)


@test
def group_and_permissions_stay(folder):
    if os.geteuid() != 0:
        raise Skipped("only root may give a file to any group")
    path = config_file(folder)
    os.chown(path, 0, 65533)
    path.chmod(0o640)
    with Server(folder, "--config", str(path)) as server:
        equal(server.ask("CONFIG", "SET", "timeout", "4"), "OK")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
    found = path.stat()
    equal((found.st_gid, found.st_mode & 0o777), (65533, 0o640))


run_tests()
