"""Attacks by which a client may harm other clients. Each attack is a function that takes the path of the
server's Unix socket, and runs until its process is killed. attack_test.py checks that the server keeps its
limits under each attack. bench/under_attack.py measures the latency of other clients."""
import contextlib
import multiprocessing
import os
import signal
import socket
import time

from harness import Client, end_with_parent

ATTACKS = []
HTTP_ATTACKS = []  # on the HTTP door, whose port CONFIG GET tells
DISCONNECTED = (BrokenPipeError, ConnectionResetError, EOFError, TimeoutError, BlockingIOError)


def attack(function):
    ATTACKS.append(function)
    return function


def http_attack(function):
    HTTP_ATTACKS.append(function)
    return function


@contextlib.contextmanager
def under(function, path, niceness=0):
    """Runs the attack during the `with` block. The block starts when the attack has begun."""
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
        with contextlib.suppress(*DISCONNECTED):  # the server may disconnect a client that exceeds a limit
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
    """Sends the data repeatedly and reads nothing, until the server disconnects or stops reading."""
    client.settimeout(0.2)
    end = time.monotonic() + seconds
    with contextlib.suppress(*DISCONNECTED):
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
    """Pipelines of LOCK and UNLOCK. The client never reads the replies."""
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"LOCK mine me 1000\r\nUNLOCK mine me\r\n" * 1000)


@attack
def large_replies_unread(path):
    """Requests a value of 1 MB a thousand times, and never reads the replies."""
    Client(path).ask("SET", "large", "x" * 1_000_000)
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"GET large\r\n" * 1000)


@attack
def messages_unread(path):
    """MONITOR, CLIENT TRACKING and SUBSCRIBE: one client causes messages, two never read them."""
    yield "began"
    sender = Client(path)
    while True:
        with contextlib.closing(Client(path)) as monitor, contextlib.closing(Client(path)) as subscriber:
            monitor.send(["MONITOR"])
            subscriber.send(["HELLO", 3], ["CLIENT", "TRACKING", "ON", "BCAST"], ["SUBSCRIBE", "c"])
            for _ in range(20):
                sender.ask_all([["SET", "mine", "x" * 1000], ["PUBLISH", "c", "x" * 10_000]] * 100)


@attack
def endless_lists(path):
    """One client adds 100,000 each of watched keys, channels, patterns and waiters."""
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
def an_owner_that_waits_everywhere(path):
    """One owner waits for 20,000 held locks, is granted all of them, and disconnects."""
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
    """20,000 owners wait for a key. Its holder repeatedly waits for another key: is it a deadlock?"""
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
    """Patterns that cost their size times the size of the text, in KEYS, SCAN, HSCAN and PUBLISH."""
    text, pattern = "a" * 32_000, "*" + "a?" * 8_000 + "b"
    client, subscriber = Client(path), Client(path)
    for n in range(20):
        client.ask("SET", text + str(n), "x")
        client.ask("HSET", "hash", text + str(n), "x")
    subscriber.ask_all([["PSUBSCRIBE", f"*{n}{pattern}"] for n in range(500)])
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
    """Each request has a different script, which the server keeps."""
    client = Client(path)
    number = 0
    while True:
        client.ask_all([["EVAL", f"return {n} --{'x' * 5000}", 0] for n in range(number, number + 200)])
        number += 200
        yield "began"


@attack
def connections_come_and_go(path):
    """Opens 100 connections, sends a PING on each and closes it, repeatedly."""
    yield "began"
    while True:
        for client in connections(path, 100):
            client.sendall(b"PING\r\n")
            client.close()


@attack
def large_announcements(path):
    """1,000 clients announce a million arguments, the first of 512 MB, and send 1,000 bytes of it."""
    clients = connections(path, 1000)
    yield "began"
    for client in clients:
        client.sendall(b"*1048576\r\n$536870912\r\n" + b"x" * 1000)
    while True:
        time.sleep(1)


@attack
def transactions_that_never_end(path):
    """MULTI, and then commands without an EXEC."""
    yield "began"
    while True:
        pour(connections(path, 1)[0], b"MULTI\r\n" + b"SET mine 1\r\n" * 1000)


@attack
def logins(path):
    """Tries passwords as fast as the server replies. Each failed login adds an entry to ACL LOG."""
    client = Client(path)
    while True:
        client.ask_all([["AUTH", "nobody", f"guess {n}"] for n in range(100)])
        yield "began"


def http_connections(path, number):
    with contextlib.closing(Client(path)) as client:
        port = int(client.ask("CONFIG", "GET", "http-port")[1])
    return [socket.create_connection(("127.0.0.1", port), timeout=60) for _ in range(number)]


@http_attack
def http_headers_that_never_end(path):
    """64 clients send a header, a byte at a time."""
    clients = http_connections(path, 64)
    for client in clients:
        client.sendall(b"GET /livez HTTP/1.1\r\nX: ")
    yield "began"
    while True:
        for client in clients:
            client.sendall(b"x")
            time.sleep(0.0005)


@http_attack
def ten_thousand_http_connections(path):
    """10,000 connections, one after the other, each with a request. The server rejects most of them."""
    while True:
        held = []
        for _ in range(100):
            held += http_connections(path, 100)
            for client in held[-100:]:
                with contextlib.suppress(*DISCONNECTED):
                    client.sendall(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n")
            yield "began"
            for client in held[:-200]:
                client.close()
            held = held[-200:]


@http_attack
def a_storm_of_scrapes(path):
    """Sixteen clients ask for metrics, the state and a page of locks in pipelines, and read the replies."""
    clients = http_connections(path, 16)
    request = b"".join(b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % name for name in
                       (b"/metrics", b"/api/v1/info", b"/api/v1/locks?count=1000")) * 10
    while True:
        for client in clients:
            client.sendall(request)
        for client in clients:
            read_all(client)
        time.sleep(0.001)
        yield "began"
