"""Stalls of the event loop, measured inside the server: the longest iteration of the loop in CPU time
(DEBUG LOOP), while the server does work whose size grows with its data. CPU time excludes the work of
other processes, but not what a virtual machine's host takes: spinning() measures that. A stall that the
server itself causes occurs in each run, at the same size of the data. So the result is the least of up to
RUNS runs, for each part of a growth by itself.

Each kind of work has a list of parts: pairs of the size at the part's end and the longest iteration in
milliseconds."""
import contextlib
import functools
import tempfile
import time

from chain import packed
from servers import LIMIT_S, Client, Server, until

OWNER = "owner-of-forty-bytes-0123456789abcdefghi"
TTL_MS = 600_000
FREED_BYTES = 64 << 20
BUDGET_MS = 1
RUNS = 3
PART_S = 0.01  # of a growth


@contextlib.contextmanager
def measured(found, name, server):
    """Writes the longest iteration of the block to `found`, as one part."""
    server.ask("DEBUG", "LOOP", "START")
    yield
    found[name] = [(0, longest_ms(server.ask("DEBUG", "LOOP", "STOP")))]


def longest_ms(figures):
    return dict(zip(figures[::2], figures[1::2]))[b"longest-cpu-us"] / 1000


def longest(parts):
    return max(ms for _, ms in parts)


def fill(server, number, request, expected="+OK", size=("DBSIZE",), **options):
    """Returns the parts of the growth. `size` asks how far it is."""
    load = server.begin_load("closed", (request, expected), pipeline=16, requests=number, in_order=True,
                             connections=4, **options)
    client, parts, ended = Client(server.socket), {}, False
    client.ask("DEBUG", "LOOP", "START")
    while not ended:
        time.sleep(PART_S)
        ended = load.poll() is not None
        figures, end, _ = client.ask_all([("DEBUG", "LOOP", "STOP"), size, ("DEBUG", "LOOP", "START")])
        parts[end] = max(longest_ms(figures), parts.get(end, 0))
    client.close()
    if load.wait() != 0:
        raise RuntimeError("the load failed")
    return list(parts.items())


def least_of(first, second):
    """The less of both for each size."""
    least_parts, left, right = [], list(reversed(first)), list(reversed(second))
    while left and right:
        end = min(left[-1][0], right[-1][0])
        least_parts.append((end, min(left[-1][1], right[-1][1])))
        for parts in left, right:
            if parts[-1][0] == end:
                parts.pop()
    return least_parts


def used_bytes(server):
    memory = server.ask("INFO", "memory").split(b"used_memory:")[1]
    return int(memory.split(b"\r\n")[0])


def wait_until_freed(server):
    """Ten million due fields take more than a minute, as the server erases 128 of them in a tick."""
    until(lambda: used_bytes(server) < FREED_BYTES, LIMIT_S)


def save(server):
    server.ask("BGSAVE")
    until(lambda: b"rdb_bgsave_in_progress:0" in server.ask("INFO", "persistence"))


@contextlib.contextmanager
def server_with_folder():
    with tempfile.TemporaryDirectory(prefix="holdfast-bench-") as folder:
        with Server("Holdfast", "--enable-debug-command", "local", "--journal-max-size", "0",
                    folder=folder, pinned=False) as server:
            yield server


def of_locks(locks):
    """Growth to so many locks, a snapshot of them, and FLUSHALL until their memory is free."""
    found = {}
    with server_with_folder() as server:
        found["grow"] = fill(server, locks, f"SET {{key}} {OWNER} PX {TTL_MS}")
        with measured(found, "save", server):
            save(server)
        with measured(found, "flush", server):
            server.ask("FLUSHALL")
            wait_until_freed(server)
    return found


def of_expiry(locks):
    """The expiry of so many locks within 100 ms. The deadlines are later than the end of the fill."""
    found = {}
    lead_s = 6
    while not found:
        with server_with_folder() as server:
            at_s = time.time() + lead_s
            fill(server, locks, f"SET {{key}} {OWNER} PXAT {{deadline}}", deadline_ms=int(at_s * 1000),
                 spread_ms=100)
            lead_s *= 2
            if time.time() >= at_s:
                continue
            with measured(found, "expire", server):
                until(lambda: server.ask("DBSIZE") == 0)
    return found


def of_disconnect(waits):
    """The disconnect of a client with so many waits, each for a key of its own."""
    found = {}
    with server_with_folder() as server:
        fill(server, waits, "LOCK {key} {owner} 600000", "*2")
        client = Client(server.socket)
        client.socket.sendall(packed(b"HELLO", b"3") + b"".join(
            packed(b"LOCK", b"key-of-35-bytes-and-so-%012d" % i, b"waiter", b"0", b"WAIT", b"0", b"ASYNC")
            for i in range(waits)))
        until(lambda: b"lock_waiters:%d\r" % waits in server.ask("INFO", "locks"))
        with measured(found, "disconnect", server):
            client.close()
            until(lambda: b"lock_waiters:0\r" in server.ask("INFO", "locks"))
    return found


def of_hash(fields):
    """A hash with so many fields: growth, snapshot, and three ways to remove it."""
    found = {}
    field = ("HSET h {key} 0123456789", ":1")
    with server_with_folder() as server:
        found["grow"] = fill(server, fields, *field, size=("HLEN", "h"))
        with measured(found, "save", server):
            save(server)
        removals = {"expire": ("PEXPIRE", "h", 1), "overwrite": ("SET", "h", "v"), "delete": ("DEL", "h")}
        for name, removal in removals.items():
            with measured(found, name, server):
                server.ask(*removal)
                wait_until_freed(server)
            server.ask("DEL", "h")
            if name != "delete":
                fill(server, fields, *field)
    return found


def of_fields(fields):
    """So many fields of one hash are due at once, and one field stays. Clients read the hash meanwhile."""
    found = {}
    lead = 2
    while not found:
        with server_with_folder() as server:
            began = time.time()
            fill(server, fields, "HSET h {key} 0123456789", ":1")
            at_ms = int((time.time() + lead * (time.time() - began) + 5) * 1000)
            fill(server, fields, "HPEXPIREAT h {deadline} FIELDS 1 {key}", "*1", deadline_ms=at_ms)
            server.ask("HSET", "h", "last", "v")
            lead *= 2
            if server.ask("HLEN", "h") != fields + 1:  # some were due before all had their deadline
                continue
            with measured(found, "fields", server):
                until(lambda: server.ask("HLEN", "h") == 1, LIMIT_S)
                wait_until_freed(server)
    return found


def spinning(seconds):
    """The longest CPU time between two looks at it of a thread that does nothing else, in milliseconds."""
    longest, before, end = 0, time.thread_time_ns(), time.monotonic() + seconds
    while time.monotonic() < end:
        now = time.thread_time_ns()
        longest, before = max(longest, now - before), now
    return longest / 1e6


@functools.cache
def least(measure, size):
    """The least of some runs for each kind of work. Runs that cannot change whether the budget is met are
    left out."""
    found = measure(size)
    for _ in range(RUNS - 1):
        if all(longest(parts) <= BUDGET_MS for parts in found.values()):
            break
        again = measure(size)
        found = {name: least_of(found[name], again[name]) for name in found}
    return found


def events(millions):
    """The kinds of work, each with a function that measures its longest iteration in milliseconds."""
    number = millions * 1_000_000
    kinds = [(f"growing to {millions} million", of_locks, number, "grow"),
             (f"saving {millions} million", of_locks, number, "save"),
             (f"FLUSHALL of {millions} million", of_locks, number, "flush"),
             ("a million expire at once", of_expiry, 1_000_000, "expire"),
             ("a client with 100,000 waits leaves", of_disconnect, 100_000, "disconnect")]
    texts = {"grow": "a hash grows to {}", "save": "saving it", "expire": "its expiry",
             "overwrite": "its overwriting", "delete": "its deletion"}
    for fields, name in ((1_000_000, "1 million"), (number, f"{millions} million")):
        kinds += [(text.format(name), of_hash, fields, kind) for kind, text in texts.items()]
        kinds.append((f"its fields expire, {name}", of_fields, fields, "fields"))
    return [(text, lambda measure=measure, size=size, kind=kind: longest(least(measure, size)[kind]))
            for text, measure, size, kind in kinds]
