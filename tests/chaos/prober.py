"""Measures whether servers answer. Sends PING to each server every PERIOD_MS over a Unix socket, so that
faults of the network have no influence, and records the outcome (history.py). Each PING has its own
connection, because a held reply holds all later ones of its connection. An error such as -LOADING is an
answer, too. The prober also records the spans in which it ran too late, and for each PING the time for
which the server waited for a processor. Each RESERVE_MS it asks each server for its token reserve. The
argument is JSON: servers (name: socket), name, history (a path), and `until`, the end by CLOCK_MONOTONIC in
seconds.

With a path as the argument the program is a null server: it only answers PING. Its answers come as late as
the machine itself makes any process."""
import contextlib
import json
import os
import re
import selectors
import socket
import struct
import sys
import time

from history import Recorder

MS = 1_000_000
PERIOD_MS = 100
RESERVE_MS = 500
LATE_MS = 20   # the prober records that it ran later than planned by more than this
MOST = 150     # PINGs without an answer at one server; then the prober closes the oldest


def run_delay(pid):
    """The time for which the threads of a process have waited for a processor, in ns. The process, or a
    thread, may end at any moment."""
    total = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as text:
                total += int(text.read().split()[1])
    return total


class Ping:
    """A PING, or another request with an answer of at most 4 KiB."""

    def __init__(self, place, path, op="ping", request=b"PING\r\n"):
        self.place, self.op = place, op
        self.token = 0
        self.invoked = time.monotonic_ns()
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.setblocking(False)
        self.outcome = "sent"
        self.process, self.delay = 0, 0
        try:
            self.socket.connect(path)
            self.process = struct.unpack("iII", self.socket.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
            self.delay = run_delay(self.process)
            self.socket.send(request)
        except BlockingIOError:
            self.outcome = "full"  # the queue of connections that the server has not accepted
        except OSError:
            self.outcome = "down"

    def read(self):
        try:
            answer = self.socket.recv(4096)
            self.outcome = "ok" if answer else "closed"
            if found := re.search(rb"token_reserve:(\d+)", answer):
                self.token = int(found[1])
        except OSError:
            self.outcome = "closed"


class Prober:
    def __init__(self, spec):
        self.servers = spec["servers"]
        self.until = int(spec["until"] * 1e9)
        self.recorder = Recorder(spec["history"], spec["name"])
        self.open = {place: [] for place in self.servers}
        self.selector = selectors.DefaultSelector()
        self.number = 0

    def run(self):
        due, periods = time.monotonic_ns(), 0
        while due < self.until:
            self.wait(due)
            for place, path in self.servers.items():
                self.begin(Ping(place, path))
                if periods % (RESERVE_MS // PERIOD_MS) == 0 and place != "null":
                    self.begin(Ping(place, path, "reserve", b"INFO persistence\r\n"))
            periods += 1
            due = max(due + PERIOD_MS * MS, time.monotonic_ns())
        for ping in [ping for pings in self.open.values() for ping in pings]:
            self.end(ping)

    def wait(self, due):
        """Receives answers until this time."""
        while (now := time.monotonic_ns()) < due:
            wake = due
            for key, _ in self.selector.select((due - now) / 1e9):
                key.data.read()
                self.end(key.data)
                wake = 0
            if wake and time.monotonic_ns() > wake + LATE_MS * MS:
                self.write(op="late", place="prober", invoked=wake, outcome="ok")

    def begin(self, ping):
        if ping.outcome != "sent":
            return self.write_end(ping)
        mine = self.open[ping.place]
        mine.append(ping)
        self.selector.register(ping.socket, selectors.EVENT_READ, ping)
        if len(mine) > MOST:
            self.end(mine[0])
        return None

    def end(self, ping):
        self.open[ping.place].remove(ping)
        self.selector.unregister(ping.socket)
        self.write_end(ping)

    def write_end(self, ping):
        ping.socket.close()
        stalled = max(run_delay(ping.process) - ping.delay, 0) if ping.process else 0
        self.write(op=ping.op, place=ping.place, invoked=ping.invoked, outcome=ping.outcome,
                   stalled=stalled, token=ping.token)

    def write(self, **event):
        self.number += 1
        self.recorder.write(id=self.number, returned=time.monotonic_ns(), **event)


def answer(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(512)
    while True:
        client, _ = listener.accept()
        if client.recv(256):
            client.send(b"+PONG\r\n")
        client.close()


if __name__ == "__main__":
    if sys.argv[1].startswith("{"):
        Prober(json.loads(sys.argv[1])).run()
    else:
        answer(sys.argv[1])
