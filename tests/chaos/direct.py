"""A process of clients, each with a connection to one server. They acquire, keep and release its locks by
the protocol itself, with each form of waiting, and record each operation (history.py). The argument is
JSON: name, servers (name: [host, port]), threads, seed, history (a path), and `until`, the end by
CLOCK_MONOTONIC in seconds. A request without a reply in time has an unknown outcome; the client closes its
connection."""
import json
import os
import pathlib
import random
import socket
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import Client
from history import Recorder

MS = 1_000_000
PATIENCE_S = 0.8
TTLS_MS = (300, 1000, 3000)
KEYS = {"x0": (1,), "x1": (1,), "rw": (1, 0, 0), "sem": (3,)}  # and the capacities of requests


class Push(list):
    """A push message of the server."""


class Connection(Client):
    def __init__(self, address):
        self.socket = socket.create_connection(address, PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.replies = self.socket.makefile("rb")

    def reply(self):
        kind = self.replies.peek(1)[:1]
        if kind not in (b">", b"%", b"_") or kind == b"":
            return super().reply()
        rest = self.replies.readline()[1:-2]
        if kind == b"_":
            return None
        number = int(rest) * (2 if kind == b"%" else 1)
        return (Push if kind == b">" else list)(self.reply() for _ in range(number))

    def answer(self, patience=PATIENCE_S):
        self.socket.settimeout(patience)
        while isinstance(reply := self.reply(), Push):
            pass
        return reply

    def push(self, owner, patience):
        """Waits for the end of the ASYNC wait of this owner: [owner, token], or None after a timeout."""
        deadline = time.monotonic() + patience
        while True:
            self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
            push = self.reply()
            if isinstance(push, Push) and push[1] in (b"granted", b"timeout") and push[3] == owner:
                return push[3:] if push[1] == b"granted" else None


class Worker(threading.Thread):
    def __init__(self, spec, number):
        super().__init__()
        self.rng = random.Random(f"{spec['seed']} {spec['name']} {number}")
        self.name = f"{spec['name']}.{number}"
        self.until = spec["until"]
        names = sorted(spec["servers"])
        self.place = names[number % len(names)]
        self.address = tuple(spec["servers"][self.place])
        self.recorder = Recorder(spec["history"], self.name)
        self.async_ = number % 2 == 0
        self.connection = None

    def run(self):
        while time.monotonic() < self.until:
            self.acquisition(f"{self.name}-{self.recorder.number}")
            time.sleep(self.rng.choice((0, 0.001, 0.02)))

    def connected(self):
        if self.connection is None:
            connection = Connection(self.address)
            if self.async_:
                connection.send(("HELLO", 3))
                connection.answer()
            self.connection = connection
        return self.connection

    def disconnect(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None
        time.sleep(0.05)

    def ask(self, number, *words, patience=PATIENCE_S):
        """The reply as a list of one element. None: the outcome stays unknown, or nothing was sent."""
        try:
            self.connected()
        except (OSError, EOFError):
            self.recorder.returned(number, "failed")
            self.disconnect()
            return None
        try:
            self.connection.send(words)
            return [self.connection.answer(patience)]
        except (OSError, EOFError):
            self.recorder.returned(number, "unknown")
            self.disconnect()
            return None

    def acquisition(self, owner):
        key = self.rng.choice(list(KEYS))
        about = {"place": self.place, "key": key, "owner": owner, "ttl": self.rng.choice(TTLS_MS)}
        taken = self.lock(about, self.rng.choice(KEYS[key]))
        if taken is None and self.rng.random() < 0.5:
            return  # if the server granted the lock, it stays held until it expires
        if taken or taken is None:
            self.use(about, taken)

    def lock(self, about, capacity):
        """Whether the lock was granted; None: unknown. After a grant to a waiter the client renews the
        hold, as only the server knows the moment of the grant."""
        wait = self.rng.choice((None, 200, 1500))
        words = ["LOCK", about["key"], about["owner"], about["ttl"]]
        words += ["SHARED"] if capacity == 0 else ["LIMIT", capacity] if capacity > 1 else []
        if wait is not None:
            words += ["WAIT", wait, *(["ASYNC"] if self.async_ else [])]
        number, sent = self.recorder.invoke(op="lock", capacity=capacity, wait=wait, **about)
        got = self.ask(number, *words, patience=PATIENCE_S + (wait or 0) / 1000)
        if got == ["QUEUED"]:
            self.recorder.write(id=number, queued=time.monotonic_ns())
            try:
                got = [self.connection.push(about["owner"].encode(), PATIENCE_S + wait / 1000)]
            except (OSError, EOFError):
                self.recorder.returned(number, "unknown")
                self.disconnect()
                return None
        if got is None:
            return None
        if not isinstance(got[0], list):
            self.recorder.returned(number, "refused", why="busy" if got[0] is None else str(got[0]))
            return False
        self.recorder.returned(number, "ok", token=got[0][1], valid=sent + (about["ttl"] - 1) * MS)
        return wait is None or self.renew(about) is not False

    def renew(self, about):
        number, sent = self.recorder.invoke(op="renew", **about)
        got = self.ask(number, "RENEW", about["key"], about["owner"], about["ttl"])
        return self.judged(number, got, valid=sent + (about["ttl"] - 1) * MS)

    def check(self, about):
        number, _ = self.recorder.invoke(op="check", **about)
        got = self.ask(number, "LOCKS", "INFO", about["key"])
        if got is not None and not isinstance(got[0], RuntimeError):  # an error: the server loads its files
            rows = dict(zip(got[0][::2], got[0][1::2]))[b"holders"] if isinstance(got[0], list) else []
            got = [int(any(about["owner"].encode() in row for row in rows))]
        return self.judged(number, got)

    def judged(self, number, got, **more):
        """Records the outcome of a request that replies 1 if the owner has the hold."""
        if got is None:
            return None
        if isinstance(got[0], RuntimeError):
            self.recorder.returned(number, "unknown", why=str(got[0]))
            return None
        self.recorder.returned(number, "ok" if got[0] == 1 else "refused", **(more if got[0] == 1 else {}))
        return got[0] == 1

    def use(self, about, taken):
        """Keeps the lock for a random time: mostly much shorter than the ttl, sometimes longer."""
        while taken and self.rng.random() < 0.5:
            time.sleep(self.rng.choice((0, 0.002, 0.01, 0.05, about["ttl"] / 2500, about["ttl"] / 900))
                       * self.rng.random())
            taken = (self.renew if self.rng.random() < 0.7 else self.check)(about) is not False
        if self.rng.random() < 0.9:
            number, _ = self.recorder.invoke(op="unlock", **about)
            self.judged(number, self.ask(number, "UNLOCK", about["key"], about["owner"]))


def main():
    # An error in one thread ends the process.
    threading.excepthook = lambda args: (sys.__excepthook__(*args[:3]), os._exit(1))
    spec = json.loads(sys.argv[1])
    workers = [Worker(spec, number) for number in range(spec["threads"])]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


if __name__ == "__main__":
    main()
