#!/usr/bin/env python3
"""Calls every command of the table and every function that scripts can see, with sizes and counts at their
limits, on a server with limited memory. The names come from the server itself, so that the test includes
new commands and functions. No call may end the process or use more memory than the sum of its limits.
Another client must always get replies: the test prints its longest wait, but does not limit it. The last
line is "N passed, N failed". HOLDFAST_SERVER names the server."""
import contextlib
import os
import random
import socket
import sys
import threading
import time

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import Client, Server, equal, part_of, peak_mib, run_tests, test, until

LIMITS = ("--client-output-buffer-limit", "8mb", "--client-output-buffer-limit-pubsub", "8mb",
          "--client-query-buffer-limit", "8mb", "--script-memory-limit", "32mb",
          "--script-run-memory-limit", "8mb", "--maxmemory", "64mb",
          "--busy-reply-threshold", "50", "--script-timeout", "500",
          "--appendonly", "no", "--logfile", os.devnull)
# The sum of the limits above is 128 MiB for one malicious client; the rest is the overhead of a sanitizer.
# The sanitizer kills the process if it uses more.
MOST_MIB = 640
ENDS = {"shutdown", "quit", "monitor", "failover"}  # they end the server, or the use of the connection
EXTREMES = ["", "0", "-1", "1", "2147483647", "-2147483648", "4294967295", "9223372036854775807",
            "-9223372036854775808", "18446744073709551615", "1e400", "nan", "*", "k", "k2", "h",
            "x" * 100_000, "\r\n", "\0", "COUNT", "WAIT", "TOKEN", "PX", "SESSION"]

# Calls one function without arguments, with each extreme value, and with random combinations of them.
LUA = r"""
local path, seed = ARGV[1], tonumber(ARGV[2])
local f = loadstring('return ' .. path)()
local big = string.rep('x', 1000000)
local list = {}
for i = 1, 2000 do list[i] = i end
local deep = {}
for i = 1, 200 do deep = {deep} end
local wide = {1}
for i = 1, 12 do wide = {wide, wide, wide, wide} end
local values = {-2^31, 2^31 - 1, -2^31 - 8, 2^32, -2^63, 2^63, 2^53, 1/0, -1/0, 0/0, 0, -1, 1, 0.5, '',
  big, '%', '[', '%b()', '(.-)*%1', ('a-'):rep(20) .. 'b', ('a'):rep(500), '\0', list, deep, wide, {},
  {[2^31] = 1}, true, tostring, string.rep, coroutine.create(function() coroutine.yield() end),
  '!8i32c0', '{"a":[' .. ('['):rep(2000), '\221\255\255\255\255', '\xdf\xff\xff\xff\xff'}
local n = #values
local calls = 0
local function try(...)
  pcall(f, ...)
  calls = calls + 1
end
math.randomseed(seed)
local function any() return values[math.random(n)] end
try()
for i = 1, n do try(values[i]) end
for _ = 1, 400 do
  try(any(), any())
  try(any(), any(), any())
  try(any(), any(), any(), any())
end
return calls
"""
NAMES = r"""
local names = {}
for name, value in pairs(_G) do
  if type(value) == 'function' then names[#names + 1] = name end
  if type(value) == 'table' and name ~= '_G' then
    for inner, f in pairs(value) do
      if type(f) == 'function' then names[#names + 1] = name .. '.' .. inner end
    end
  end
end
table.sort(names)
return names
"""


@contextlib.contextmanager
def limited_server(folder):
    os.environ["ASAN_OPTIONS"] = (f"quarantine_size_mb=1:hard_rss_limit_mb={MOST_MIB}:"
                                  + os.environ.get("ASAN_OPTIONS", ""))
    with contextlib.closing(Server(folder, *LIMITS, loaded=False)) as server, server:
        until(lambda: server.ask("PING") == "PONG")
        yield server


class Watch(threading.Thread):
    """Another client, which sends PING all the time and records its longest wait."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.client, self.longest_s, self.over = Client(path), 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(0.005):
            began = time.monotonic()
            self.client.ask("PING")
            self.longest_s = max(self.longest_s, time.monotonic() - began)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join(60)
        equal(self.is_alive(), False)
        self.client.close()


class Caller:
    """A client that reconnects if the server disconnects it, or does not reply in `patience_s` seconds."""

    def __init__(self, path, patience_s):
        self.path, self.patience_s = path, patience_s
        self.client, self.closed, self.silent = None, 0, 0

    def call(self, *args):
        if self.client is None:
            self.client = Client(self.path)
            self.client.socket.settimeout(self.patience_s)
        try:
            return self.client.ask(*args)
        except socket.timeout:
            self.silent += 1
        except (OSError, EOFError, ValueError):
            self.closed += 1
        self.client.close()
        self.client = None
        return None


def command_names(client):
    """The names of all commands and subcommands, as lists of words."""
    for row in client.ask("COMMAND"):
        name = row[0].decode()
        inner = [sub[0].decode().split("|") for sub in row[9]] if len(row) > 9 else []
        for words in inner or [[name]]:
            if words[0] not in ENDS and words not in (["debug", "sleep"], ["client", "pause"]):
                yield words


@test
def every_command_with_arguments_at_their_limits(folder):
    with limited_server(folder) as server:
        names = list(command_names(server))
        equal(len(names) > 100, True)
        names = part_of(names, 3)
        caller = Caller(server.path, 1)  # some commands wait for other clients
        calls = 0
        with Watch(server.path) as watch:
            for words in names:
                chance = random.Random(" ".join(words))
                for count in (0, 1, 2, 3, 3, 4, 5, 6, 8, 2000):
                    for _ in range(1 if count in (0, 2000) else 3):
                        caller.call(*words, *(chance.choice(EXTREMES) for _ in range(count)))
                        calls += 1
                caller.call("RESET")
                server.ask("CLIENT", "UNPAUSE")
                server.ask("CONFIG", "SET", "maxmemory", "64mb", "client-output-buffer-limit", "8mb")
                server.ask("FLUSHALL")
        print(f"{len(names)} commands, {calls} calls: {caller.closed} connections closed, "
              f"{caller.silent} without a reply; PING within {watch.longest_s * 1000:.0f} ms, "
              f"{peak_mib(server)} MiB at most of {MOST_MIB}")
        equal(server.ask("PING"), "PONG")


@test
def every_function_of_scripts_with_arguments_at_their_limits(folder):
    with limited_server(folder) as server:
        names = [name.decode() for name in server.ask("EVAL", NAMES, 0)]
        equal(len(names) > 90, True)
        caller = Caller(server.path, 60)
        ended = calls = 0
        with Watch(server.path) as watch:
            for seed, name in enumerate(names):
                reply = caller.call("EVAL", LUA, 0, name, seed)
                if isinstance(reply, int):
                    calls += reply
                elif isinstance(reply, RuntimeError) and ("killed" in str(reply) or "memory" in str(reply)):
                    ended += 1
                elif reply is not None:
                    raise AssertionError(f"{name}: {reply}")
        equal((caller.closed, caller.silent), (0, 0))
        print(f"{len(names)} functions: {calls} calls, {ended} scripts ended by their limits; "
              f"PING within {watch.longest_s * 1000:.0f} ms, {peak_mib(server)} MiB at most of {MOST_MIB}, "
              f"scripts hold {int(server.info('used_memory_scripts', 'memory')) >> 20} of 32 MiB")
        equal(server.ask("EVAL", "return cjson.encode({1,2})", 0), b"[1,2]")


# Scripts that never end. Most of them run in C code.
ENDLESS = {
    "string.find": "string.find(('a'):rep(3000), ('a-'):rep(60) .. 'b')",
    "pcall of string.find": "while true do pcall(string.find, ('a'):rep(3000), ('a-'):rep(60) .. 'b') end",
    "redis.call": "while true do redis.call('KEYS', '*') end",
    "sha1hex": "local s = ('x'):rep(1e6) while true do redis.sha1hex(s) end",
    "collectgarbage": "while true do collectgarbage() end",
    "table.sort": "local t = {} for i = 1, 50000 do t[i] = i % 7 end while true do table.sort(t) end",
    "table.insert": "table.insert({}, -2147483647, nil)",
    "comparisons": "local a, b = ('x'):rep(1e6) .. 'a', ('x'):rep(1e6) .. 'b' while a < b do end",
    "table.maxn": "local t = {} for i = 1, 200000 do t[i] = i end while true do table.maxn(t) end",
    "table.remove": "while true do local t = {} for i = 1, 100000 do t[i] = i end "
                    "while #t > 0 do table.remove(t, 1) end end",
    "next": "local t = {} for i = 1, 200000 do t[i] = i end for i = 1, 200000 do t[i] = nil end "
            "while true do next(t) end",
    "cjson.encode": "local s = ('\\1'):rep(2e5) while true do cjson.encode(s) end",
    "coroutines": "while true do coroutine.wrap(function() for i = 1, 500 do end end)() end",
    "cjson.decode": "local s = '[' .. ('1,'):rep(30000) .. '1]' while true do cjson.decode(s) end",
    "cmsgpack.pack": "local t = {} for i = 1, 50000 do t[i] = i end while true do cmsgpack.pack(t) end",
    "loadstring": "local s = 'return ' .. ('1+'):rep(300000) .. '1' while true do loadstring(s) end",
}


@test
def script_kill_ends_endless_scripts_and_sigterm_ends_the_server_during_them(folder):
    for name, script in ENDLESS.items():
        with Server(folder, *LIMITS[:-2], "--script-timeout", "0") as server:
            other = Client(server.path)
            for ends in ("SCRIPT KILL", "SIGTERM"):
                server.send(["EVAL", script, 0])
                until(lambda: "BUSY" in str(other.ask("PING")))
                if ends == "SCRIPT KILL":
                    equal(other.ask("SCRIPT", "KILL"), "OK")
                    equal(("killed by user" in str(server.reply()), name), (True, name))
                    equal(other.ask("PING"), "PONG")


if __name__ == "__main__":
    run_tests()
