#!/usr/bin/env python3
"""A hold on a quorum of real servers that restart one after the other. The hold must not end while a
majority has it. The last line is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in
the same folder."""
import contextlib
import os
import signal
import subprocess
import time

from harness import Server, data_folder, end_with_parent, equal, free_port, has, run_tests, test, until
from job import COMMAND, NAME, Run, ended, run

TTL_S = 1.5
# Prints "up", waits until its input ends, and exits with a status that only it has.
COMMAND_OF_ITS_OWN = ["sh", "-c", "echo up; cat >/dev/null; exit 7"]


class Service:
    """The servers of a quorum. Each keeps its port over restarts and, with `data`, its folder."""

    def __init__(self, stack, size, data):
        self.stack = stack
        self.data = data
        self.ports = [free_port() for _ in range(size)]
        self.folders = [stack.enter_context(data_folder()) for _ in self.ports]
        self.servers = [None] * size
        for i in range(size):
            self.start(i)
        servers = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        os.environ["HOLDFAST_SERVERS"] = f"quorum://{servers}"

    def start(self, i):
        self.servers[i] = Server(self.folders[i] if self.data else "", "--port", str(self.ports[i]))

    def stop(self, i, kill=False):
        server, self.servers[i] = self.servers[i], None
        if kill:
            server.kill()
        else:
            server.__exit__()

    def holders(self, i):
        """The owners that hold the lock on this server."""
        info = self.servers[i].ask("LOCKS", "INFO", NAME)
        if info is None:
            return []
        holders = dict(zip(info[::2], info[1::2]))[b"holders"]
        return [dict(zip(one[::2], one[1::2]))[b"owner"] for one in holders]

    def end(self):
        for i, server in enumerate(self.servers):
            if server is not None:
                self.stop(i)


@contextlib.contextmanager
def quorum(size, data=True):
    with contextlib.ExitStack() as stack:
        service = Service(stack, size, data)
        stack.callback(service.end)
        yield service


@contextlib.contextmanager
def nothing():
    yield None


def held(*options):
    first = Run(["--ttl", f"{TTL_S}s", *options], COMMAND_OF_ITS_OWN)
    equal(first.line(), "up")
    return first


def wait_beyond_ttl(seconds=TTL_S * 1.2):
    over = time.monotonic() + seconds
    until(lambda: time.monotonic() > over)


def rolling_restart(size, kill, *options):
    with quorum(size) as service:
        first = held(*options)
        for i in range(size):
            service.stop(i, kill)
            wait_beyond_ttl()
            service.start(i)
            equal(first.process.poll(), None)
        # The last server is healed, too: all have the hold of one owner. After the end none has a hold.
        until(lambda: all(service.holders(i) for i in range(size)))
        equal(len({owner for i in range(size) for owner in service.holders(i)}), 1)
        err = first.ended(7)[1]
        equal("lost" in err, False)
        until(lambda: not any(service.holders(i) for i in range(size)))


@test
def three_servers_restart_one_after_the_other_each_down_longer_than_the_ttl(_):
    rolling_restart(3, False)


@test
def three_servers_are_killed_and_started_again_one_after_the_other(_):
    rolling_restart(3, True)


@test
def five_servers_restart_one_after_the_other(_):
    rolling_restart(5, False)


@test
def a_shared_hold_survives_a_rolling_restart(_):
    rolling_restart(3, False, "--shared")


@test
def a_hold_survives_a_rolling_restart_while_other_clients_wait(_):
    with quorum(3) as service:
        first = held()
        others = [Run(["--ttl", f"{TTL_S}s"], ["sh", "-c", "echo granted; exit 0"]) for _ in range(3)]
        for i in range(3):
            service.stop(i)
            wait_beyond_ttl()
            service.start(i)
            equal(first.process.poll(), None)
        first.ended(7)
        for other in others:
            equal(other.ended(0)[0], "granted\n")


@test
def servers_without_data_restart_one_after_the_other_each_healed_before_the_next(_):
    for options in ([], ["--shared"], ["--limit", "1"]):
        with quorum(3, data=False) as service:
            first = held(*options)
            others = [] if "--shared" in options else [Run(["--ttl", f"{TTL_S}s", *options], ["true"])]
            until(lambda: service.holders(0))
            owner = service.holders(0)
            for i in range(3):
                service.stop(i)
                service.start(i)
                until(lambda i=i: service.holders(i) == owner)
            equal(first.process.poll(), None)
            first.ended(7)
            for other in others:
                other.ended(0)


@test
def a_hold_is_lost_if_a_majority_loses_it_at_once(_):
    with quorum(3) as service:
        first = held()
        for i in range(2):
            equal(service.servers[i].ask("FLUSHALL"), "OK")
        err = first.ended(76)[1]
        has(err, "the lock was lost")


@test
def holdfast_break_ends_a_hold_on_a_quorum(_):
    with quorum(3):
        first = held()
        breaks = subprocess.run([COMMAND, "break", NAME], stdin=subprocess.DEVNULL, capture_output=True,
                                text=True, check=False, timeout=60, preexec_fn=end_with_parent)
        equal(breaks.returncode, 0)
        first.ended(76)


@test
def run_reports_once_when_renewals_begin_to_fail_and_when_they_succeed_again(_):
    with quorum(3) as service:
        first = Run(["--ttl", "6s"], COMMAND_OF_ITS_OWN)
        equal(first.line(), "up")
        service.stop(0)
        service.stop(1)
        said = first.process.stderr.readline()
        has(said, "holdfast: job: renewals fail, still held: ", f"127.0.0.1:{service.ports[0]}: ",
            f"127.0.0.1:{service.ports[1]}: ")
        service.start(0)
        service.start(1)
        equal(first.process.stderr.readline(), "holdfast: job: renewals succeed again\n")
        equal(first.ended(7)[1], "")


@test
def elect_reports_when_renewals_begin_to_fail(_):
    with quorum(3) as service:
        leader = subprocess.Popen([COMMAND, "elect", "--ttl", "6s", NAME, "--", "sleep", "1000"],
                                  stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  preexec_fn=end_with_parent)
        while ": leader" not in leader.stderr.readline():
            pass
        service.stop(0)
        service.stop(1)
        has(leader.stderr.readline(), "holdfast: job: renewals fail: still leading: ",
            f"127.0.0.1:{service.ports[0]}: ")
        service.start(0)
        service.start(1)
        equal(leader.stderr.readline(), "holdfast: job: renewals succeed again\n")
        leader.terminate()
        until(lambda: leader.poll() is not None)
        leader.stderr.close()


@test
def a_silent_server_does_not_hold_up_lock(_):
    with quorum(3) as service:
        service.servers[2].process.send_signal(signal.SIGSTOP)
        where = os.environ["HOLDFAST_SERVERS"] + "?timeout=300000"
        said = subprocess.run([COMMAND, "lock", "--servers", where, "--ttl", "300s", NAME], check=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, timeout=60,
                              preexec_fn=end_with_parent).stdout
        equal([service.holders(i) for i in range(2)], [[said.split()[0].encode()]] * 2)
        service.servers[2].process.send_signal(signal.SIGCONT)


@test
def a_hold_on_one_server_is_lost_with_its_data(_):
    with data_folder() as folder, Server(folder, "--port", str(port := free_port())) as server:
        os.environ["HOLDFAST_SERVERS"] = f"holdfast://127.0.0.1:{port}"
        first = held()
        equal(server.ask("FLUSHALL"), "OK")
        has(first.ended(76)[1], "the lock was lost")
        equal(server.ask("EXISTS", NAME), 0)


run_tests(nothing)
