#!/usr/bin/python3
"""The Debian packages of `make deb`: lintian finds nothing, and in a bare Debian (debootstrap, no systemd)
they are installed, used, upgraded under load without a lost lock, and purged without a rest. No systemd is
booted there: the test runs the command of the unit as the user of the unit, and restarts it after the
upgrade. systemd_test.py boots one. Needs root and Debian's mirror. The last line is "N passed,
N failed, N skipped"."""
import json
import os
import shutil

from debian import DEBS, DEV, NAMES, call, earlier, folder_of_test, machine, packages
from harness import Skipped, equal, has, run_tests, test


@test
def lintian_finds_nothing(_):
    packages()
    if shutil.which("lintian") is None:
        raise Skipped("lintian is not installed")
    changes = max(DEBS.glob("holdfast_*.changes"), key=os.path.getmtime)
    equal(call("lintian", "--fail-on", "error,warning", "--allow-root", str(changes)), "")


@test
def install_use_upgrade_under_load_and_purge(folder):
    now = [packages()[name] for name in NAMES]
    before = [earlier(package, folder) for package in now]
    with machine() as debian:
        debian.install(before)
        equal(debian.run("stat", "-c", "%U %G %a", "/etc/holdfast/holdfast.conf", "/var/lib/holdfast"),
              "root holdfast 640\nholdfast holdfast 700\n")
        debian.run("setpriv", "--reuid=holdfast", "--regid=holdfast", "--init-groups", "holdfast-server",
                   "--check-config", "/etc/holdfast/holdfast.conf")
        debian.start()
        token = int(debian.ask("holdfast", "lock", "--ttl", "1h", "test").split()[1])
        conf = debian.root / "etc/holdfast/holdfast.conf"
        conf.write_text(conf.read_text() + "\n# a line of the administrator\nmaxmemory = 100mb\n")

        with debian.load():
            debian.install(now)
            debian.more_grants()  # the earlier server still runs
            debian.stop()
            debian.start()
        equal("earlier" in debian.run("dpkg-query", "-W", *NAMES), False)
        has(conf.read_text().encode(), b"\nmaxmemory = 100mb\n")
        held = {row["key"]: row["token"] for row in json.loads(debian.ask("holdfast", "list", "--json"))}
        equal({name: held.get(name) for name in debian.granted()}, debian.granted())
        equal(held["test"], token)
        debian.ask("holdfast", "lock", "--no-wait", "test", status=75)
        newest = int(debian.ask("holdfast", "lock", "--ttl", "1h", "other").split()[1])
        equal(newest > max(debian.granted().values()), True)
        debian.stop()

        debian.run("apt-get", "-y", "remove", *NAMES)
        equal((debian.root / "var/lib/holdfast/meta").exists(), True)
        equal(conf.exists(), True)
        debian.run("apt-get", "-y", "purge", "--auto-remove", "holdfast-server")
        for file in debian.root.glob("granted-*"):
            file.unlink()
        equal((debian.state() - debian.before, debian.before - debian.state()), (set(), set()))


@test
def the_packages_that_the_library_needs_are_in_debian(_):
    with machine() as debian:
        debian.install([packages()["libholdfast0"]])
        shutil.copy(packages()[DEV], debian.root / "debs/dev.deb")
        said = debian.run("apt-get", "--simulate", "install", "/debs/dev.deb")
        has(said.encode(), f"Inst {DEV}".encode())


@test
def a_program_is_built_with_the_packages_of_the_library(folder):
    """The pkg-config file and the headers name all that a program needs."""
    for name in ("libholdfast0", DEV):
        call("dpkg-deb", "-x", str(packages()[name]), str(folder))
    config = next(folder.glob("usr/lib/*/pkgconfig"))
    (folder / "a.cc").write_text("#include <holdfast/client.h>\n"
                                 'int main() { holdfast::Client c("embedded:"); }\n')
    flags = call("pkg-config", f"--define-variable=prefix={folder}/usr", "--cflags", "--libs", "holdfast",
                 env={**os.environ, "PKG_CONFIG_PATH": str(config)}).split()
    call("g++", "-std=c++20", "-o", str(folder / "a"), str(folder / "a.cc"), *flags)
    call(str(folder / "a"), env={**os.environ, "LD_LIBRARY_PATH": str(config.parent)})


run_tests(folder_of_test)
