#!/usr/bin/python3
"""The Debian packages under a booted systemd, in a container of systemd-nspawn: the service starts with the
machine, systemd restarts it after a crash and if its loop is stuck, the socket unit refuses no client, and
an upgrade loses no lock. Needs root and Debian's mirror, and a machine where systemd-nspawn works. The last
line is "N passed, N failed, N skipped"."""
import json
import shutil

from debian import NAMES, Booted, earlier, folder_of_test, machine, packages
from harness import Skipped, equal, has, run_tests, test, until

SERVICE = "holdfast-server.service"
DROP_IN = "etc/systemd/system/holdfast-server.service.d/test.conf"


def shown(debian, name):
    """The value of a property of the service."""
    return debian.ask("systemctl", "show", "--value", "-p", name, SERVICE).strip()


def token_of(debian, lock):
    """Acquires the lock, and returns its token."""
    return int(debian.ask("holdfast", "lock", "--wait", "20s", "--ttl", "1h", lock).split()[1])


def held(debian):
    return {row["key"]: row["token"] for row in json.loads(debian.ask("holdfast", "list", "--json"))}


def check_boot(debian):
    """The service has started with the machine. The journal has its lines with their priorities."""
    equal(shown(debian, "ActiveState"), "active")
    has(shown(debian, "StatusText"), "ready to accept connections on ")
    lines = [json.loads(line) for line in debian.ask(
        "journalctl", "-u", SERVICE, "-o", "json", "_COMM=holdfast-server").splitlines()]
    [ready] = [line for line in lines if line["MESSAGE"].startswith("ready to accept connections")]
    equal((ready["PRIORITY"], ready["SYSLOG_IDENTIFIER"]), ("5", "holdfast-server"))
    debian.ask("systemctl", "reload", SERVICE)
    equal(shown(debian, "ActiveState"), "active")


def check_restarts(debian):
    """A killed server, and one whose loop is stuck, start again with their locks."""
    token = token_of(debian, "test")
    debian.ask("systemctl", "kill", "--signal=KILL", "--kill-who=main", SERVICE)
    until(lambda: (shown(debian, "NRestarts"), shown(debian, "ActiveState")) == ("1", "active"))
    equal(held(debian)["test"], token)
    stuck = "exec 3<>/dev/tcp/127.0.0.1/7379; echo DEBUG SLEEP 60 >&3; read -t 50 <&3"
    debian.ask("bash", "-c", stuck, status=1)  # the connection ends: systemd has ended the server
    until(lambda: (shown(debian, "NRestarts"), shown(debian, "ActiveState")) == ("2", "active"))
    has(debian.ask("journalctl", "-u", SERVICE), "Watchdog timeout")
    equal(held(debian)["test"], token)


def check_sockets(debian):
    """With the socket unit, clients that connect during a restart wait, and none is refused."""
    debian.ask("systemctl", "stop", SERVICE)
    debian.ask("systemctl", "enable", "--now", "holdfast-server.socket")
    token = token_of(debian, "by-socket")  # the first client starts the service
    steps = "; ".join(f"holdfast lock --ttl 1h restart-{i} || exit 1" for i in range(20))
    debian.ask("bash", "-c", f"systemctl restart {SERVICE} & {steps}; wait")
    names = held(debian)
    equal((names["by-socket"], sum(name.startswith("restart-") for name in names)), (token, 20))


@test
def a_booted_systemd_runs_restarts_and_upgrades_the_service(folder):
    if shutil.which("systemd-nspawn") is None:
        raise Skipped("systemd-nspawn is not installed")
    before = [earlier(packages()[name], folder) for name in NAMES]
    with machine(Booted) as debian:
        debian.run("apt-get", "update")
        debian.run("apt-get", "-y", "--no-install-recommends", "install", "systemd", "systemd-sysv", "dbus")
        debian.install(before)
        conf = debian.root / "etc/holdfast/holdfast.conf"
        conf.write_text(conf.read_text() + "\nenable-debug-command = local\n")
        (debian.root / DROP_IN).parent.mkdir()
        (debian.root / DROP_IN).write_text("[Service]\nWatchdogSec=6\n")
        debian.boot()
        check_boot(debian)
        check_restarts(debian)
        check_sockets(debian)
        started = shown(debian, "ExecMainStartTimestampMonotonic")
        with debian.load():
            debian.install([packages()[name] for name in NAMES])
        equal(shown(debian, "ExecMainStartTimestampMonotonic") != started, True)
        names = held(debian)
        equal({name: names.get(name) for name in debian.granted()}, debian.granted())
        debian.ask("apt-get", "-y", "purge", *NAMES)
        has(debian.ask("systemctl", "list-unit-files", "holdfast*", status=1), "0 unit files listed.")
        equal(conf.exists(), False)


run_tests(folder_of_test)
