#!/usr/bin/env python3
"""Old names of the server's options: on the command line, in the config file, in CONFIG, in errors. Closes
with "N passed, N failed". HOLDFAST_SERVER names the server."""
import re
import subprocess
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from harness import HOLDFAST, LIMIT_S, Server, equal, has, refusal, run_tests, test
from pages import ROOT


def config_file(folder, text):
    path = folder.parent / "conf"
    path.write_text(text, "ascii")
    return path


def value(server, name):
    reply = server.ask("CONFIG", "GET", name)
    equal(reply[:1], [name.encode()])
    equal(len(reply), 2)
    return reply[1]


def old_names():
    """The table of the manual: old name and name."""
    text = (ROOT / "docs/configuration.md").read_text("utf-8").partition("\n## Old names\n")[2]
    return re.findall(r"^\| `([a-z-]+)` \| `([a-z-]+)` \|", text, re.MULTILINE)


@test
def the_command_line_takes_old_names(folder):
    with Server(folder, "--lease-memory", "5", "--inline-max=100") as server:
        for name in "max-ended-leases", "lease-memory":
            equal(value(server, name), b"5")
        equal(value(server, "max-inline-size"), b"100")


@test
def the_config_file_takes_old_names(folder):
    conf = config_file(folder, "lease-memory = 5\nskip-unknown = yes\n")
    with Server(folder, "--config", str(conf)) as server:
        equal(value(server, "max-ended-leases"), b"5")
        equal(value(server, "skip-unsupported-types"), b"yes")


@test
def the_server_takes_each_old_name_in_the_manual(folder):
    names = old_names()
    equal(len(names) > 5, True)
    with Server(folder) as server:
        lines = [f"{old} = {value(server, name).decode()}\n" for old, name in names]
    conf = config_file(folder, "".join(lines))
    with Server(folder, "--config", str(conf)) as server:
        for old, name in names:
            equal(value(server, old), value(server, name))


@test
def help_names_the_manual_in_place_of_the_old_names(_):
    shown = subprocess.run([HOLDFAST, "--help"], capture_output=True, text=True, check=True,
                           timeout=LIMIT_S).stdout
    has(shown, 'docs/configuration.md lists them under "Old names"')
    for old, name in old_names():
        has(shown, f"--{name} ")
        equal(f"--{old} " in shown, False)


@test
def config_set_takes_an_old_name_and_names_it_in_errors(folder):
    with Server(folder) as server:
        equal(server.ask("CONFIG", "SET", "max-owner", "7"), "OK")
        equal(value(server, "max-owner-size"), b"7")
        has(server.ask("CONFIG", "SET", "max-owner", "0"), "'max-owner') - argument must be between")
        has(server.ask("CONFIG", "SET", "lease-memory", "1"), "'lease-memory') - can't set immutable")
        for names in ("max-owner", "max-owner-size"), ("max-owner-size", "max-owner"):
            has(server.ask("CONFIG", "SET", names[0], "8", names[1], "9"),
                f"'{names[1]}') - duplicate parameter")
        equal(value(server, "max-owner"), b"7")


@test
def config_get_shows_an_old_name_only_if_it_is_named_exactly(folder):
    with Server(folder) as server:
        equal(server.ask("CONFIG", "GET", "max-owner*"), [b"max-owner-size", b"512"])
        equal(server.ask("CONFIG", "GET", "MAX-OWNER"), [b"max-owner", b"512"])
        equal(server.ask("CONFIG", "GET", "max-owner-size", "max-owner", "max-owner"),
              [b"max-owner-size", b"512", b"max-owner", b"512"])
        names = server.ask("CONFIG", "GET", "*")[::2]
        equal(len(names), len(set(names)))
        for old, name in old_names():
            equal((old.encode() in names, name.encode() in names), (False, True))


@test
def config_rewrite_replaces_old_names(folder):
    conf = config_file(folder, "# first\nmax-owner = 8\n# between\nlease-memory = 5\n")
    with Server(folder, "--config", str(conf)) as server:
        equal(value(server, "max-owner-size"), b"8")
        equal(server.ask("CONFIG", "SET", "max-owner", "9", "script-memory", "2mb"), "OK")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
        once = conf.read_text("ascii")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
        equal(conf.read_text("ascii"), once)
    has(once, "# first\nmax-owner-size = 9\n# between\nmax-ended-leases = 5\n",
        "script-memory-limit = 2097152\n")
    equal(re.search(r"^(max-owner|lease-memory|script-memory) ", once, re.MULTILINE), None)
    with Server(folder, "--config", str(conf)) as server:
        equal(value(server, "max-owner-size"), b"9")


@test
def both_names_of_an_option_count_as_one(folder):
    for names in ("max-owner", "max-owner-size"), ("max-owner-size", "max-owner"):
        with Server(folder, f"--{names[0]}", "7", f"--{names[1]}", "8") as server:
            equal(value(server, "max-owner-size"), b"8")
        conf = config_file(folder, f"{names[0]} = 7\n{names[1]} = 8\n")
        has(refusal(folder, "--config", str(conf)),
            f"line 2: {names[1]}: line 1 sets it too; remove one of them")


@test
def the_command_line_wins_over_the_file_under_either_name(folder):
    for in_file, in_line in ("max-owner", "max-owner-size"), ("max-owner-size", "max-owner"):
        conf = config_file(folder, f"{in_file} = 7\n")
        with Server(folder, "--config", str(conf), f"--{in_line}", "8") as server:
            equal(value(server, "max-owner-size"), b"8")


@test
def errors_name_the_option_as_it_was_written(folder):
    for name in "max-owner", "max-owner-size":
        has(refusal(folder, f"--{name}", "0"), f"--{name}: expected a size from 1 to 65535", "got '0'")
        has(refusal(folder, f"--{name}=x"), f"--{name}: expected a size", "got 'x'")
        has(refusal(folder, f"--{name}"), f"'--{name}'")
        conf = config_file(folder, f"{name} = 0\n")
        has(refusal(folder, "--config", str(conf)), f"conf: line 1: {name}: expected a size", "got '0'")


run_tests()
