#!/usr/bin/python3
"""`make install` and `make uninstall`, of the build that `make deb` made: the files are in their places,
the units name them, a changed configuration stays, and no other file is left. The last line is "N passed, N
failed"."""
import os
import pathlib
import subprocess

from debian import DEBS, call, folder_of_test
from harness import Skipped, equal, has, run_tests, test

TREE = DEBS / "holdfast"
# Folders below the prefix, and the number of files in each one; None: some.
WANTED = {"bin": 2, "include/holdfast": None, "lib": 3, "lib/pkgconfig": 1, "lib/systemd/system": 3,
          "share/bash-completion/completions": 2, "share/fish/vendor_completions.d": 2,
          "share/man/man1": None, "share/man/man5": 1, "share/man/man7": 1, "share/man/man8": 1,
          "share/zsh/site-functions": 2}


def make(target, folder, **variables):
    """Runs make on the built tree, which must not build anything again."""
    if not (TREE / "build/holdfast").exists():
        raise Skipped("no packages; run make deb")
    variables = {"DESTDIR": folder, "COMMIT": (TREE / "build/commit").read_text().strip(), **variables}
    words = [f"{name}={value}" for name, value in variables.items()]
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return call("make", "-C", str(TREE), target, *words, env=env)


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


@test
def all_files_are_installed_and_removed(folder):
    said = make("install", folder)
    equal([line for line in said.splitlines() if line.startswith(("  CXX", "  LINK"))], [])
    count = {}
    for name in files(folder):
        parent = str(pathlib.Path(name).parent)
        count[parent] = count.get(parent, 0) + 1
    wanted = {f"usr/local/{name}": number for name, number in WANTED.items()} | {"etc/holdfast": 1}
    equal(sorted(count), sorted(wanted))
    equal({name: count[name] for name, number in wanted.items() if number},
          {name: number for name, number in wanted.items() if number})
    equal(count["usr/local/share/man/man1"] > 12, True)
    for program in "holdfast", "holdfast-server":
        has(call(str(folder / "usr/local/bin" / program), "--version"), f"{program} 0.")
    make("uninstall", folder)
    equal(files(folder), [])
    equal((folder / "etc/holdfast").exists(), False)


@test
def the_units_name_the_installed_files(folder):
    make("install", folder, PREFIX="/opt/hf", SYSCONFDIR="/srv/conf")
    units = folder / "opt/hf/lib/systemd/system"
    has((units / "holdfast-server.service").read_text(),
        "\nExecStart=/opt/hf/bin/holdfast-server --config /srv/conf/holdfast/holdfast.conf\n")
    has((units / "holdfast-server@.service").read_text(), "--config /srv/conf/holdfast/%i.conf\n")
    equal((folder / "srv/conf/holdfast/holdfast.conf").exists(), True)
    make("uninstall", folder, PREFIX="/opt/hf", SYSCONFDIR="/srv/conf")
    equal(files(folder), [])


@test
def the_configuration_follows_the_prefix(folder):
    make("install", folder, PREFIX="/opt/hf")
    equal(files(folder / "opt/hf/etc"), ["holdfast/holdfast.conf"])
    make("uninstall", folder, PREFIX="/opt/hf")
    equal(files(folder), [])


@test
def a_changed_configuration_survives_a_second_install_and_the_removal(folder):
    make("install", folder)
    conf = folder / "etc/holdfast/holdfast.conf"
    conf.write_text("port = 7000\n")
    make("install", folder)
    equal(conf.read_text(), "port = 7000\n")
    has(make("uninstall", folder), f"{conf} stays: it was changed")
    equal(files(folder), ["etc/holdfast/holdfast.conf"])


@test
def the_installed_configuration_has_no_errors(folder):
    make("install", folder)
    text = (folder / "etc/holdfast/holdfast.conf").read_text()
    has(text, "\nlog-format = journald\n", "\ndir = /var/lib/holdfast\n")
    (folder / "conf").write_text(text.replace("/var/lib/holdfast", str(folder / "data")))
    server = str(folder / "usr/local/bin/holdfast-server")
    done = subprocess.run([server, "--check-config", str(folder / "conf")], check=False, text=True,
                          stdout=subprocess.PIPE)
    equal((done.returncode, done.stdout), (0, "no errors\n"))


run_tests(folder_of_test)
