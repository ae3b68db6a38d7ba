#!/usr/bin/env python3
"""The command `holdfast elect` against real servers: leaders, changes of the leader, and exit statuses. The
commands of two leaders never run at once, whether the lock was released or expired. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server; the command is in the same folder."""
import contextlib
import fcntl
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile

from harness import (LIMIT_S, Server, data_folder, end_with_parent, equal, free_port, has, run_tests, test,
                     until)
from job import (COMMAND, IGNORES_TERM, NAME, RECORDS, RECORDS_AND_IGNORES_TERM, alive, info, port_of,
                 recorded, service)

UNTIL_TERM = "trap 'echo told; exit 0' TERM; echo up; sleep 1000 & wait"


STARTED = []  # candidates; those that still run are killed after the test


@contextlib.contextmanager
def service_and_end():
    with service() as server:
        try:
            yield server
        finally:
            while STARTED:
                if (process := STARTED.pop().process).poll() is None:
                    process.kill()
                    process.wait(LIMIT_S)


class Candidate:
    """`holdfast elect --json` with these options and this shell script; its outputs go to files."""

    def __init__(self, options, script, *arguments, words=None, stderr=None):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.out = pathlib.Path(self.folder.name, "out")
        self.err = pathlib.Path(self.folder.name, "err")
        command = ["sh", "-c", script, *map(str, arguments)]
        words = words or ["--json", *map(str, options), NAME, "--", *command]
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen([COMMAND, "elect", *words], stdin=subprocess.DEVNULL,
                                            stdout=out, stderr=stderr or err, preexec_fn=end_with_parent)
        STARTED.append(self)

    def events(self):
        return [json.loads(line) for line in self.err.read_text().splitlines(keepends=True)
                if line.endswith("\n")]

    def names(self):
        """The names of its events, except `waiting`, which depends on time."""
        return [event["event"] for event in self.events() if event["event"] != "waiting"]

    def lines(self):
        return self.out.read_text().split()

    def tokens(self):
        return [event["token"] for event in self.events() if event["event"] == "leader"]

    def leads(self, terms=1):
        """Waits until it has led `terms` times, and returns the token of the last term."""
        until(lambda: len(self.tokens()) >= terms)
        return self.tokens()[-1]

    def says(self, *lines):
        until(lambda: self.lines()[-len(lines):] == list(lines))

    def send_signal(self, name):
        self.process.send_signal(getattr(signal, "SIG" + name))

    def ended(self, status):
        self.process.wait(LIMIT_S)
        err = self.err.read_text()
        if self.process.returncode != status or "Sanitizer" in err:
            raise AssertionError(f"status {self.process.returncode}, wanted {status}: {err!r}")
        return err


def elect(status, options, script):
    candidate = Candidate(options, script)
    candidate.ended(status)
    return candidate


def waiters(server):
    return len(now["waiters"]) if (now := info(server)) else 0


@test
def elect_releases_the_lock_and_exits_with_the_status_of_its_command(server):
    candidate = elect(3, ["--ttl", "20s"], "env | grep ^HOLDFAST_; exit 3")
    equal(info(server), None)
    standing, leader, stopped = candidate.events()
    equal([event["event"] for event in (standing, leader, stopped)], ["standing", "leader", "stopped"])
    found = dict(line.split("=", 1) for line in candidate.lines())
    equal((found["HOLDFAST_KEY"], found["HOLDFAST_TTL_MS"]), (NAME, "20000"))
    equal((found["HOLDFAST_OWNER"], found["HOLDFAST_TOKEN"]), (leader["owner"], str(leader["token"])))
    equal((leader["key"], stopped["status"]), (NAME, 3))
    equal(bool(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", leader["time"])), True)


@test
def progress_is_printed_as_text(_):
    candidate = Candidate([], "", words=[NAME, "--", "sh", "-c", "kill -9 $$"])
    lines = candidate.ended(137).splitlines()
    equal([re.sub(r"\d{9,}", "T", line) for line in lines],
          [f"holdfast: {NAME}: {what}" for what in ("standing", "leader, token T", "stopped, status 137")])


@test
def a_command_that_cannot_be_run_ends_elect_and_releases_the_lock(server):
    for status, command in ((127, "no-such-command"), (126, "/etc/passwd")):
        candidate = Candidate([], "", words=["--restart", NAME, "--", command])
        has(candidate.ended(status), command)
        equal(info(server), None)


@test
def with_restart_elect_campaigns_again_and_gets_a_larger_token(server):
    again = Candidate(["--restart"], "echo up; exit 1")
    again.leads(2)
    first, second = again.tokens()[:2]
    equal(first < second, True)
    again.send_signal("TERM")
    equal(again.process.wait(LIMIT_S) in (128 + 15, 1), True)
    equal(info(server), None)


@test
def a_signal_ends_the_campaign(server):
    server.lock(NAME)
    for name in ("INT", "TERM", "HUP", "QUIT", "USR1"):
        candidate = Candidate([], "echo up")
        until(lambda: waiters(server) == 1)
        candidate.send_signal(name)
        candidate.ended(128 + getattr(signal, "SIG" + name))
        equal((candidate.lines(), candidate.names()), ([], ["standing", "stopped"]))
        until(lambda: waiters(server) == 0)


@test
def a_signal_to_the_leader_is_forwarded_and_elect_exits_with_its_command(server):
    for name in ("INT", "TERM", "QUIT"):
        script = f"trap 'echo told; exit 7' {name}; echo up; sleep 1000 & wait"
        leader = Candidate(["--restart"], script)
        leader.says("up")
        leader.send_signal(name)
        leader.ended(7)
        equal(leader.lines(), ["up", "told"])
        equal(info(server), None)
    hung_up = Candidate(["--restart"], "echo up; exec sleep 1000")
    hung_up.says("up")
    hung_up.send_signal("HUP")
    hung_up.ended(129)


@test
def elect_continues_if_its_command_survives_a_hangup(_):
    leader = Candidate(["--restart"], "trap 'echo reloaded' HUP; trap 'exit 0' USR1; echo up;"
                                      " while :; do sleep 0.1 & wait; done")
    leader.says("up")
    leader.send_signal("HUP")
    leader.says("up", "reloaded")
    leader.send_signal("USR1")
    leader.leads(2)
    leader.says("reloaded", "up")
    leader.send_signal("TERM")
    leader.ended(128 + 15)


@test
def a_revoked_leader_hands_over_and_campaigns_again(server):
    first = Candidate([], UNTIL_TERM)
    first.says("up")
    second = Candidate([], UNTIL_TERM)
    until(lambda: waiters(server) == 1)
    equal(server.ask("LOCKS", "REVOKE", NAME), 1)
    second.says("up")
    first.says("up", "told")
    until(lambda: waiters(server) == 1)
    equal(first.names(), ["standing", "leader", "revoked", "standing"])
    equal(server.ask("LOCKS", "REVOKE", NAME), 1)
    first.leads(2)
    equal(first.tokens()[0] < second.tokens()[0] < first.tokens()[1], True)


@test
def the_lock_is_released_only_after_the_whole_process_group_has_ended(server):
    # The first process ends at once. Another process of its group waits for the gate.
    script = "(trap 'echo told; cat gate; echo gone; exit' TERM; echo up; sleep 1000 & wait) & wait"
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        gate = pathlib.Path(folder, "gate")
        os.mkfifo(gate)
        first = Candidate(["--ttl", "10m", "--grace", "5m"], script.replace("gate", str(gate)))
        first.says("up")
        token = first.leads()
        second = Candidate([], UNTIL_TERM)
        until(lambda: waiters(server) == 1)
        equal(server.ask("LOCKS", "REVOKE", NAME), 1)
        first.says("up", "told")
        equal([holder["token"] for holder in info(server)["holders"]], [token])
        equal(second.lines(), [])
        gate.write_text("")
        second.says("up")
        equal(first.lines(), ["up", "told", "gone"])


@test
def processes_that_the_command_leaves_are_ended_before_the_release(server):
    leader = elect(4, ["--grace", "0.2"], "trap '' TERM; sleep 1000 & echo $!; exit 4")
    equal(alive(int(leader.lines()[0])), False)
    equal(info(server), None)


@test
def a_command_that_ignores_term_is_killed_after_the_grace(server):
    leader = Candidate(["--grace", "0.2"], IGNORES_TERM)
    leader.says("up")
    equal(server.ask("LOCKS", "REVOKE", NAME), 1)
    leader.leads(2)
    leader.says("up", "up")
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    leader.leads(3)
    equal([name for name in leader.names() if name != "standing"],
          ["leader", "revoked", "leader", "lost", "leader"])


@test
def a_leader_whose_lock_is_broken_hands_over_and_campaigns_again(server):
    first = Candidate([], UNTIL_TERM)
    first.says("up")
    second = Candidate([], UNTIL_TERM)
    until(lambda: waiters(server) == 1)
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    second.says("up")
    first.says("up", "told")
    until(lambda: waiters(server) == 1)
    equal(first.names(), ["standing", "leader", "lost", "standing"])
    equal(first.leads() < second.leads(), True)


@test
def a_term_signal_after_a_loss_ends_elect(server):
    script = "trap 'echo told' TERM; trap 'exit 6' USR1; echo up; while :; do sleep 0.1 & wait; done"
    leader = Candidate(["--ttl", "1h", "--grace", "10m"], script)
    leader.says("up")
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    leader.says("up", "told")
    leader.send_signal("TERM")
    leader.says("told", "told")
    leader.send_signal("USR1")
    leader.ended(6)


@test
def the_commands_of_three_candidates_never_overlap(server):
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        record = pathlib.Path(folder, "record")
        three = [Candidate(["--ttl", "2s"], RECORDS, record) for _ in range(3)]

        def started(number):
            until(lambda: [line[0] for line in recorded(record)].count("start") >= number)
            token = int(recorded(record)[-1][1])
            return next(one for one in three if one.tokens()[-1:] == [token])

        for number, how in enumerate(["revoke", "KILL", "revoke", "TERM", "revoke", "KILL"], 1):
            leader = started(number)
            if how == "revoke":
                equal(server.ask("LOCKS", "REVOKE", NAME), 1)
                continue
            leader.send_signal(how)
            leader.ended(-signal.SIGKILL if how == "KILL" else 0)
            three[three.index(leader)] = Candidate(["--ttl", "2s"], RECORDS, record)
        started(7)
        lines = recorded(record)
        equal([line for line in lines if line == ["overlap"]], [])
        starts = [int(line[1]) for line in lines if line[0] == "start"]
        equal(starts, sorted(set(starts)))
        equal([int(line[1]) for line in lines if line[0] == "stop"], [starts[i] for i in (0, 2, 3, 4)])


@test
def without_a_server_elect_reports_it_and_retries(_):
    with data_folder() as folder:
        with Server(folder, "--port", str(free_port())) as server:
            port = port_of(server)
        waiting = Candidate(["--servers", f"holdfast://127.0.0.1:{port}"], UNTIL_TERM)
        until(lambda: waiting.names()[:2] == ["standing", "unreachable"])
        has(waiting.events()[1]["why"], "connection refused")
        with Server(folder, "--port", port):
            waiting.says("up")
            equal(list(dict.fromkeys(waiting.names())), ["standing", "unreachable", "leader"])
            waiting.send_signal("TERM")
            waiting.ended(0)


@test
def a_leader_survives_a_restart_of_its_server(_):
    with data_folder() as folder:
        with Server(folder, "--port", str(free_port())) as server:
            where = ["--servers", f"holdfast://127.0.0.1:{port_of(server)}"]
            leader = Candidate(where, UNTIL_TERM)
            token = leader.leads()
            second = Candidate(where, UNTIL_TERM)
            until(lambda: waiters(server) == 1)
        with Server(folder, "--port", where[1].rpartition(":")[2]) as server:
            until(lambda: waiters(server) == 1)
            equal([holder["token"] for holder in info(server)["holders"]], [token])
            leader.send_signal("TERM")
            leader.ended(0)
            equal(leader.lines(), ["up", "told"])
            second.says("up")
            equal(second.leads() > token, True)


@test
def a_leader_that_cannot_renew_ends_its_command_before_the_lock_expires(_):
    with data_folder() as folder, tempfile.TemporaryDirectory(prefix="holdfast-test-") as own:
        record = pathlib.Path(own, "record")
        with Server(folder, "--port", str(free_port())) as server:
            where = ["--servers", f"holdfast://127.0.0.1:{port_of(server)}", "--ttl", "4s", "--grace", "2s"]
            first, second = (Candidate(where, RECORDS, record) for _ in range(2))
            until(lambda: recorded(record) and waiters(server) == 1)
            leader = first if first.tokens() else second
            leader.send_signal("STOP")  # its clock and the TTL of the lock continue
            server.process.send_signal(signal.SIGSTOP)
            leader.send_signal("CONT")
            until(lambda: "lost" in leader.names())
            until(lambda: [line[0] for line in recorded(record)] == ["start", "stop"])
            server.process.send_signal(signal.SIGCONT)
            until(lambda: [line[0] for line in recorded(record)] == ["start", "stop", "start"])


@test
def the_command_of_a_stopped_leader_ends_before_another_candidate_leads(server):
    for script in (RECORDS, RECORDS_AND_IGNORES_TERM):
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
            record = pathlib.Path(folder, "record")
            first = Candidate(["--ttl", "2s"], script, record)
            first.leads()
            until(lambda: recorded(record))
            second = Candidate(["--ttl", "2s"], script, record)
            until(lambda: waiters(server) == 1)
            first.send_signal("STOP")
            second.leads()
            until(lambda: [line[0] for line in recorded(record)].count("start") == 2)
            equal([line for line in recorded(record) if line == ["overlap"]], [])
            first.send_signal("CONT")
            until(lambda: first.names() == ["standing", "leader", "lost", "standing"])
            for candidate in (first, second):
                candidate.process.kill()
                candidate.ended(-signal.SIGKILL)
            until(lambda: info(server) is None)


@test
def on_a_quorum_a_revoked_leader_yields_to_other_candidates(_):
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(data_folder()) for _ in range(3)]
        servers = [stack.enter_context(Server(folder, "--port", "auto")) for folder in folders]
        where = ["--servers", "quorum://" + ",".join(f"127.0.0.1:{port_of(server)}" for server in servers)]
        first = Candidate(where, UNTIL_TERM)
        first.says("up")
        second = Candidate(where, UNTIL_TERM)
        until(lambda: second.names() == ["standing"])
        servers[0].kill()
        for server in servers[1:]:
            equal(server.ask("LOCKS", "REVOKE", NAME), 1)
        second.says("up")
        equal(first.names()[:3], ["standing", "leader", "revoked"])
        equal(first.leads() < second.leads(), True)
        for server in servers[1:]:
            server.ask("LOCKS", "REVOKE", NAME)
        first.leads(2)
        first.says("up")


@test
def elect_leads_even_if_its_progress_is_not_read(server):
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETFL, os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"." * 4096):
            continue
    fcntl.fcntl(writer, fcntl.F_SETFL, 0)
    leader = Candidate([], UNTIL_TERM, stderr=writer)
    leader.says("up")
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    leader.says("up", "told", "up")
    leader.send_signal("TERM")
    leader.ended(0)
    os.close(reader)
    os.close(writer)


@test
def wrong_usage_exits_with_64_and_one_line(server):
    for words in ([], [NAME], [NAME, "--"], ["--", "true"], ["a", "b", "--", "true"],
                  ["-n", NAME, "--", "true"], ["--ttl", "9ms", NAME, "--", "true"],
                  ["--ttl", "9s", "--grace", "4501ms", NAME, "--", "true"],
                  ["--servers", "ftp://x", NAME, "--", "true"]):
        done = subprocess.run([COMMAND, "elect", *words], check=False, capture_output=True, text=True,
                              timeout=LIMIT_S)
        equal((done.returncode, done.stdout, done.stderr.count("\n")), (64, "", 1))
        has(done.stderr, "holdfast elect --help")
    equal(info(server), None)
    elect(0, ["--ttl", "9s", "--grace", "4500ms"], "true")


if __name__ == "__main__":
    run_tests(service_and_end)
