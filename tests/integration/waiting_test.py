#!/usr/bin/env python3
"""The messages of `holdfast run`, `elect`, `lock` and `watch` on standard error while they wait: the
holder, the place in the queue, and each unreachable server with the reason. Also addresses in --servers
without a scheme. The last line is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in
the same folder; REDIS_SERVER is Redis."""
import contextlib
import http.server
import json
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import (LIMIT_S, REDIS, Server, data_folder, end_with_parent, equal, free_port, has, run_tests,
                     test, until)
from job import COMMAND, NAME, call, call_json, ended, info, port_of, service

SOON_S = 3  # limit for messages that are due in 1 s or 2 s, with time for a slow machine
WAITERS = {"run": [NAME, "--", "true"], "elect": [NAME, "--", "true"], "lock": [NAME]}


class Waiting:
    """The command with these words; the test reads its standard error by lines, each with a deadline."""

    def __init__(self, *words):
        self.began = time.monotonic()
        self.process = subprocess.Popen([COMMAND, *map(str, words)], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        preexec_fn=end_with_parent)
        self.rest = b""

    def line(self, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while b"\n" not in self.rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stderr], [], [], left)[0]:
                raise AssertionError(f"no line within {limit_s} s, only {self.rest!r}")
            more = os.read(self.process.stderr.fileno(), 65536)
            if not more:
                raise AssertionError(f"standard error ended after {self.rest!r}")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        return line.decode()

    def line_with(self, part, limit_s=LIMIT_S):
        deadline = time.monotonic() + limit_s
        while part not in (line := self.line(deadline - time.monotonic())):
            continue
        return line

    def end(self, status=128 + 15):
        """Ends the command, and returns the unread part of both outputs."""
        self.process.terminate()
        out, err = self.process.communicate(timeout=LIMIT_S)
        err = (self.rest + err).decode()
        if self.process.returncode != status or "Sanitizer" in err:
            raise AssertionError(f"status {self.process.returncode}, wanted {status}: {err!r}")
        return out.decode(), err


def where(server):
    return f"127.0.0.1:{port_of(server)}"


@contextlib.contextmanager
def quorum(number=3):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Server(stack.enter_context(data_folder()), "--port", "auto"))
               for _ in range(number)]


@contextlib.contextmanager
def redis():
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        port = free_port()
        with Server(folder, "--port", str(port), "--bind", "127.0.0.1", command=REDIS) as server:
            server.name = f"127.0.0.1:{port}"
            yield server


# --- addresses without a scheme ---

@test
def an_address_without_a_scheme_is_one_holdfast_server(server):
    one = where(server)
    has(call(0, "ping", "--servers", one)[0], one, "enough for a lock")
    equal(call(0, "run", "--servers", one, NAME, "--", "sh", "-c", "echo $HOLDFAST_SERVERS")[0], f"{one}\n")
    os.environ["HOLDFAST_SERVERS"] = one
    equal(call_json("ping")["servers"][0]["server"], one)
    has(call(0, "ping", "--servers", f"{one}?timeout=5000")[0], "enough for a lock")


@test
def several_addresses_without_a_scheme_are_a_quorum(_):
    with quorum() as servers:
        all_of_them = ",".join(map(where, servers))
        owner, _ = call(0, "lock", "--servers", all_of_them, NAME)[0].split()
        equal([info(server)["holders"][0]["owner"].decode() for server in servers], [owner] * 3)
        servers[0].kill()
        has(call(0, "unlock", "--servers", all_of_them, NAME, owner)[0], "released on 2 of 3 servers")


@test
def a_login_works_without_a_scheme_and_is_not_shown_in_ps(_):
    with data_folder() as folder, Server(folder, "--port", "auto", "--requirepass", "geheim") as server:
        one = where(server)
        has(call(0, "ping", "--servers", f"default:geheim@{one}")[0], "enough for a lock")
        has(call(0, "ping", "--servers", f"{one}?password=geheim")[0], "enough for a lock")
        for words in (["--servers", f":geheim@{one}"], [f"--servers=:geheim@{one}"]):
            watching = Waiting("watch", *words, NAME)
            has(watching.process.stdout.readline().decode(), "watching")
            shown = pathlib.Path(f"/proc/{watching.process.pid}/cmdline").read_text()
            equal("geheim" in shown, False)
            watching.end(-15)


@test
def a_wrong_address_exits_with_64_and_shows_the_wrong_part_and_an_example(_):
    for text, part in (("a:7379, b:7379", '" b" has a blank'),
                       ("a,b:x", "behind the host of server 2 is not a port"),
                       ("ftp://a", '"ftp://" is not a scheme'), (":7379", "has no host"),
                       ("a:1,b:99999", '"99999" is not a port'), ("7379", "is a port without a host")):
        err = call(64, "run", "--servers", text, NAME, "--", "true")[1]
        has(err, part, ":7379")
        equal(err.count("\n"), 1)


# --- the holder ---

@test
def each_verb_that_waits_shows_the_holder_and_its_place_in_the_queue(server):
    owner = call(0, "lock", "--ttl", "10m", NAME)[0].split()[0]
    for verb, words in WAITERS.items():
        waiting = Waiting(verb, *words)
        line = waiting.line_with(" waiting: ", SOON_S)
        has(line, f"{NAME}: waiting: held by {owner} for ", ", ttl ", f"; place 1 of 1 in the queue")
        waiting.end()
        until(lambda: not info(server)["waiters"])


@test
def the_message_shows_the_connection_of_the_holder_and_the_place_among_waiters(server):
    holder = Waiting("run", NAME, "--", "sh", "-c", "echo up; exec sleep 1000")
    has(holder.process.stdout.readline().decode(), "up")
    first = Waiting("lock", NAME)
    until(lambda: len(info(server)["waiters"]) == 1)
    second = Waiting("lock", NAME)
    line = second.line_with("waiting: ", SOON_S)
    has(line, "waiting: held by ", ", ttl ", "; place 2 of 2 in the queue")
    id_of_holder = info(server)["holders"][0]["client"]
    address = re.search(r" addr=(\S+)", server.ask("CLIENT", "LIST", "ID", id_of_holder).decode())[1]
    has(line, f" at {address} (holdfast-run) for ")
    second.end()
    first.end()
    holder.end()


@test
def the_message_repeats_after_five_seconds_and_then_the_lock_is_acquired(server):
    owner, _ = call(0, "lock", "--ttl", "10m", NAME)[0].split()
    waiting = Waiting("run", NAME, "--", "echo", "ran")
    waiting.line_with("waiting: ", SOON_S)
    began = time.monotonic()
    waiting.line_with("waiting: held by " + owner)
    equal(4.5 < time.monotonic() - began, True)
    call(0, "unlock", NAME, owner)
    has(waiting.process.stdout.readline().decode(), "ran")
    equal(waiting.process.wait(LIMIT_S), 0)


@test
def a_server_that_restarts_with_the_lock_held_is_queried_soon(_):
    with data_folder() as folder:
        with Server(folder, "--port", str(free_port())) as server:
            port = port_of(server)
            owner, _ = call(0, "lock", "--ttl", "10m", "--servers", where(server), NAME)[0].split()
        waiting = Waiting("lock", "--servers", f"127.0.0.1:{port}", NAME)
        waiting.line_with("cannot reach", SOON_S)
        with Server(folder, "--port", port):
            has(waiting.line_with("waiting: "), f"held by {owner}", "place 1 of 1")
            waiting.end()


@test
def elect_prints_the_message_as_json(_):
    owner, _ = call(0, "lock", "--ttl", "10m", NAME)[0].split()
    waiting = Waiting("elect", "--json", NAME, "--", "true")
    equal(json.loads(waiting.line(SOON_S))["event"], "standing")
    row = json.loads(waiting.line(SOON_S))
    [holder] = row.pop("holders")
    equal((row["event"], row["key"], row["place"], row["waiters"], row["delay_ms"]),
          ("waiting", NAME, 1, 1, 0))
    equal(holder["owner"], owner)
    equal(0 <= holder["held_ms"] < 600_000 and 0 < holder["ttl_ms"] <= 600_000, True)
    equal(len(holder["servers"]), 1)
    waiting.end()


@test
def a_free_lock_is_acquired_without_further_queries(server):
    before = commands(server)
    for words in (["run", NAME, "--", "true"], ["lock", "--ttl", "10ms", NAME],
                  ["elect", NAME, "--", "true"]):
        equal("waiting" in call(0, *words)[1], False)
        until(lambda: not server.ask("EXISTS", NAME))
    call(0, "lock", "--ttl", "10m", NAME)
    call(75, "run", "-n", NAME, "--", "true")
    call(75, "lock", "-n", NAME)
    asked = {name for name, calls in commands(server).items() if calls != before.get(name)}
    equal(asked & {"locks|info", "client|list"}, set())


def commands(server):
    return dict(re.findall(r"cmdstat_(\S+):calls=(\d+)", server.ask("INFO", "commandstats").decode()))


@test
def quiet_suppresses_all_messages(server):
    owner, _ = call(0, "lock", "--ttl", "10m", NAME)[0].split()
    unused = f"127.0.0.1:{free_port()}"
    control = Waiting("lock", NAME)
    waiting = [Waiting(verb, "--quiet", *words) for verb, words in WAITERS.items()]
    unreachable = [Waiting(verb, "-q", "--servers", unused, *words) for verb, words in WAITERS.items()]
    control.line_with("waiting: ", SOON_S)
    control.end()
    until(lambda: len(info(server)["waiters"]) == 3)
    for process in waiting + unreachable:
        lines = [line for line in process.end()[1].splitlines()
                 if not re.fullmatch(rf"holdfast: {NAME}: (standing|stopped, status 143)", line)]
        equal(lines, [])
    call(0, "unlock", NAME, owner)


@test
def watch_with_quiet_does_not_report_a_disconnect(_):
    with data_folder() as folder:
        with Server(folder, "--port", str(free_port())) as server:
            port = port_of(server)
            watches = [Waiting("watch", *options, "--servers", f"127.0.0.1:{port}", NAME)
                       for options in ([], ["--quiet"])]
            for watch in watches:
                has(watch.process.stdout.readline().decode(), "watching")
        watches[0].line_with(f"cannot watch 127.0.0.1:{port}: ", SOON_S)
        with Server(folder, "--port", port):
            for watch in watches:
                has(watch.process.stdout.readline().decode(), "watching")
        equal(watches[1].end(-15)[1], "")
        watches[0].end(-15)


@test
def on_a_quorum_the_message_names_servers_with_the_holder_and_unreachable_servers(_):
    with quorum() as servers:
        names = [where(server) for server in servers]
        owner, _ = call(0, "lock", "--ttl", "10m", "--servers", ",".join(names), NAME)[0].split()
        servers[2].kill()
        waiting = Waiting("run", "--servers", ",".join(names), NAME, "--", "true")
        line = waiting.line_with("waiting: ", SOON_S)
        has(line, f"held by {owner}", names[0], names[1], "place 1 of 1",
            f"cannot reach {names[2]}: connection refused")
        # The waiter has queried the other servers meanwhile, and kept its place.
        has(waiting.line_with("waiting: "), f"held by {owner}", "place 1 of 1")
        waiting.end()


@test
def a_silent_server_of_a_quorum_does_not_delay_the_message(_):
    with quorum(2) as servers, silent() as third:
        names = [*map(where, servers), third]
        owner, _ = call(0, "lock", "--ttl", "10m", "--servers", ",".join(names), NAME)[0].split()
        waiting = Waiting("run", "--servers", ",".join(names), NAME, "--", "true")
        has(waiting.line_with("waiting: ", SOON_S), f"held by {owner}", f"cannot reach {third}: no answer")
        waiting.end()


@test
def a_user_without_the_permission_to_query_still_waits_and_the_message_says_so(server):
    server.ask("ACL", "SETUSER", "small", "on", ">pw", "~*", "&*", "+lock", "+unlock", "+renew", "+fence",
               "+subscribe", "+unsubscribe")
    owner, _ = call(0, "lock", "--ttl", "10m", NAME)[0].split()
    waiting = Waiting("run", "--servers", f"small:pw@{where(server)}", NAME, "--", "echo", "ran")
    has(waiting.line_with("waiting: ", SOON_S), where(server), "NOPERM", "locks|info")
    call(0, "unlock", NAME, owner)
    has(waiting.process.stdout.readline().decode(), "ran")
    equal(waiting.process.wait(LIMIT_S), 0)
    server.ask("ACL", "SETUSER", "small", "+locks|info")
    holder = Waiting("run", NAME, "--", "sh", "-c", "echo up; exec sleep 1000")
    has(holder.process.stdout.readline().decode(), "up")
    waiting = Waiting("run", "--servers", f"small:pw@{where(server)}", NAME, "--", "true")
    has(waiting.line_with("waiting: ", SOON_S), "held by ", "(connection ")
    waiting.end()
    holder.end()


@test
def on_redis_the_message_shows_the_owner_and_its_remaining_ttl(_):
    with redis() as server:
        owner = call(0, "lock", "--ttl", "10m", "--servers", f"redis://{server.name}", NAME)[0].split()[0]
        for options in ([], ["--attempts", "100000"]):
            waiting = Waiting("run", *options, "--servers", f"redis://{server.name}", NAME, "--", "true")
            has(waiting.line_with("waiting: ", SOON_S), f"held by {owner} for ", ", ttl 9m5")
            waiting.end()
        server.ask("SET", "plain", "tom", "PX", "600000")
        waiting = Waiting("lock", "--servers", f"redis://{server.name}", "plain")
        has(waiting.line_with("waiting: ", SOON_S), "held by tom", ", ttl 9m5")
        waiting.end()


# --- unreachable servers ---

@contextlib.contextmanager
def silent():
    """A server that accepts connections and never replies."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield "127.0.0.1:%d" % listener.getsockname()[1]


@contextlib.contextmanager
def closed():
    yield f"127.0.0.1:{free_port()}"


@contextlib.contextmanager
def web():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        server.RequestHandlerClass.log_message = lambda *_: None
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join(LIMIT_S)


@contextlib.contextmanager
def dropping():
    """New connections are dropped, as by a firewall: the queue of a listener without accept() is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield "127.0.0.1:%d" % listener.getsockname()[1]


@contextlib.contextmanager
def nameless():
    yield "no-such-host.invalid:7379"


FAULTS = {closed: ("connection refused",), web: ("protocol error", "check host and port"),
          silent: ("no answer in ", "check host and port"),
          dropping: ("no connection in ", "firewall"), nameless: ("",)}


@test
def each_unreachable_server_is_reported_within_two_seconds_with_the_reason(_):
    for make, reasons in FAULTS.items():
        with make() as name:
            for scheme in ("", "redis://"):
                # The lookup of a name can be slow: then the message says that the result is missing.
                waiting = [Waiting(verb, "--servers", scheme + name, *words)
                           for verb, words in WAITERS.items()]
                for one in waiting:
                    line = one.line_with("cannot reach", SOON_S)
                    has(line, f"cannot reach {name}: ", *reasons, "retrying")
                for one in waiting:
                    one.end()
                err = call(69, "watch", "--servers", scheme + name, NAME)[1]
                has(err, f"{name}: no answer: ", *reasons)


@test
def a_long_timeout_in_the_address_does_not_delay_the_message(_):
    with silent() as name:
        waiting = Waiting("run", "--servers", f"{name}?timeout=600000", NAME, "--", "true")
        has(waiting.line(SOON_S), f"cannot reach {name}: no answer so far")
        waiting.end()


@test
def on_a_quorum_each_reason_is_reported_and_not_repeated_at_once(_):
    with closed() as first, silent() as second, web() as third:
        waiting = Waiting("run", "--servers", f"{first},{second},{third}", NAME, "--", "true")
        has(waiting.line_with(second, SOON_S + 2), f"cannot reach {first}: connection refused",
            f"cannot reach {second}: no answer in ", f"cannot reach {third}: protocol error")
        began = time.monotonic()
        waiting.line()
        equal(4 < time.monotonic() - began, True)
        waiting.end()


if __name__ == "__main__":
    run_tests(service)
