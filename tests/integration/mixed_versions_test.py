#!/usr/bin/env python3
"""Clients and servers of this version and of an earlier one on one quorum, as processes: each command holds
the lock alone, each wait ends, and a client of this version waits by ticket only if all servers can. The
last line is "N passed, N failed". HOLDFAST_SERVER and OLD_SERVER name the servers, OLD_SERVER that of the
earlier version (default: the one of `make old-server`); the commands are in the same folders (`make
old-client`). REDIS_SERVER is Redis."""
import concurrent.futures
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import (HOLDFAST, LIMIT_S, REDIS, Server, end_with_parent, equal, free_port, has, run_tests,
                     test, until)
from job import COMMAND, NAME

OLD = os.environ.get("OLD_SERVER", "build/old/holdfast-server")
OLD_COMMAND = os.path.join(os.path.dirname(os.path.abspath(OLD)), "holdfast")
SIZE = 3
ROUNDS = 4  # of each client of a crowd
TTL = "20s"
ASKED_AGAIN_S = 60  # the client asks servers for tickets again: Channel::kAskedAgain
# Appends the token to the file $0, or "overlap" if another command runs at that time.
RECORDS = """exec 9>"$0.lock"; flock -n 9 || echo overlap >>"$0"
echo "$HOLDFAST_TOKEN" >>"$0"; sleep 0.02"""
# Prints "up" and runs until its input ends.
HOLDS = ["sh", "-c", "echo up; exec cat >/dev/null"]


class Quorum:
    """Servers of these programs. Each keeps its port and its folder when another program follows."""

    def __init__(self, *programs):
        self.stack = contextlib.ExitStack()
        temporary = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.folder = pathlib.Path(self.stack.enter_context(temporary))
        self.ports = [free_port() for _ in programs]
        self.programs = list(programs)
        self.servers = [self.started(i) for i in range(len(programs))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.__exit__()
        self.stack.close()

    def started(self, i):
        folder = self.folder / str(i)
        folder.mkdir(exist_ok=True)
        return Server(folder, "--port", str(self.ports[i]), command=self.programs[i])

    def replace(self, i, program, keeps_folder=True):
        """Another program takes over from server i. It is ready when it grants locks again."""
        self.servers[i].__exit__()
        self.programs[i] = program
        if not keeps_folder:
            shutil.rmtree(self.folder / str(i))
        self.servers[i] = self.started(i)

    def address(self):
        schemes = ["redis://" if program == REDIS else "" for program in self.programs]
        return "quorum://" + ",".join(f"{s}127.0.0.1:{port}" for s, port in zip(schemes, self.ports))

    def start(self, command, verb, *words):
        """Starts one of the two commands on this quorum."""
        return subprocess.Popen([command, verb, "--servers", self.address(), *words], text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                preexec_fn=end_with_parent)

    def hold(self, command):
        """A process that holds the lock until end()."""
        held = self.start(command, "run", "--ttl", TTL, NAME, "--", *HOLDS)
        equal(held.stdout.readline(), "up\n")
        return held

    def new(self):
        """The servers of this version."""
        return [server for server, program in zip(self.servers, self.programs) if program == HOLDFAST]

    def until_free(self):
        """Waits until no server has a hold of the lock or a waiter."""
        for server in self.servers:
            until(lambda s=server: s.ask("EXISTS", NAME) == 0)
        for server in self.new():
            until(lambda s=server: waiters(s) == 0)


def waiters(server):
    return int(server.info("lock_waiters", "locks"))


def requests(server):
    """The number of LOCK requests so far."""
    found = re.search(rb"cmdstat_lock:calls=(\d+)", server.ask("INFO", "commandstats"))
    return int(found[1]) if found else 0


def end(process, status=0):
    """Ends the input of the process, which must exit with this status. Returns its outputs."""
    out, err = process.communicate(timeout=LIMIT_S)
    if process.returncode != status or "Sanitizer" in err:
        raise AssertionError(f"status {process.returncode}, wanted {status}: {out!r} {err!r}")
    return out, err


def crowd(quorum, *commands):
    """Clients with these commands, each of which acquires the lock some times. No two hold it at a time,
    and each token is larger than those before."""
    record = quorum.folder / "record"
    record.unlink(missing_ok=True)

    def client(command):
        for _ in range(ROUNDS):
            end(quorum.start(command, "run", "--ttl", TTL, NAME, "--", "sh", "-c", RECORDS, str(record)))

    with concurrent.futures.ThreadPoolExecutor(len(commands)) as pool:
        for done in [pool.submit(client, command) for command in commands]:
            done.result()
    lines = record.read_text("utf-8").splitlines()
    equal(lines.count("overlap"), 0)
    tokens = [int(line) for line in lines]
    equal((len(tokens), tokens), (ROUNDS * len(commands), sorted(set(tokens))))
    quorum.until_free()


def attempting(quorum):
    """A client of this version that waits by attempts: it is in no queue, and repeats LOCK."""
    waiting = quorum.start(COMMAND, "lock", NAME)
    begun = [requests(server) for server in quorum.new()]
    for server, before in zip(quorum.new(), begun):
        until(lambda s=server, n=before: waiters(s) == 0 and requests(s) > n + 4)
    equal(waiting.poll(), None)
    return waiting


def polls_beside(quorum, holder):
    waiting = attempting(quorum)
    end(holder)
    owner = end(waiting)[0].split()[0]
    end(quorum.start(COMMAND, "unlock", NAME, owner))
    quorum.until_free()


# --- clients of this version ---


@test
def on_earlier_servers_clients_of_this_version_exclude_each_other(_):
    with Quorum(OLD, OLD, OLD) as quorum:
        crowd(quorum, COMMAND, COMMAND, COMMAND)


@test
def with_one_earlier_server_at_each_place_they_make_attempts(_):
    for place in range(SIZE):
        with Quorum(*(OLD if i == place else HOLDFAST for i in range(SIZE))) as quorum:
            polls_beside(quorum, quorum.hold(OLD_COMMAND))
            crowd(quorum, COMMAND, COMMAND, COMMAND)


@test
def with_a_redis_they_make_attempts(_):
    with Quorum(HOLDFAST, REDIS, HOLDFAST) as quorum:
        polls_beside(quorum, quorum.hold(COMMAND))
        crowd(quorum, COMMAND, COMMAND, COMMAND)


@test
def with_earlier_servers_a_refused_and_a_limited_wait_end(_):
    for programs in ((OLD, OLD, OLD), (HOLDFAST, OLD, HOLDFAST)):
        with Quorum(*programs) as quorum:
            holder = quorum.hold(COMMAND)
            has(end(quorum.start(COMMAND, "lock", "-n", NAME), 75)[1], "busy")
            end(quorum.start(COMMAND, "lock", "-w", "500ms", NAME), 75)
            end(holder)
            quorum.until_free()


@test
def a_server_that_an_earlier_one_replaces_during_a_wait_ends_no_wait(_):
    with Quorum(HOLDFAST, HOLDFAST, HOLDFAST) as quorum:
        holder = quorum.hold(COMMAND)
        waiting = quorum.start(COMMAND, "lock", NAME)
        for server in quorum.servers:
            until(lambda s=server: waiters(s) == 1)
        quorum.replace(0, OLD, keeps_folder=False)
        end(holder)
        end(waiting)


# --- clients of the earlier version ---


@test
def clients_of_the_earlier_version_exclude_each_other_on_this_one(_):
    with Quorum(HOLDFAST, HOLDFAST, HOLDFAST) as quorum:
        crowd(quorum, OLD_COMMAND, OLD_COMMAND, OLD_COMMAND)


@test
def clients_of_both_versions_exclude_each_other(_):
    for programs in ((HOLDFAST, HOLDFAST, HOLDFAST), (OLD, HOLDFAST, HOLDFAST)):
        with Quorum(*programs) as quorum:
            crowd(quorum, COMMAND, OLD_COMMAND, COMMAND, OLD_COMMAND)


@test
def waits_of_both_versions_end_when_a_holder_of_either_leaves(_):
    with Quorum(HOLDFAST, HOLDFAST, HOLDFAST) as quorum:
        for holding in (COMMAND, OLD_COMMAND):
            holder = quorum.hold(holding)
            waiting = [quorum.start(command, "run", "--ttl", TTL, NAME, "--", "true")
                       for command in (OLD_COMMAND, COMMAND)]
            # The one waits in the queue of one server, the other by ticket on all.
            until(lambda: sum(map(waiters, quorum.servers)) == 1 + SIZE)
            end(holder)
            for process in waiting:
                end(process)
            quorum.until_free()


# --- the servers ---


@test
def a_hold_and_the_waits_for_it_survive_an_upgrade_of_one_server_after_the_other(_):
    for command in (COMMAND, OLD_COMMAND):
        with Quorum(OLD, OLD, OLD) as quorum:
            holder = quorum.hold(command)
            waiting = [quorum.start(other, "run", "--ttl", TTL, NAME, "--", "true")
                       for other in (OLD_COMMAND, COMMAND)]
            for i in range(SIZE):
                quorum.replace(i, HOLDFAST)
                until(lambda i=i: quorum.servers[i].ask("EXISTS", NAME) == 1)
                equal([process.poll() for process in (holder, *waiting)], [None] * 3)
            equal("lost" in end(holder)[1], False)
            for process in waiting:
                end(process)
            crowd(quorum, OLD_COMMAND, COMMAND)


@test
def after_the_upgrade_of_all_servers_a_wait_by_attempts_goes_on_by_ticket(_):
    """As long as it made attempts, clients that wait by ticket could overtake it without an end."""
    with Quorum(OLD, HOLDFAST, HOLDFAST) as quorum:
        holder = quorum.hold(COMMAND)
        waiting = attempting(quorum)
        quorum.replace(0, HOLDFAST)
        for server in quorum.servers:
            until(lambda s=server: waiters(s) == 1, ASKED_AGAIN_S + LIMIT_S)
        end(holder)
        end(waiting)


@test
def each_version_refuses_the_words_of_the_other_and_changes_nothing(_):
    """The errors are those by which a client knows that a word is unknown."""
    with Quorum(OLD, HOLDFAST) as quorum:
        old, this = quorum.servers
        old.lock(NAME, "a.1")
        for words, error in ((["LOCK", "free", "a.1", 1000, "TICKET", 10], "ERR syntax error"),
                             (["LOCKS", "HEARTBEAT"], "ERR unknown subcommand"),
                             (["LOCKS", "YIELD", NAME, "a.1", 1], "ERR unknown subcommand"),
                             (["RENEW", NAME, "a.1", 1000, "TOKEN", 1], "ERR wrong number of arguments")):
            has(old.ask(*words), error)
        equal((old.ask("GET", NAME), old.ask("EXISTS", "free")), (b"a.1", 0))
        for word in ("NEXT", "QUIET", "BEHIND"):
            has(this.ask("LOCK", "free", "bob", 1000, "WAIT", 0, "ASYNC", word), "ERR syntax error")
        equal((this.ask("EXISTS", "free"), waiters(this)), (0, 0))


run_tests(around=contextlib.nullcontext)
