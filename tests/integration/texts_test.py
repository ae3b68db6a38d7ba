#!/usr/bin/env python3
"""Texts of clients that the server keeps or logs: their size is limited, and they have no passwords. The
last line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import re
import sys
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import Client, Server, equal, has, run_tests, test

MB = 1 << 20


def as_user(server, *rules):
    server.ask("ACL", "SETUSER", "worker", "on", "nopass", *rules)
    client = Client(server.path)
    equal(client.ask("AUTH", "worker", "x"), "OK")
    return client


@test
def rejected_requests_with_long_names_and_keys_use_little_memory(folder):
    with Server(folder) as server:
        worker = as_user(server, "~mine:*", "+@lock", "+@connection", "-@dangerous")
        has(worker.ask("CLIENT", "SETNAME", "n" * 20 * MB), "longer than 512 bytes")
        for n in range(30):
            has(worker.ask("RENEW", f"{n}" + "k" * 4 * MB, "owner"), "NOPERM")
            has(worker.ask("AUTH", f"{n}" + "u" * MB, "x"), "WRONGPASS")
        equal(len(server.ask("ACL", "LOG", 100)), 60)
        log = sum(len(field) for entry in server.ask("ACL", "LOG", 100)
                  for field in entry if isinstance(field, bytes))
        equal(log < 60 * 3000, True)
        worker.close()


@test
def monitor_shows_at_most_a_megabyte_of_each_request(folder):
    with Server(folder) as server:
        watcher = Client(server.path)
        equal(watcher.ask("MONITOR"), "OK")
        server.ask("ECHO", "x" * 3 * MB)
        line = watcher.reply()
        has(line[-40:], '... (2097157 more bytes)"')
        equal(len(line) < MB + 200, True)
        server.ask("DEL", "x" * MB, *range(10))
        has(watcher.reply()[-40:], "... (10 more arguments)")
        server.ask("DEL", *range(1000))
        has(watcher.reply()[-20:], '"998" "999"')
        watcher.close()


SECRETS = (["CONFIG", "SET", "user", "bob on >{}"], ["CONFIG", "SET", "maxmemory", "requirepass", "{}"],
           ["CONFIG", "SET", "masterauth", "{}"], ["CONFIG", "SET", "tls-client-key-file-pass", "{}"],
           ["ACL", "SETUSER", "bob", "(+get >{})"], ["ACL", "SETUSER", "bob", "(+get", ">{}"],
           ["ACL", "SETUSER", "bob", "on", ">{}"], ["ACL", "SETUSER", "bob", "<{}", "!{}"],
           ["ACL", "DRYRUN", "default", "AUTH", "{}"],
           ["ACL", "DRYRUN", "default", "HELLO", "3", "AUTH", "bob", "{}"],
           ["COMMAND", "GETKEYS", "AUTH", "{}"],
           ["AUTH", "bob", "{}"], ["HELLO", "3", "AUTH", "nobody", "{}"])


@test
def passwords_are_kept_nowhere_even_if_the_request_is_rejected(folder):
    with Server(folder) as server:
        watcher = Client(server.path)
        watcher.ask("MONITOR")
        server.ask("CONFIG", "SET", "slowlog-log-slower-than", 0)
        for n, request in enumerate(SECRETS):
            server.ask(*(word.format(f"hidden{n}") for word in request))
        server.ask("MULTI")
        server.ask("AUTH", "bob", "hidden")
        server.ask("EXEC")
        equal(re.findall(rb"hidden\d*", repr(server.ask("SLOWLOG", "GET", -1)).encode()), [])
        equal(re.findall(rb"hidden\d*", repr(server.ask("ACL", "LOG")).encode()), [])
        server.ask("ECHO", "end")
        seen = ""
        while '"end"' not in seen:
            seen += watcher.reply()
        equal(re.findall(r"hidden\d*", seen), [])
        watcher.close()
    has(server.log, "audit:")
    equal(re.findall(r"hidden\d*", server.log), [])


@test
def a_user_without_a_name_cannot_be_created(folder):
    config = folder.parent / "config"
    config.write_text("", "ascii")
    with Server(folder, "--config", str(config)) as server:
        has(server.ask("ACL", "SETUSER", "", "on", "nopass", "+@all"), "ERR Usernames can't be empty")
        for name in ("#x", '"q', "a#b", "(x", ">p"):
            equal(server.ask("ACL", "SETUSER", name, "off"), "OK")
        users = server.ask("ACL", "LIST")
        equal(server.ask("CONFIG", "REWRITE"), "OK")
    with Server(folder, "--config", str(config)) as server:
        equal(server.ask("ACL", "LIST"), users)


@test
def a_script_cannot_fill_the_log(folder):
    with Server(folder) as server:
        begin = time.monotonic()
        server.ask("EVAL", "for i = 1, 20000 do redis.log(3, 'line ' .. i) end", 0)
        equal(server.ask("EVAL", f"redis.log(3, 'long ' .. string.rep('x', {MB}))", 0), None)
        while time.monotonic() < begin + 1.1:
            server.ask("PING")
        server.ask("EVAL", f"redis.log(3, 'long ' .. string.rep('x', {MB})) redis.log(3, 'two\\nlines')", 0)
        took = int(time.monotonic() - begin) + 2
    lines = [line for line in server.log.splitlines() if "script:" in line]
    equal(len(lines) <= 100 * took + 10, True)
    equal(lines[0].endswith("script: line 1"), True)
    has(server.log, "more than 100 lines in one second", "lines were dropped", "two?lines")
    equal(max(map(len, lines)) < 1200, True)
    left_out = sum(int(n) for n in re.findall(r"(\d+) lines were dropped", server.log))
    written = sum("script: line" in line or "script: long" in line for line in lines)
    equal(written + left_out, 20002)


@test
def no_option_can_be_set_so_small_that_it_cannot_be_set_back(folder):
    with Server(folder) as server:
        for name in ("proto-max-bulk-len", "client-query-buffer-limit"):
            has(server.ask("CONFIG", "SET", name, MB - 1), "ERR CONFIG SET failed")
            equal(server.ask("CONFIG", "SET", name, MB), "OK")
        for name in ("maxclients", "client-output-buffer-limit", "maxmemory", "timeout",
                     "client-output-buffer-limit-pubsub",
                     "busy-reply-threshold", "max-owner-size", "acllog-max-len"):
            server.ask("CONFIG", "SET", name, 1)
            equal(server.ask("CONFIG", "SET", name, 1), "OK")
        equal(server.ask("CONFIG", "SET", "client-output-buffer-limit", "1mb"), "OK")


run_tests()
