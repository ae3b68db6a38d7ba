"""What a client may do to harm the others: each attack is a function that goes on until its process is
killed. It is given the path of the server's Unix socket. Used by attack_test.py, which looks that the
server keeps its limits, and by bench/under_attack.py, which measures what the others feel."""
import contextlib
import multiprocessing
import os
import signal
import socket
import time

from harness import Client, end_with_parent

ATTACKS = []
GONE = (BrokenPipeError, ConnectionResetError, EOFError, TimeoutError, BlockingIOError)


def attack(function):
    ATTACKS.append(function)
    return function


@contextlib.contextmanager
def under(function, path, niceness=0):
    """Runs the attack beside the block, which begins when the attack is at work."""
    began = multiprocessing.Event()
    process = multiprocessing.Process(target=run, args=(function, path, began, niceness))
    process.start()
    try:
        if not began.wait(60):
            raise AssertionError(f"{function.__name__} did not begin")
        yield
        if not process.is_alive():
            raise AssertionError(f"{function.__name__} ended by itself with status {process.exitcode}")
    finally:
        process.kill()
        process.join()


def run(function, path, began, niceness):
    end_with_parent()
    os.nice(niceness)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        with contextlib.suppress(*GONE):  # the server may close whoever goes too far
            for step in function(path):
                if step == "began":
                    began.set()


def connections(path, number):
    made = []
    for _ in range(number):
        made.append(socket.socket(socket.AF_UNIX))
        made[-1].connect(path)
    return made


def pour(client, data, seconds=60):
    """Sends it again and again and reads nothing, until the server closes or takes no more."""
    client.settimeout(0.2)
    end = time.monotonic() + seconds
    with contextlib.suppress(*GONE):
        while time.monotonic() < end:
            client.sendall(data)
    client.close()


@attack
def requests_that_never_end(path):
    """2,000 clients send a request of 512 MB, a byte at a time."""
    clients = connections(path, 2000)
    for client in clients:
        client.sendall(b"*3\r\n$4\r\nLOCK\r\n$1\r\nk\r\n$536870912\r\n")
    yield "began"
    while True:
        for client in clients:
            client.sendall(b"x")
            time.sleep(0.0005)


@attack
def a_million_tiny_commands(path):
    """Four clients send pipelines of 10,000 PINGs, and read the replies."""
    clients = connections(path, 4)
    while True:
        for client in clients:
            client.sendall(b"PING\r\n" * 10_000)
        for client in clients:
            left = 10_000 * len(b"+PONG\r\n")
            while left > 0:
                left -= len(client.recv(left))
        yield "began"


@attack
def tiny_commands_unread(path):
    """Pipelines of locks, whose replies nobody reads."""
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"LOCK mine me 1000\r\nUNLOCK mine me\r\n" * 1000)


@attack
def large_replies_unread(path):
    """A value of 1 MB is asked for a thousand times, and not read."""
    Client(path).ask("SET", "large", "x" * 1_000_000)
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"GET large\r\n" * 1000)


@attack
def messages_unread(path):
    """MONITOR, CLIENT TRACKING and SUBSCRIBE, whose messages nobody reads, with those who cause them."""
    yield "began"
    causer = Client(path)
    while True:
        with contextlib.closing(Client(path)) as monitor, contextlib.closing(Client(path)) as hearer:
            monitor.send(["MONITOR"])
            hearer.send(["HELLO", 3], ["CLIENT", "TRACKING", "ON", "BCAST"], ["SUBSCRIBE", "c"])
            for _ in range(20):
                causer.ask_all([["SET", "mine", "x" * 1000], ["PUBLISH", "c", "x" * 10_000]] * 100)


@attack
def endless_lists(path):
    """WATCH, SUBSCRIBE, PSUBSCRIBE and waiters by the hundred thousand."""
    with contextlib.closing(Client(path)) as client:
        client.send(["HELLO", 3])
        owner = Client(path)
        owner.ask("LOCK", "mine", "me", 600_000)
        yield "began"
        for first in range(0, 100_000, 1000):
            names = [f"name:{n}" for n in range(first, first + 1000)]
            for verb in ("WATCH", "SUBSCRIBE", "PSUBSCRIBE"):
                client.send([verb, *names])
            client.send(*(["LOCK", "mine", name, 600_000, "WAIT", 0, "ASYNC"] for name in names))
            read_all(client.socket)
        owner.close()


@attack
def an_owner_who_waits_everywhere(path):
    """20,000 keys with one owner's waits, who is let in to all of them, and leaves."""
    keys = [f"wanted:{n}" for n in range(20_000)]
    yield "began"
    while True:
        with contextlib.closing(Client(path)) as holder, contextlib.closing(Client(path)) as one:
            one.send(["HELLO", 3])
            for first in range(0, len(keys), 200):
                part = keys[first:first + 200]
                holder.ask_all([["LOCK", key, "holder", 600_000, "SESSION"] for key in part])
                one.send(*(["LOCK", key, "one", 600_000, "WAIT", 0, "ASYNC", "SESSION"] for key in part))
                read_all(one.socket)


@attack
def a_crowd_behind_one_owner(path):
    """20,000 wait for a key, and its holder asks for another again and again: is it a deadlock?"""
    with contextlib.closing(Client(path)) as crowd, contextlib.closing(Client(path)) as holder:
        crowd.send(["HELLO", 3], ["LOCK", "busy", "crowd", 600_000, "SESSION"])
        holder.ask("LOCK", "mine", "holder", 600_000, "SESSION")
        for first in range(0, 20_000, 200):
            crowd.send(*(["LOCK", "mine", str(n), 600_000, "WAIT", 0, "ASYNC"]
                         for n in range(first, first + 200)))
            read_all(crowd.socket)
        while True:
            holder.ask("LOCK", "busy", "holder", 600_000, "WAIT", 1)
            yield "began"


def read_all(client):
    client.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while client.recv(1 << 20):
            pass
    client.setblocking(True)


@attack
def exploding_patterns(path):
    """Patterns that cost their size times that of the text, in KEYS, SCAN, HSCAN and PUBLISH."""
    text, pattern = "a" * 32_000, "*" + "a?" * 8_000 + "b"
    client, hearer = Client(path), Client(path)
    for n in range(20):
        client.ask("SET", text + str(n), "x")
        client.ask("HSET", "hash", text + str(n), "x")
    hearer.ask_all([["PSUBSCRIBE", f"*{n}{pattern}"] for n in range(500)])
    while True:
        client.ask_all([["KEYS", pattern], ["SCAN", 0, "MATCH", pattern, "COUNT", 1000],
                        ["HSCAN", "hash", 0, "MATCH", pattern], ["PUBLISH", text, "x"]])
        yield "began"


@attack
def script_bombs(path):
    """Scripts that ask for much memory, deep nesting or bytecode."""
    client = Client(path)
    while True:
        for bomb in BOMBS:
            client.ask("EVAL", bomb, 0)
            yield "began"


BOMBS = (
    "return string.rep('x', 2^31)",
    "local s = 'x' for i = 1, 40 do s = s .. s end return s",
    "local t = {} for i = 1, 1e9 do t[i] = {i} end",
    "local t = {} for i = 1, 1e5 do t = {t} end return t",
    "local function f() return f() + 1 end return f()",
    "return pcall(pcall, pcall, string.rep, 'x', 2^31)",
    "return string.rep('(', 1e6):find(string.rep('(', 1e5))",
    "return loadstring and loadstring('\\27Lua') or string.dump",
    "return cjson.decode(string.rep('[', 1e6))",
    "return cmsgpack.unpack(string.rep('\\147', 1e6))",
    "return tostring(setmetatable({}, {__tostring = function() error(string.rep('x', 2^20)) end}))",
)


@attack
def many_scripts(path):
    """Each request has a script of its own, which the server keeps."""
    client = Client(path)
    number = 0
    while True:
        client.ask_all([["EVAL", f"return {n} --{'x' * 5000}", 0] for n in range(number, number + 200)])
        number += 200
        yield "began"


@attack
def connections_come_and_go(path):
    """10,000 connections, opened and closed again, with and without a request."""
    yield "began"
    while True:
        for client in connections(path, 100):
            client.sendall(b"PING\r\n")
            client.close()


@attack
def large_announcements(path):
    """1,000 clients announce a million arguments of 512 MB, and send as much as a reader takes."""
    clients = connections(path, 1000)
    yield "began"
    for client in clients:
        client.sendall(b"*1048576\r\n$536870912\r\n" + b"x" * 1000)
    while True:
        time.sleep(1)


@attack
def transactions_that_never_end(path):
    """MULTI, and commands behind it without an EXEC."""
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"MULTI\r\n" + b"SET mine 1\r\n" * 1000)


@attack
def logins(path):
    """Passwords are tried as fast as they are answered; each refusal goes to ACL LOG."""
    client = Client(path)
    while True:
        client.ask_all([["AUTH", "nobody", f"guess {n}"] for n in range(100)])
        yield "began"
