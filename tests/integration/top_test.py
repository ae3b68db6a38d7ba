#!/usr/bin/env python3
"""`holdfast top` in a real terminal (tmux) and in batches: on one server, on a quorum with a server that is
down, over a restart, on small screens. The last line is "N passed, N failed". HOLDFAST_SERVER and
REDIS_SERVER name the servers; the command is in the same folder."""
import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import tempfile
import threading

from harness import LIMIT_S, REDIS, Client, Server, data_folder, end_with_parent, equal, free_port, has
from harness import run_tests, test, until
from job import COMMAND, call, call_json, ended, port_of, service, start

FAST = ["--interval", "100ms"]


class Screen:
    """A shell in a terminal of tmux with this size. `words` are typed into it as a command."""

    def __init__(self, width, height, *words, servers=None):
        self.own = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.folder = pathlib.Path(self.own.name)
        variables = {k: v for k, v in os.environ.items() if k not in ("TMUX", "LC_ALL", "LANG")}
        variables |= {"PS1": "$ ", "TERM": "xterm", "LANG": "C.UTF-8"}
        if servers:
            variables["HOLDFAST_SERVERS"] = servers
        # The search for leaks, at the exit, sometimes never ends after tmux has closed the terminal.
        variables["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        self.tmux_of(variables, "new-session", "-d", "-x", str(width), "-y", str(height),
                     "bash --norc --noprofile")
        self.type("stty -a >before; " + shlex.join(map(str, words)) + "; echo status=$?; stty -a >after\n")

    def tmux_of(self, variables, *words):
        done = subprocess.run(["tmux", "-S", self.folder / "tmux", "-f", "/dev/null", *words], check=True,
                              capture_output=True, text=True, env=variables, cwd=self.folder,
                              timeout=LIMIT_S)
        return done.stdout

    def tmux(self, *words):
        return self.tmux_of(None, *words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(subprocess.CalledProcessError):
            self.tmux("kill-server")
        self.own.cleanup()

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def press(self, *keys):
        """Keys by their names in tmux: Enter, Escape, C-c, PageDown, ..."""
        self.tmux("send-keys", *keys)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", str(width), "-y", str(height))

    def text(self):
        return self.tmux("capture-pane", "-p")

    def shows(self, *patterns, without=()):
        """Waits until the screen matches all patterns at once; returns its text."""
        seen = []

        def matches():
            seen[:] = [self.text()]
            return all(re.search(p, seen[0], re.MULTILINE) for p in patterns) and not any(
                re.search(p, seen[0], re.MULTILINE) for p in without)
        try:
            until(matches)
        except AssertionError as late:
            raise AssertionError(f"no {patterns} (without {without}) on the screen:\n{seen[0]}") from late
        return seen[0]

    def ended(self, status):
        """Waits for the shell's prompt. The terminal must be as before."""
        self.shows(rf"status={status}\b")
        until(lambda: (self.folder / "after").exists() and (self.folder / "after").read_text())
        equal((self.folder / "after").read_text(), (self.folder / "before").read_text())


def top(width, height, *words, servers=None):
    return Screen(width, height, COMMAND, "top", *FAST, *words, servers=servers)


class Crowd:
    """One lock with waiters on each of these servers: `key` is held by `holder`."""

    def __init__(self, servers, key="job:7", holder="alice", waiters=("bob", "carol")):
        self.connections = []
        for server in servers:
            server.lock(key, holder)
            for number, waiter in enumerate(waiters):
                connection = Client(server.path)
                connection.send(("LOCK", key, waiter, 600_000, "WAIT", 600_000))
                self.connections.append(connection)
                until(lambda s=server, n=number: s.info("lock_waiters", "locks") == str(n + 1))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for connection in self.connections:
            connection.close()


def line_with(text, words):
    return next(line for line in text.splitlines() if words in line)


def json_refreshes(number, *words):
    out = call(0, "top", "--json", "-n", number, *FAST, *words)[0]
    return [json.loads(line) for line in out.splitlines()]


@test
def the_screen_shows_totals_and_the_most_contended_lock_first(server):
    server.lock("a:quiet", "dave")
    with Crowd([server]), top(80, 24) as screen:
        text = screen.shows(r"^ready", r"waiters 2", r"^job:7 .*alice")
        equal(re.search(r"^job:7 +exclusive +alice .* 2 +[\d.]+m?s$", text, re.MULTILINE) is None, False)
        equal(text.index("job:7") < text.index("a:quiet"), True)
        has(text.encode(), b"grants/s", b"wait p50", b"p99", b"memory", b"clients")
        equal(max(map(len, text.splitlines())) <= 80, True)
        screen.press("q")
        screen.ended(0)


@test
def rates_and_percentiles_are_those_of_the_last_interval(server):
    server.ask_all([("LOCK", f"k{i}", "o", 60000) for i in range(50)])
    first, second = json_refreshes(2)
    equal((first["total"]["grants_per_s"], second["total"]["grants_per_s"]), (0, 0))
    equal(second["total"]["wait_p99_ms"], None)
    running = start("top", "--json", "-n", 1, "--interval", "1s")
    until(lambda: server.info("connected_clients", "clients") == "2")
    until(lambda: int(re.search(r"cmdstat_info:calls=(\d+)",
                                server.ask("INFO", "commandstats").decode())[1]) > 0)
    server.lock("held", "alice")
    waiter = Client(server.path)
    waiter.send(("LOCK", "held", "bob", 60000, "WAIT", 60000))
    until(lambda: server.info("lock_waiters", "locks") == "1")
    threading.Event().wait(0.02)  # the wait must be longer than the smallest bucket
    server.ask("UNLOCK", "held", "alice")
    total = json.loads(ended(running, 0)[0])["total"]
    waiter.close()
    equal((total["grants_per_s"] > 0, total["wait_p99_ms"] > 1), (True, True))


@test
def on_a_small_screen_the_key_the_holder_and_the_waiters_remain(server):
    with Crowd([server]), top(40, 10) as screen:
        text = screen.shows(r"^ready", r"^job:7 +alice .* 2 ", r"^KEY +HOLDER .*WAITERS")
        equal(max(map(len, text.splitlines())) <= 40, True)
        screen.press("q")
        screen.ended(0)


@test
def the_terminal_can_change_its_size(server):
    with Crowd([server]), top(40, 10) as screen:
        screen.shows(r"^KEY +HOLDER", without=["MODE"])
        screen.resize(120, 30)
        screen.shows(r"^KEY +MODE +HOLDER +NOTE +AGE +TTL +WAITERS +LONGEST", r"^job:7 +exclusive +alice")
        screen.resize(20, 3)
        screen.shows(r"holdfast top")
        screen.resize(80, 24)
        screen.shows(r"^KEY +MODE", r"^job:7 +exclusive +alice", r"q quit")


@test
def break_asks_first_and_names_the_key_and_the_holder(server):
    with Crowd([server]), top(40, 10) as screen:
        screen.shows(r"^job:7 +alice")
        screen.press("b")
        screen.shows(r"Break job:7, held by alice\?", "y/n")
        screen.press("n")
        screen.shows("job:7: nothing changed")
        equal(server.ask("GET", "job:7"), b"alice")
        screen.press("b", "y")
        screen.shows("job:7: 1 hold broken", r"^job:7 +bob")
        equal(server.ask("GET", "job:7"), b"bob")


@test
def break_changes_nothing_if_another_owner_got_the_lock_meanwhile(server):
    with Crowd([server]), top(80, 24) as screen:
        screen.shows(r"^job:7 .*alice")
        screen.press("b")
        screen.shows(r"held by alice\?")
        equal(server.ask("UNLOCK", "job:7", "alice"), 1)
        screen.shows(r"^job:7 .*bob", r"held by alice\?")
        screen.press("y")
        screen.shows("nothing changed, because the holder changed: now bob")
        equal(server.ask("GET", "job:7"), b"bob")


@test
def revoke_asks_first_and_the_holder_stays(server):
    listener = Client(server.path)
    listener.ask("SUBSCRIBE", "__lock__:job:7")
    with Crowd([server]), top(80, 24) as screen:
        screen.shows(r"^job:7 .*alice")
        screen.press("r")
        screen.shows(r"Revoke job:7, held by alice\?", "y/n")
        screen.press("Escape")
        screen.shows("job:7: nothing changed")
        screen.press("r", "y")
        screen.shows("job:7: .* asked to end", r"^job:7 .*alice")
        while listener.reply()[2] != b"revoke":
            pass
    listener.close()


@test
def enter_shows_the_queue_in_its_order(server):
    with Crowd([server], waiters=("bob", "carol", "dave")), top(80, 24) as screen:
        screen.shows(r"^job:7 ")
        screen.press("Enter")
        screen.shows(r"Lock job:7", r"held by alice .*token \d+", r"1\. waiting bob", r"2\. waiting carol",
                     r"3\. waiting dave")
        server.ask("UNLOCK", "job:7", "alice")
        screen.shows(r"held by bob", r"1\. waiting carol", without=[r"3\."])
        screen.press("q")
        screen.shows(r"^KEY ", r"^job:7 .*bob")


@test
def keys_sort_filter_and_select_a_database(server):
    for i in range(40):
        server.lock(f"key:{i:02}", f"owner{99 - i}", 1_000_000 - i * 10_000)
    server.ask("SELECT", 3)
    server.lock("in:three", "carol")
    with top(80, 12) as screen:
        screen.shows(r"^key:00 ")
        screen.press("t")
        screen.shows(r"by TTL", r"^key:39 ", without=[r"^key:00 "])
        screen.press("n")
        screen.shows(r"by key", r"^key:00 ", without=[r"^key:39 "])
        screen.press("R")
        screen.shows(r"reversed", r"^key:39 ")
        screen.press("End")
        screen.shows(r"^key:00 ")
        screen.type("/:0")
        screen.shows(r"^/:0_")
        screen.press("BSpace")
        screen.type("1")
        screen.press("Enter")
        screen.shows(r"^key:19 ", r"/\*:1\*", without=[r"^key:2"])
        screen.type("/key:3?")
        screen.press("Enter")
        screen.shows(r"^key:39 ", without=[r"^key:1"])
        screen.type("/")
        screen.press("Enter")
        screen.type("d3")
        screen.press("Enter")
        screen.shows(r"db 3", r"^in:three .*", without=[r"^key:"])
        screen.press("b")
        screen.shows("Break in:three")
        screen.press("y")
        screen.shows("in:three: 1 hold broken", "no lock is held")
        equal(server.ask("EXISTS", "in:three"), 0)
        screen.press("?")
        screen.shows("ask its holders to release it")


@test
def from_another_database_the_way_back_leads_to_database_0(server):
    server.lock("same", "zero")
    server.ask_all([["SELECT", 3], ["LOCK", "same", "three", 600_000]])
    with top(80, 24) as screen:
        screen.shows(r"^same .*zero")
        screen.type("d3")
        screen.press("Enter")
        screen.shows(r"db 3", r"^same .*three")
        screen.type("d0")
        screen.press("Enter")
        screen.shows(r"^same .*zero", without=[r"db 3"])
        screen.type("b")
        screen.shows("Break same")
        screen.type("y")
        screen.shows("same: 1 hold broken", "no lock is held")
        equal(server.ask("GET", "same"), b"three")  # this connection is in database 3
        equal(server.ask_all([["SELECT", 0], ["EXISTS", "same"]])[1], 0)


@test
def ctrl_c_term_and_ctrl_z_leave_the_terminal_as_it_was(server):
    with top(80, 24) as screen:
        screen.shows(r"^ready")
        screen.press("C-c")
        screen.ended(130)
    with Screen(80, 24, "sh", "-c", f"echo $$ >pid; exec {COMMAND} top") as screen:
        screen.shows(r"^ready")
        os.kill(int((screen.folder / "pid").read_text()), signal.SIGTERM)
        screen.ended(143)
    with top(80, 24) as screen:
        screen.shows(r"^ready")
        screen.press("C-z")
        screen.shows("Stopped")
        screen.type("clear; stty -a | cmp - before && echo sa''me; fg\n")
        server.lock("after:fg")
        screen.shows(r"^ready", r"^after:fg ")
        screen.press("q")
        screen.shows(r"^same$", r"[#$]\s*\Z")  # the shell's prompt: top would read what is typed before it
        screen.type("echo en''ded\n")
        screen.shows("^ended")


@test
def a_lost_server_is_retried_and_its_locks_disappear(_):
    with data_folder() as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(folder, "--port", str(free_port())))
        port = port_of(server)
        server.lock("job:7")
        screen = stack.enter_context(top(80, 24, servers=f"127.0.0.1:{port}"))
        screen.shows(r"^ready", r"^job:7 ")
        server.kill()
        screen.shows("connection refused|connection", "no server answers; retrying", without=[r"^job:7 "])
        again = stack.enter_context(Server(folder, "--port", port))
        screen.shows(r"^ready", r"^job:7 .*alice")
        screen.press("q")
        screen.ended(0)
        equal(again.ask("GET", "job:7"), b"alice")


@test
def a_small_screen_survives_a_restart_and_a_change_of_its_size_during_it(_):
    with data_folder() as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(folder, "--port", str(free_port())))
        port = port_of(server)
        server.lock("job:7")
        screen = stack.enter_context(top(40, 10, servers=f"127.0.0.1:{port}"))
        screen.shows(r"^ready", r"^job:7 +alice")
        server.kill()
        small = screen.shows("no server answers; retrying", without=[r"^job:7 "])
        equal(max(map(len, small.splitlines())) <= 40, True)
        screen.resize(80, 24)
        screen.shows("no server answers; retrying", "connection refused|connection")
        screen.press("b")  # there is no lock to break
        screen.resize(40, 10)
        stack.enter_context(Server(folder, "--port", port))
        screen.shows(r"^ready", r"^job:7 +alice")
        screen.press("q")
        screen.ended(0)


@contextlib.contextmanager
def quorum():
    """Four servers, and the address of a quorum of five of which one is down."""
    with contextlib.ExitStack() as stack:
        folders = [stack.enter_context(data_folder()) for _ in range(4)]
        servers = [stack.enter_context(Server(folder, "--port", "auto")) for folder in folders]
        down = f"127.0.0.1:{free_port()}"
        names = [f"127.0.0.1:{port_of(server)}" for server in servers]
        yield servers, down, "quorum://" + ",".join([*names, down])


@test
def a_quorum_shows_each_server_and_why_one_is_down(_):
    with quorum() as (servers, down, where), Crowd(servers):
        with top(80, 24, servers=where) as screen:
            text = screen.shows(r"4 of 5 servers ready", rf"^{re.escape(down)} .*refused", r"^all ",
                                r"^job:7 .*alice .*4/5$")
            equal(len(re.findall(r"^127\S+ .* ready$", text, re.MULTILINE)), 4)
            screen.press("b", "y")
            screen.shows(r"job:7: 1 hold broken on 4 servers", r"^job:7 .*bob .*4/5$")
            for server in servers:
                equal(server.ask("GET", "job:7"), b"bob")
            screen.resize(40, 10)
            small = screen.shows(r"4 of 5 servers ready", rf"^{re.escape(down)}: ", r"^job:7 +bob")
            equal(max(map(len, small.splitlines())) <= 40, True)
        refresh = json.loads(call(0, "top", "--json", "-n", 1, *FAST, "--servers", where)[0])
        equal([s["ready"] for s in refresh["servers"]], [True] * 4 + [False])
        has(refresh["servers"][4]["error"], "connection refused")
        equal((refresh["locks"][0]["servers"], refresh["locks"][0]["waiters"]), (4, 1))


@test
def a_server_of_a_quorum_that_starts_and_restarts_is_shown(_):
    with quorum() as (_, down, where), data_folder() as folder, top(80, 24, servers=where) as screen:
        screen.shows(r"4 of 5 servers ready", rf"^{re.escape(down)} .*refused")
        port = down.rpartition(":")[2]
        for _ in range(2):
            with Server(folder, "--port", port):
                text = screen.shows(r"5 of 5 servers re", rf"^{re.escape(down)} .* ready$")
                equal(len(re.findall(r"^127\S+ .* ready$", text, re.MULTILINE)), 5)
            screen.shows(r"4 of 5 servers ready", rf"^{re.escape(down)} .*(refused|connection)")
        screen.press("q")
        screen.ended(0)


@test
def batch_prints_plain_text_and_ends(server):
    with Crowd([server]):
        out = call(0, "top", "--batch", "-n", 2, *FAST)[0]
        equal(out.count("holdfast top"), 2)
        equal("\x1b" in out, False)
        has(line_with(out, "job:7").encode(), b"exclusive", b"alice")
        equal(re.search(r"^SERVER +GRANTS/S +WAITERS", out, re.MULTILINE) is None, False)
        refreshes = json_refreshes(2, "--match", "job:*")
        equal(len(refreshes), 2)
        lock = refreshes[1]["locks"][0]
        equal((lock["key"], lock["owner"], lock["waiters"], lock["mode"]),
              ("job:7", "alice", 2, "exclusive"))
        equal(lock["longest_wait_ms"] >= 100 and lock["held_ms"] >= lock["longest_wait_ms"], True)
        equal(json_refreshes(1, "--match", "other:*")[0]["locks"], [])


@test
def a_signal_ends_a_batch(_):
    running = start("top", "--json", *FAST)
    equal(json.loads(running.stdout.readline())["servers"][0]["ready"], True)
    running.send_signal(signal.SIGINT)
    ended(running, 130)


@test
def a_reader_that_leaves_ends_a_batch_without_a_message(_):
    for form in "--batch", "--json":
        with start("top", form, *FAST) as running:
            running.stdout.readline()
            running.stdout.close()
            equal((running.wait(LIMIT_S), running.stderr.read()), (-signal.SIGPIPE, ""))


@test
def keys_that_are_binary_wide_or_hostile_are_escaped(server):
    hostile = b"\x1b[2J\x1b]0;x\x07\xff\xfe evil"
    wide = "作業:鍵".encode()
    server.lock(hostile, "\x1b[31mred")
    server.lock(wide, "所有者")
    server.lock("k" * 5000, "o" * 200)
    with top(80, 24) as screen:
        text = screen.shows(r"\\x1b\[2J", "作業:鍵", "所有者", r"^kkk")
        equal(all(len(line) + sum(ord(c) > 0x2e80 for c in line) <= 80 for line in text.splitlines()), True)
        column = text.splitlines()[3].index("MODE") if "MODE" in text else 0
        row = line_with(text, "作業:鍵")
        ahead = row[:row.index("exclusive")]
        equal(len(ahead) + sum(ord(c) > 0x2e80 for c in ahead), column)
    out = call(0, "top", "--batch", "-n", 1, *FAST)[0]
    equal([c for c in out if ord(c) < 32 and c != "\n"], [])
    equal(call_json("top", "-n", 1, *FAST)["locks"][-1]["key"] != "", True)


@test
def many_locks_need_few_requests_a_refresh(server):
    server.ask_all([("LOCK", f"k{i}", "o", 600_000) for i in range(5000)])
    before = int(server.info("total_commands_processed", "stats"))
    refresh = json_refreshes(1)[0]
    spent = int(server.info("total_commands_processed", "stats")) - before
    equal((refresh["more_locks"], len(refresh["locks"]) >= 100, spent <= 250), (True, True, True))


@test
def wrong_use_is_refused(server):
    has(call(64, "top")[1], "not a terminal", "--batch")
    has(call(64, "top", "-n", 3)[1], "-n needs --batch or --json")
    has(call(64, "top", "--batch", "--interval", "99ms")[1], "at least 100 ms")
    has(call(64, "top", "--batch", "extra")[1], "usage: holdfast top")
    where = f"127.0.0.1:{free_port()}"
    has(call(69, "top", "--batch", "-n", 1, *FAST, "--servers", where)[0], "connection refused")
    with Screen(80, 24, "env", "TERM=dumb", COMMAND, "top") as screen:
        screen.shows("cannot move its cursor", "status=71")
    equal(server.ask("PING"), "PONG")


@test
def the_screen_logs_in_with_a_password(_):
    with data_folder() as folder, Server(folder, "--port", "auto", "--requirepass", "secret") as server:
        server.ask("AUTH", "secret")
        server.lock("job:7")
        where = f"127.0.0.1:{port_of(server)}"
        with top(80, 24, servers=":secret@" + where) as screen:
            screen.shows(r"^ready", r"^job:7 ", without=["secret"])
        with top(80, 24, servers=where) as screen:
            screen.shows("NOAUTH", "no server answers; retrying")


@test
def on_redis_unknown_figures_are_a_dash(_):
    port = free_port()
    redis = subprocess.Popen([REDIS, "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL,
                             preexec_fn=end_with_parent)
    try:
        where = f"redis://127.0.0.1:{port}"
        until(lambda: '"quorum":true' in call((0, 69), "ping", "--json", "--servers", where)[0])
        call(0, "lock", "--ttl", "10m", "--servers", where, "job:7")
        out = call(0, "top", "--batch", "-n", 1, *FAST, "--servers", where)[0]
        equal(re.search(r"^\S+ +- +- +- +- +[\d.]+[KMG]\S* +\d+ +ready$", out, re.MULTILINE) is None, False)
        has(line_with(out, "job:7").encode(), b"exclusive", b"9m5", b" -")
        has(call(64, "top", "--batch", "--db", 1, "--servers", where)[1], "database 0")
    finally:
        redis.kill()
        redis.wait(LIMIT_S)


if __name__ == "__main__":
    run_tests(service)
