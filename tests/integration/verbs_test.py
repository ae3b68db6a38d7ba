#!/usr/bin/env python3
"""The verbs of `holdfast` except run and check, against one real server and against a quorum of three:
their output as text and as JSON, and their exit statuses. The last line is "N passed, N failed".
HOLDFAST_SERVER names the server; the command is in the same folder."""
import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import threading

from harness import LIMIT_S, Server, data_folder, equal, has, run_tests, test, until
from job import COMMAND, call, call_json, ended, start

VERBS = ["lock", "unlock", "renew", "info", "list", "break", "revoke", "watch", "ping"]
OWNED = ("unlock", "renew")
UNNAMED = ("list", "ping")


def address(server):
    return "127.0.0.1:" + re.search(r"on 127\.0\.0\.1:(\d+)", server.log).group(1)


class Places:
    """Three servers, which are a quorum. By default the command uses only the first."""

    def __init__(self, servers):
        self.servers = servers
        self.names = [address(server) for server in servers]
        self.one = "holdfast://" + self.names[0]
        self.quorum = "quorum://" + ",".join(self.names)
        os.environ["HOLDFAST_SERVERS"] = self.one

    def first(self):
        return self.servers[0], self.names[0]


@contextlib.contextmanager
def three_servers():
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(data_folder()) for _ in range(3)]
        servers = [stack.enter_context(Server(folder, "--port", "auto")) for folder in folders]
        yield Places(servers)


def words_for(verb):
    """The verb with correct arguments."""
    return [verb, *([] if verb in UNNAMED else ["k", "alice"] if verb in OWNED else ["k"])]


@test
def lock_leaves_the_lock_held_and_prints_owner_and_token(places):
    server, _ = places.first()
    out = call(0, "lock", "--ttl", "1h", "k")[0]
    owner, token = re.fullmatch(r"([0-9a-f]{32}) (\d+)\n", out).groups()
    equal(server.ask("GET", "k"), owner.encode())
    equal(server.ask("LOCKS", "CHECK", "k", token), 1)
    equal(3_500_000 < server.ask("PTTL", "k") <= 3_600_000, True)
    equal(server.info("lock_renewals", "locks"), "0")
    found = call_json("lock", "--ttl", "30s", "j")
    equal((found["key"], found["ttl_ms"]), ("j", 30000))
    equal(server.ask("GET", "j"), found["owner"].encode())
    equal(server.ask("LOCKS", "CHECK", "j", found["token"]), 1)


@test
def a_lock_expires_at_its_ttl(places):
    server, _ = places.first()
    call(0, "lock", "--ttl", "100ms", "k")
    until(lambda: server.ask("EXISTS", "k") == 0)
    equal(server.info("lock_releases", "locks"), "0")


@test
def lock_waits_or_reports_busy(places):
    server, _ = places.first()
    server.lock("k")
    for options in (["-n"], ["-w", "50ms"], ["-n", "--shared"], ["-n", "--limit", 2]):
        has(call(75, "lock", *options, "k")[1], "k: ")
    waiting = start("lock", "-w", "1h", "k")
    until(lambda: server.info("lock_waiters", "locks") == "1")
    equal(server.ask("UNLOCK", "k", "alice"), 1)
    has(ended(waiting, 0)[0], server.ask("GET", "k").decode())


@test
def a_signal_ends_the_wait_of_lock(places):
    server, _ = places.first()
    server.lock("k")
    waiting = start("lock", "k")
    until(lambda: server.info("lock_waiters", "locks") == "1")
    waiting.send_signal(signal.SIGINT)
    equal(ended(waiting, 130)[0], "")
    until(lambda: server.info("lock_waiters", "locks") == "0")


@test
def lock_acquires_shared_locks_and_semaphores(places):
    for options in (["--shared"], ["--limit", "2"]):
        name = options[0][2:]
        equal(len({call_json("lock", "-n", *options, name)["owner"] for _ in range(2)}), 2)
        call(75, "lock", "-n", name)
    call(75, "lock", "-n", "--limit", "2", "limit")


@test
def a_grant_that_cannot_be_printed_is_released(places):
    server, _ = places.first()
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([COMMAND, "lock", "k"], check=False, stdout=full, timeout=LIMIT_S)
    equal(done.returncode, 74)
    until(lambda: server.ask("EXISTS", "k") == 0)


@test
def lock_renew_and_unlock_work_on_one_server_and_on_a_quorum(places):
    for where, number in ((places.one, 1), (places.quorum, 3)):
        at = ["--servers", where]
        owner = call(0, "lock", *at, "k")[0].split()[0]
        call(75, "lock", "-n", *at, "k")
        has(call(0, "renew", *at, "--ttl", "1h", "k", owner)[0], f"renewed on {number} of {number} server")
        for server in places.servers[:number]:
            equal(server.ask("PTTL", "k") > 3_500_000, True)
        found = call_json("renew", *at, "k", owner)
        equal((found["key"], found["owner"], found["renewed"]), ("k", owner, True))
        equal(found["servers"], [{"server": name, "reply": 1} for name in places.names[:number]])
        has(call(0, "unlock", *at, "k", owner)[0], f"released on {number} of {number} server")
        equal(call_json("unlock", *at, "k", owner, status=1)["released"], False)
        equal([server.ask("EXISTS", "k") for server in places.servers], [0, 0, 0])


@test
def an_owner_that_does_not_hold_the_lock_gets_status_1(places):
    server, name = places.first()
    for verb in OWNED:
        equal(call(1, verb, "k", "bob"), ("", "holdfast: k: bob does not hold it: the lock is free\n"))
    server.lock("k")
    for verb in OWNED:
        equal(call(1, verb, "k", "bob"), ("", "holdfast: k: another owner holds it, not bob\n"))
        equal(call_json(verb, "k", "bob", status=1)["servers"], [{"server": name, "reply": -1}])
    equal(server.ask("GET", "k"), b"alice")


@test
def a_minority_of_servers_makes_no_quorum(places):
    at = ["--servers", places.quorum]
    places.servers[0].lock("k")
    for verb in OWNED:
        has(call(1, verb, *at, "k", "alice")[1], "on enough servers" if verb == "renew" else "")
        places.servers[0].lock("k")
    places.servers[2].kill()
    for server in places.servers[:2]:
        server.lock("j")
    out, err = call(0, "renew", *at, "j", "alice")
    has(out, "2 of 3")
    has(err, places.names[2], "no answer")
    call(0, "ping", *at)
    call(0, "break", *at, "j")
    equal([places.servers[i].ask("EXISTS", "j") for i in range(2)], [0, 0])


@test
def the_mode_of_the_hold_determines_the_quorum(places):
    cases = []
    for settings, options, status in (
            ("?wquorum=3&rquorum=2", ["--shared"], 0), ("?wquorum=2&rquorum=3", ["--shared"], 69),
            ("?wquorum=2", ["--limit", "2"], 69), ("?wquorum=2", [], 0), ("?wquorum=3", [], 69)):
        for verb in ("renew", "unlock"):
            name, at = f"k{len(cases)}", ["--servers", places.quorum + settings]
            owner = call_json("lock", *at, *options, "--ttl", "1h", name)["owner"]
            for server in places.servers:  # lock needs only a quorum: the last server may grant later
                until(lambda server=server, name=name: server.ask("EXISTS", name) == 1)
            cases.append((status, [verb, *at, name, owner]))
    places.servers[2].process.send_signal(signal.SIGSTOP)
    try:
        running = [(start(*words), status) for status, words in cases]  # each waits for the stopped server
        for process, status in running:
            ended(process, status)
    finally:
        places.servers[2].process.send_signal(signal.SIGCONT)


@test
def too_few_servers_exit_with_69(places):
    at = ["--servers", places.quorum]
    for server in places.servers[1:]:
        server.kill()
    places.servers[0].lock("k")
    for verb in ("lock", "unlock", "renew", "break", "revoke", "ping"):
        options = ["-n"] if verb == "lock" else []
        call(69, verb, *at, *options, *words_for(verb)[1:])
    has(call(0, "info", *at, "k")[0], places.names[0] + ": free", places.names[1] + ": no answer")
    places.servers[0].kill()
    for verb in VERBS:
        options = ["-n"] if verb == "lock" else []
        out, err = call(69, verb, *at, *options, *words_for(verb)[1:])
        has(out + err, "answer")


@test
def info_shows_holders_and_waiters(places):
    server, name = places.first()
    token = server.lock("k", "alice", 0, "LIMIT", 2)
    server.lock("k", "an owner\x1b[1m", 90_500, "LIMIT", 3)
    waiting = start("lock", "--limit", 2, "k")
    until(lambda: server.info("lock_waiters", "locks") == "1")
    server.lock("k", "alice", 0, "LIMIT", 2, "NOTE", "for the \x1b report")
    lines = call(0, "info", "k")[0].splitlines()
    equal(len(lines), 4)
    has(lines[1], "  (for the \\x1b report)")
    equal(lines[0], name + ": limit 2")
    has(lines[1], f"held by alice  token {token}  ttl for ever  held for ")
    has(lines[2], "held by an\\x20owner\\x1b[1m  token ", "  ttl 1m")
    has(lines[3], "waiting ", "limit 2  for ")
    [row] = call_json("info", "k")
    equal((row["server"], row["key"], row["mode"], row["limit"]), (name, "k", "limit", 2))
    equal([holder["owner"] for holder in row["holders"]], ["alice", "an owner\x1b[1m"])
    equal((row["holders"][0]["token"], row["holders"][0]["ttl"], len(row["waiters"])), (token, -1, 1))
    waiting.terminate()
    ended(waiting, 143)


@test
def info_of_a_free_lock_and_of_each_server_of_a_quorum(places):
    places.servers[1].lock("k")
    places.servers[2].ask("HSET", "k", "f", "v")
    lines = call(0, "info", "--servers", places.quorum, "k")[0].splitlines()
    equal((lines[0], lines[1]), (places.names[0] + ": free", places.names[1] + ": exclusive"))
    has(lines[3], places.names[2] + ": WRONGTYPE")
    free, held, wrong = call_json("info", "--servers", places.quorum, "k")
    equal(free, {"server": places.names[0], "key": "k", "mode": "free", "limit": 0, "delay": 0,
                 "holders": [], "waiters": []})
    equal((held["holders"][0]["owner"], wrong["error"][:9]), ("alice", "WRONGTYPE"))


@test
def list_pages_through_all_locks_in_order(places):
    server, name = places.first()
    for i in range(2500):
        server.lock(f"job:{i:04}")
    server.lock("other", "alice", 0)
    rows = [line.split() for line in call(0, "list")[0].splitlines()]
    equal(rows[0], ["KEY", "MODE", "HOLDERS", "WAITERS", "TOKEN", "TTL", "OWNER", "NOTE"])
    equal([row[0] for row in rows[1:]], [f"job:{i:04}" for i in range(2500)] + ["other"])
    equal((rows[-1][1:4], rows[-1][5:]), (["exclusive", "1", "0"], ["for", "ever", "alice", "-"]))
    server.lock("other", "alice", 0, "NOTE", "a\x1b note")
    has(call(0, "list")[0], "  alice  a\\x1b note\n")
    found = call_json("list", "--match", "job:000?")
    equal([row["key"] for row in found], [f"job:{i:04}" for i in range(10)])
    equal((found[0]["server"], found[0]["holders"]), (name, 1))
    equal(call_json("list", "--match", "none"), [])


@test
def list_has_a_row_for_each_server(places):
    for server in places.servers[1:]:
        server.lock("k")
    rows = [line.split() for line in call(0, "list", "--servers", places.quorum)[0].splitlines()]
    equal(rows[0][:2], ["SERVER", "KEY"])
    equal([row[:2] for row in rows[1:]], [[name, "k"] for name in places.names[1:]])
    places.servers[1].kill()
    found = call_json("list", "--servers", places.quorum)
    equal([set(row) & {"error", "key"} for row in found], [{"error"}, {"key"}])


@test
def break_ends_all_holds_and_revoke_asks_the_holders_to_release(places):
    for server in places.servers[:2]:
        server.lock("k", "alice", 0, "SHARED")
    places.servers[0].lock("k", "bob", 0, "SHARED")
    at = ["--servers", places.quorum]
    holds = [f"{name}: {n} hold{'' if n == 1 else 's'} " for name, n in zip(places.names, (2, 1, 0))]
    equal(call(0, "revoke", *at, "k")[0], "".join(f"{line}asked to end\n" for line in holds))
    equal([row["holds"] for row in call_json("revoke", *at, "k")], [2, 1, 0])
    equal(call(0, "break", *at, "k")[0], "".join(f"{line}broken\n" for line in holds))
    equal(call_json("break", *at, "k"), [{"server": name, "holds": 0} for name in places.names])


@test
def watch_shows_events_as_they_come(places):
    server, name = places.first()
    shown, as_json = start("watch", "k"), start("watch", "--json", "k")
    watches = [shown, as_json]
    equal([name in watch.stdout.readline() for watch in watches], [True, True])
    token = server.lock("k", "an owner")
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    granted = shown.stdout.readline()
    equal(re.sub(stamp, "TIME", granted), f"TIME {name} granted an owner {token}\n")
    row = json.loads(as_json.stdout.readline())
    equal(bool(re.fullmatch(stamp, row.pop("time"))), True)
    equal(row, {"server": name, "event": "granted", "owner": "an owner", "token": token})
    server.ask("LOCKS", "REVOKE", "k")
    equal(json.loads(as_json.stdout.readline())["event"], "revoke")
    server.ask("UNLOCK", "k", "an owner")
    row = json.loads(as_json.stdout.readline())
    equal((row["event"], row["owner"]), ("released", "an owner"))
    for watch, number in zip(watches, (signal.SIGINT, signal.SIGTERM)):
        watch.send_signal(number)
        ended(watch, -number)


@test
def watch_follows_all_servers_and_reports_a_reconnect(places):
    watching = start("watch", "--servers", places.quorum, "k")
    seen = sorted(watching.stdout.readline().split()[1:] for _ in places.names)
    equal(seen, sorted([name, "watching"] for name in places.names))
    places.servers[1].lock("k")
    equal(watching.stdout.readline().split()[1:3], [places.names[1], "granted"])
    equal(places.servers[2].ask("CLIENT", "KILL", "TYPE", "pubsub"), 1)
    equal(watching.stdout.readline().split()[1:], [places.names[2], "watching"])
    watching.terminate()
    ended(watching, -signal.SIGTERM)


@test
def watch_shows_all_locks_that_match_a_pattern(places):
    server, name = places.first()
    shown, as_json = start("watch", "--match", "job:?"), start("watch", "--match", "job:*", "--json")
    equal(shown.stdout.readline().split()[1:], [name, "watching"])
    equal(json.loads(as_json.stdout.readline())["event"], "watching")
    for key in ("other", "job:12", "job:1"):
        server.lock(key)
    equal(shown.stdout.readline().split()[1:4], [name, "job:1", "granted"])
    for key in ("job:12", "job:1"):
        row = json.loads(as_json.stdout.readline())
        equal((row["server"], row["key"], row["event"], row["owner"]), (name, key, "granted", "alice"))
    equal(server.ask("CLIENT", "KILL", "TYPE", "pubsub"), 2)
    equal(shown.stdout.readline().split()[1:], [name, "watching"])
    server.ask("UNLOCK", "job:1", "alice")
    equal(shown.stdout.readline().split()[1:4], [name, "job:1", "released"])
    for watch in (shown, as_json):
        watch.terminate()
        ended(watch, -signal.SIGTERM)


@test
def watch_by_pattern_follows_all_servers(places):
    watching = start("watch", "--servers", places.quorum + "?rfactor=1", "--match", "*")
    seen = sorted(watching.stdout.readline().split()[1:] for _ in places.names)
    equal(seen, sorted([name, "watching"] for name in places.names))
    for server, name in zip(places.servers, places.names):
        server.lock("k")
        equal(watching.stdout.readline().split()[1:4], [name, "k", "granted"])
    watching.terminate()
    ended(watching, -signal.SIGTERM)


@test
def watch_rejects_a_pattern_as_a_name(places):
    server, name = places.first()
    for pattern in ("job:*", "job:?", "job[1]"):
        escaped = re.sub(r"([]*?[])", r"\\\1", pattern)
        has(call(64, "watch", pattern)[1], f"watch --match '{pattern}'", f"watch --match '{escaped}'")
        watching = start("watch", "--match", escaped)
        has(watching.stdout.readline(), "watching")
        server.lock("job:1")
        server.lock(pattern)
        equal(watching.stdout.readline().split()[1:4], [name, pattern, "granted"])
        watching.terminate()
        ended(watching, -signal.SIGTERM)
    for words in (["k", "--match", "j*"], []):
        has(call(64, "watch", *words)[1], "watch NAME|--match PATTERN")


@test
def a_failed_write_to_standard_output_exits_with_74_and_an_error(places):
    server, _ = places.first()
    for verb in VERBS:
        if verb in OWNED:
            server.lock("k")
        with open("/dev/full", "w", encoding="ascii") as full:
            done = subprocess.run([COMMAND, *words_for(verb)], check=False, text=True, stdout=full,
                                  stderr=subprocess.PIPE, timeout=LIMIT_S)
        equal((verb, done.returncode, done.stderr.splitlines()[-1]),
              (verb, 74, "holdfast: standard output cannot be written: No space left on device"))


@test
def an_empty_name_or_owner_is_rejected(places):
    for verb in VERBS:
        right = words_for(verb)
        for i in range(1, len(right)):
            err = call(64, *right[:i], "", *right[i + 1:])[1]
            has(err, "OWNER is empty" if i == 2 else "NAME is empty", f"holdfast {verb} --help")
        has(call(64, *right, "--servers", "")[1], "--servers is empty")
    for verb in ("list", "watch"):
        has(call(64, verb, "--match", "")[1], "--match is empty")
    equal(places.servers[0].ask("DBSIZE"), 0)


@test
def run_keeps_a_lock_for_at_least_on_all_servers_of_a_quorum(places):
    call(0, "run", "--servers", places.quorum, "--at-least", "1h", "k", "--", "true")
    for server in places.servers:
        until(lambda server=server: 3_500_000 < server.ask("PTTL", "k") < 3_700_000)
    call(75, "run", "-n", "--servers", places.quorum, "k", "--", "true")


@test
def watch_ends_if_its_output_has_no_reader(places):
    server, _ = places.first()
    watching = start("watch", "k")
    has(watching.stdout.readline(), "watching")
    watching.stdout.close()
    server.lock("k")
    watching.wait(LIMIT_S)
    equal(watching.returncode, 74)
    watching.stderr.close()


@test
def ping_shows_each_server_and_whether_there_is_a_quorum(places):
    server, name = places.first()
    server.lock("k")
    lines = call(0, "ping")[0].splitlines()
    equal((len(lines), lines[2]), (3, "1 of 1 server usable: enough for a lock"))
    has(lines[1], name, " 0.", " ms")
    places.servers[2].kill()
    at = ["--servers", places.quorum]
    found = call_json("ping", *at)
    equal((found["quorum"], [row["reachable"] for row in found["servers"]]), (True, [True, True, False]))
    first = found["servers"][0]
    equal((first["server"], first["holdfast_version"][:2], first["redis_version"][:2]), (name, "0.", "7."))
    equal((0 < first["round_trip_ms"] < 1000, abs(first["clock_offset_ms"]) < 1000), (True, True))
    equal(-60_000 < first["token_lead_ms"] < 1000, True)
    has(found["servers"][2]["error"], "no answer")
    places.servers[1].kill()
    equal(call_json("ping", *at, status=69)["quorum"], False)
    has(call(69, "ping", *at)[0], "1 of 3 servers usable: too few for a lock")


def answer_as_redis(listener):
    """Accepts one connection, and replies to PING, TIME and INFO as Redis does, to CLIENT by an error."""
    with listener.accept()[0] as peer:
        words = peer.makefile("rb")
        for line in words:
            if line in (b"PING\r\n", b"TIME\r\n", b"INFO\r\n", b"CLIENT\r\n"):
                peer.sendall({b"P": b"+PONG\r\n", b"T": b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n",
                              b"C": b"-ERR unknown command\r\n",
                              b"I": b"$22\r\n# S\r\nredis_version:7.0\r\n"}[line[:1]])


@test
def ping_distinguishes_redis_from_holdfast(_):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer_as_redis, args=[listener], daemon=True).start()
        place = f"holdfast://127.0.0.1:{listener.getsockname()[1]}"
        found = call_json("ping", "--servers", place, status=69)
    equal((found["quorum"], found["servers"][0]["reachable"]), (False, True))
    has(found["servers"][0]["error"], "not a Holdfast server", "7.0")


@test
def with_rfactor_all_keys_must_be_reachable(places):
    places.servers[2].kill()
    call(69, "ping", "--servers", places.quorum + "?rfactor=2")
    equal(len(call_json("info", "--servers", places.quorum + "?rfactor=2", "k")), 2)


@test
def wrong_usage_exits_with_64_and_one_line(places):
    for verb in VERBS:
        right = words_for(verb)
        few = [right[:-1]] if verb not in UNNAMED else []
        for words in (*few, [*right, "more"], [*right, "--frob"], [*right, "--servers", "ftp://x"],
                      [*right, "--servers", "embedded:"], [*right, "--servers"], [*right, "--json=1"]):
            out, err = call(64, *words)
            equal((out, err.count("\n")), ("", 1))
            has(err, f"holdfast {verb} --help")
    for words in (["lock", "-n", "-w", "1"], ["lock", "--shared", "--limit", "2"], ["lock", "--ttl", "9ms"],
                  ["lock", "--limit", "0"], ["renew", "--ttl", "9ms", "alice"], ["info", "--ttl", "1s"]):
        has(call(64, *words, "k")[1], "--help")
    has(call(64, "ping", "--servers", "embedded:jobs")[1], "start holdfast-server")
    equal(places.servers[0].ask("DBSIZE"), 0)


@test
def every_verb_has_help(_):
    all_verbs = call(0, "--help")[0]
    for verb in VERBS:
        has(all_verbs, f"\n  {verb}")
        out, err = call(0, verb, "--help")
        equal(call(0, verb, "-h"), (out, err))
        has(out, f"Usage: holdfast {verb}", "--servers", "--json", "Exit status")
        has(out, f"\n    holdfast {verb}")  # an example
        equal(err, "")


@test
def headings_are_bold_only_on_a_terminal_that_supports_it(places):
    places.servers[0].lock("k")
    for variables, bold in (({"TERM": "xterm"}, True), ({"TERM": "dumb"}, False),
                            ({"TERM": "xterm", "NO_COLOR": "1"}, False)):
        ours, its = pty.openpty()
        subprocess.run([COMMAND, "list"], check=True, stdout=its, timeout=LIMIT_S,
                       env={**os.environ, "NO_COLOR": "", **variables})
        os.close(its)
        equal(b"\x1b[1mKEY" in os.read(ours, 4096), bold)
        os.close(ours)
    equal("\x1b" in call(0, "list")[0], False)


@test
def a_name_with_control_bytes_is_shown_escaped(places):
    server, _ = places.first()
    server.lock(b"\xff\x1b\xc2\x9b")  # the last two bytes are also a terminal's CSI
    [row] = call_json("list")
    equal(row["key"], "\ufffd\x1b\x9b")
    done = subprocess.run([COMMAND, "list"], check=True, capture_output=True, timeout=LIMIT_S)
    has(done.stdout, b"\\x1b\\xc2\\x9b")
    equal(b"\x1b" in done.stdout or b"\x9b" in done.stdout, False)


if __name__ == "__main__":
    run_tests(three_servers)
