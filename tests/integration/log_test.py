#!/usr/bin/env python3
"""The log: its table in docs/operations.md, the JSON format, and lines about slow waits. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import datetime
import json
import pathlib
import re
import signal
import subprocess
import sys

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import HOLDFAST, LIMIT_S, Client, Server, equal, has, run_tests, test, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
BINARY = b'\xff\x00"\n\xc3\xbc\\'


# --- the table ---

def source_files():
    return [path for path in sorted((ROOT / "src").rglob("*.cc")) if path.parts[-2] != "cli"]


def argument_text(source, begin):
    """The text of a call's arguments, from behind its opening parenthesis."""
    depth, at = 1, begin
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[()]', source[begin:]):
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
        at = begin + match.start()
        if depth == 0:
            break
    return source[begin:at]


def format_text(text):
    """The constant words of an expression: of the format of its fmt::format(), else of all its literals,
    with {} for each other part."""
    call = re.search(r"fmt::format\(", text)
    if call:
        literals = re.match(r'\s*(?:"(?:[^"\\]|\\.)*"\s*)*', text[call.end():])
        return "".join(LITERAL.findall(literals.group()))
    parts = [part.strip() for part in text.split("+")]
    return "".join(LITERAL.match(part).group(1) if LITERAL.match(part) else "{}" for part in parts)


def message_of(source, arguments):
    """The constant words of the line of a log call; empty if the call does not show them."""
    text = arguments.split(",", 1)[1].strip()
    if re.fullmatch(r"\w+", text.split(",")[0].strip()) and '"' not in text.split(",")[0]:
        name = text.split(",")[0].strip()
        made = re.search(rf"\b{name}\s*=\s*(fmt::format\()", source)
        return format_text(source[made.start(1):]) if made else ""
    return format_text(text if "fmt::format" in text else text.split(", {{")[0])


def messages():
    """The lines that the server can log, as format texts, each with its place."""
    found = []
    for path in source_files():
        source = path.read_text(encoding="utf-8")
        for call in re.finditer(r"\blog_line\(", source):
            arguments = argument_text(source, call.end())
            if arguments.startswith("LogLevel level,"):  # its definition
                continue
            place = f"{path.relative_to(ROOT)}:{source.count(chr(10), 0, call.start()) + 1}"
            found.append((place, message_of(source, arguments)))
    return found


def patterns():
    """The lines in the first column of the table, as regular expressions over format texts."""
    page = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
    table = re.search(r"^\| line \| meaning \| what to do \|\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    found = {}
    for row in table.group(1).splitlines():
        cells = re.split(r"(?<!\\)\|", row)[1:-1]
        equal((len(cells), all(cell.strip() for cell in cells)), (3, True))
        for line in re.findall(r"`([^`]+)`", cells[0]):
            found[line] = re.compile(".*".join(re.escape(part) for part in line.split("...")))
    return found


@test
def each_line_of_the_log_has_a_row_and_each_row_a_line(_):
    known = patterns()
    lines = messages()
    equal(len(lines) > 30, True)
    equal([place for place, text in lines if not text.replace("{}", "").strip(" :;")], [])
    missing = [(place, text) for place, text in lines
               if not any(pattern.fullmatch(text) for pattern in known.values())]
    equal(missing, [])
    stale = [line for line, pattern in known.items()
             if not any(pattern.fullmatch(text) for _, text in lines)]
    equal(stale, [])


# --- the JSON format ---

def entries(path):
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def check_entry(entry):
    datetime.datetime.strptime(entry["time"], "%Y-%m-%dT%H:%M:%S.%fZ")
    equal(len(entry["time"]), len("2026-11-23T20:28:41.123Z"))
    has(("debug", "verbose", "notice", "warning"), entry["level"])
    equal(isinstance(entry["message"], str), True)


def wait_and_time_out(server, key, owner):
    """A wait of 5 ms behind the holder `alice`."""
    equal(server.ask("LOCK", key, owner, 50_000, "WAIT", 5), None)


@test
def json_each_line_parses_with_binary_keys_scripts_and_after_sighup(folder):
    log = folder.parent / "log"
    with Server(folder, "--log-format", "json", "--log-waits-over", "1", "--loglevel", "verbose",
                "--logfile", str(log), loaded=False) as server:
        until(lambda: "ready to accept" in log.read_text(encoding="utf-8"))
        server.lock(BINARY, "alice")
        wait_and_time_out(server, BINARY, BINARY)
        equal(server.ask("LOCKS", "REVOKE", BINARY), 1)
        equal(server.ask("LOCKS", "BREAK", BINARY), 1)
        server.ask("EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", 0, BINARY)
        server.ask("BGSAVE")
        until(lambda: "snapshot saved" in log.read_text(encoding="utf-8"))
        log.rename(folder.parent / "old")
        server.process.send_signal(signal.SIGHUP)
        until(log.exists)
        equal(server.ask("LOCKS", "BREAK", BINARY), 0)
    all_entries = entries(folder.parent / "old") + entries(log)
    for entry in all_entries:
        check_entry(entry)
    messages_of = "\n".join(entry["message"] for entry in all_entries)
    has(messages_of, "ready to accept", "accepted from", '"LOCKS" "REVOKE"', "script: ", "stopped")
    has(entries(log)[0]["message"], '"LOCKS" "BREAK" "\\xff\\x00\\"\\n\\xc3\\xbc\\\\"')
    [slow] = [entry for entry in all_entries if entry["message"].startswith("slow wait")]
    shown = '\\xff\x00"\nü\\'
    equal((slow["db"], slow["key"], slow["owner"], slow["holder"], slow["granted"]),
          (0, shown, shown, "alice", "no"))
    equal(slow["waited_ms"] > 1, True)
    [saved] = [entry for entry in all_entries if entry["message"].startswith("snapshot saved")]
    equal((saved["keys"], saved["bytes"] > 0, saved["took_ms"] >= 0), (0, True, True))


@test
def json_a_start_that_fails_prints_one_object(_):
    for options in (["--bogus", "1"], ["--port", "x"], ["--logfile", "/nowhere/log"]):
        done = subprocess.run([HOLDFAST, "--log-format=json", *options], check=False, capture_output=True,
                              timeout=LIMIT_S)
        equal((done.returncode, done.stdout), (1, b""))
        entry = json.loads(done.stderr)
        check_entry(entry)
        equal((entry["level"], entry["message"].startswith("holdfast-server: ")), ("warning", True))


@test
def json_and_back_while_the_server_runs(folder):
    with Server(folder) as server:
        equal(server.ask("CONFIG", "SET", "log-format", "json"), "OK")
        equal(server.ask("LOCKS", "BREAK", "k1"), 0)
        equal(server.ask("CONFIG", "SET", "log-format", "text"), "OK")
        has(server.ask("CONFIG", "SET", "log-format", "xml"), "expected text, json or journald")
        equal(server.ask("LOCKS", "BREAK", "k2"), 0)
    lines = server.log.splitlines()
    [first] = [line for line in lines if '"k1' in line or '\\"k1' in line]
    check_entry(json.loads(first))
    [second] = [line for line in lines if '"k2' in line]
    equal(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} notice audit: ", second) is not None, True)


@test
def journald_a_line_begins_with_its_priority_and_has_no_time(folder):
    with Server(folder, "--log-format", "journald", "--loglevel", "debug") as server:
        server.ask("LOCKS", "BREAK", "k")
        for level in "DEBUG", "VERBOSE", "NOTICE", "WARNING":
            server.ask("EVAL", f"redis.log(redis.LOG_{level}, 'of {level}')", 0)
    has(server.log, "<6>client ", "<5>audit: ", "<7>script: of DEBUG\n", "<6>script: of VERBOSE\n",
        "<5>script: of NOTICE\n", "<4>script: of WARNING\n", "\n<5>stopped\n")
    equal([line for line in server.log.splitlines() if not re.match(r"<[4-7]>\S", line)], [])


@test
def a_start_that_fails_prints_one_line_without_control_characters(folder):
    for words in ["--dir", "a\n<2>b\x1b"], ["--log-format", "journald", "--dir", "a\n<2>b\x1b"]:
        done = subprocess.run([HOLDFAST, *words], check=False, capture_output=True, text=True,
                              timeout=LIMIT_S)
        equal(done.returncode, 1)
        has(done.stderr, "got 'a?<2>b?'\n")
        equal(done.stderr.count("\n"), 1)


@test
def journald_a_start_that_fails_has_a_priority_and_a_log_file_is_an_error(folder):
    for words in (["--log-format=journald", "--port", "x"], ["--port", "x", "--log-format", "journald"]):
        done = subprocess.run([HOLDFAST, *words], check=False, capture_output=True, timeout=LIMIT_S)
        equal((done.returncode, done.stderr[:len("<4>holdfast-server: ")]), (1, b"<4>holdfast-server: "))
    with Server(folder, "--logfile", str(folder.parent / "log"), loaded=False) as server:
        has(server.ask("CONFIG", "SET", "log-format", "journald"),
            "log-format journald writes no time, which logfile needs")
        equal(server.ask("CONFIG", "GET", "log-format"), [b"log-format", b"text"])


# --- memory ---

@test
def memory_at_its_limit_makes_one_line_and_another_when_it_is_available_again(folder):
    log = folder.parent / "log"

    def lines():
        return [line.split(" ", 2)[2] for line in log.read_text(encoding="utf-8").splitlines()
                if "memory" in line and "audit" not in line]

    with Server(folder, "--logfile", str(log), loaded=False) as server:
        until(lambda: "ready to accept" in log.read_text(encoding="utf-8"))
        equal(server.ask("SET", "large", "x" * (10 << 20)), "OK")
        equal(server.ask("CONFIG", "SET", "maxmemory", "5mb"), "OK")
        for n in range(100):
            has(server.ask("SET", f"k{n}", "v"), "OOM")
        until(lines)
        has(lines()[0], "warning maxmemory is reached: ", " of 5242880 bytes are used; commands that")
        equal(server.ask("DEL", "large"), 1)
        until(lambda: len(lines()) == 2)
        has(lines()[1], "notice memory is available again: ", " bytes are used, maxmemory is 5242880")
        # between two checks
        replies = server.ask_all([["CONFIG", "SET", "maxmemory", "1"], ["SET", "k", "v"],
                                  ["CONFIG", "SET", "maxmemory", "5mb"]])
        has(replies[1], "OOM")
        until(lambda: len(lines()) == 4)
    equal([line.split(":")[0] for line in lines()],
          ["warning maxmemory is reached", "notice memory is available again"] * 2)


# --- slow waits ---

@test
def slow_waits_are_logged_from_the_limit_on_with_holder_and_outcome(folder):
    with Server(folder) as server:
        server.lock("k", "alice")
        wait_and_time_out(server, "k", "before")  # off
        equal(server.ask("CONFIG", "SET", "log-waits-over", "1"), "OK")
        wait_and_time_out(server, "k", "bob")
        equal(server.ask("CONFIG", "SET", "log-waits-over", "50000"), "OK")
        wait_and_time_out(server, "k", "short")
        equal(server.ask("CONFIG", "SET", "log-waits-over", "1"), "OK")
        waiter = Client(server.path)
        waiter.send(["LOCK", "k", "carol", 50_000, "WAIT", 0])
        until(lambda: server.info("lock_waiters", "locks") == "1")
        started = server.ask("TIME")
        until(lambda: int(server.ask("TIME")[1]) // 10_000 != int(started[1]) // 10_000)  # 10 ms
        equal(server.ask("UNLOCK", "k", "alice"), 1)
        equal(waiter.reply()[0], b"carol")
        waiter.close()
    slow = [line.split("notice ")[1] for line in server.log.splitlines() if "slow wait" in line]
    equal([re.sub(r"waited_ms=\d+", "waited_ms=N", line) for line in slow],
          ['slow wait: db=0 key="k" owner="bob" holder="alice" waited_ms=N granted=no',
           'slow wait: db=0 key="k" owner="carol" holder="alice" waited_ms=N granted=yes'])


@test
def of_several_holders_a_slow_wait_names_the_one_with_the_smallest_token(folder):
    with Server(folder, "--log-waits-over", "1") as server:
        for owner in ("first", "second"):
            server.ask("LOCK", "k", owner, 50_000, "SHARED")
        wait_and_time_out(server, "k", "bob")
        with contextlib.closing(Client(server.path)) as waiter:
            waiter.send(["LOCK", "k", "carol", 50_000, "WAIT", 0])
            until(lambda: server.info("lock_waiters", "locks") == "1")
            until(lambda: int(server.info("oldest_waiter_ms", "locks")) > 5)
            server.ask("UNLOCK", "k", "first")
            server.ask("UNLOCK", "k", "second")
            equal(waiter.reply()[0], b"carol")
    slow = re.findall(r'owner="(\w+)" holder="(\w*)" waited_ms=\d+ granted=(\w+)', server.log)
    equal(slow, [("bob", "first", "no"), ("carol", "second", "yes")])


@test
def a_flood_of_slow_waits_makes_few_lines_and_says_that_it_dropped_others(folder):
    waits = 5000
    log = folder.parent / "log"
    with Server(folder, "--log-waits-over", "1", "--logfile", str(log), loaded=False) as server:
        until(lambda: "ready to accept" in log.read_text(encoding="utf-8"))
        server.lock("k", "alice")
        waiter = Client(server.path)
        waiter.send(["HELLO", 3],
                    *(["LOCK", "k", f"w{n}", 50_000, "WAIT", 0, "ASYNC"] for n in range(waits)))
        until(lambda: server.info("lock_waiters", "locks") == str(waits))
        waiter.close()
        until(lambda: server.info("lock_waiters", "locks") == "0")
    text = log.read_text(encoding="utf-8")
    has(text, "slow wait: more than 100 lines in one second; the rest is dropped")
    equal(text.count("slow wait") < 1500, True)


run_tests()
