"""A server for cost_test.py, and the cost of one request to it: the CPU time of its process, the memory
that the process takes meanwhile, and the delay of another client."""
import dataclasses
import os
import pathlib
import re
import select
import time

import differential_servers as servers
from harness import Client

LIMIT_S = 60        # of one request
TAIL = 64           # how many bytes the client keeps of both ends of a reply
MARKER = "7c1f0e5a-behind"
BETWEEN_PINGS_S = 0.005
IDLE_S = 0.001      # a server that uses less than IDLE_CPU_S in IDLE_S, and does not want to run, is idle
IDLE_CPU_S = 0.00015
OPTIONS = {"redis": ["--port", "0", "--save", "", "--appendonly", "no"],
           "holdfast": ["--port", "0", "--appendonly", "no", "--busy-poll", "no", "--enable-debug-command",
                        "yes"]}
PROGRAMS = {"redis": "REDIS_SERVER", "holdfast": "HOLDFAST_SERVER"}


@dataclasses.dataclass
class Cost:
    """The cost of one request. `cpu` is the CPU time of the server's process until it is idle again,
    `block` the longest CPU time in which it did not serve other clients, and `delay` the longest time until
    it answered another client's PING: all in ms. `memory` is the growth of the resident memory at its peak,
    in MiB."""
    cpu: float
    block: float
    delay: float
    memory: float
    reply: bytes  # its beginning
    size: int     # its bytes

    @property
    def failed(self):
        return self.reply.startswith(b"-")

    def least(self, other):
        """Of two tries: the shorter times, and the larger memory."""
        return dataclasses.replace(self, cpu=min(self.cpu, other.cpu), block=min(self.block, other.block),
                                   delay=min(self.delay, other.delay),
                                   memory=max(self.memory, other.memory))


def encoded(words):
    out = b"*%d\r\n" % len(words)
    for word in words:
        text = word if isinstance(word, bytes) else str(word).encode()
        out += b"$%d\r\n%s\r\n" % (len(text), text)
    return out


class Connection:
    """A client that keeps only the ends of a reply. Behind each request it sends a PING with a marker,
    which ends the reply: also that of a subscriber."""
    END = b"$%d\r\n%s\r\n" % (len(MARKER), MARKER.encode())

    def __init__(self, path):
        self.client = Client(path)
        self.socket = self.client.socket
        self.socket.setblocking(False)
        self.begin()

    def begin(self):
        self.first, self.tail, self.size, self.complete = b"", b"", 0, False

    def send(self, words, marker=True):
        self.begin()
        self.asked = " ".join(map(str, words))[:200]
        self.socket.setblocking(True)
        self.socket.sendall(encoded(words) + encoded(["PING", MARKER]) * marker)
        self.socket.setblocking(False)

    def read(self):
        """Reads what is there. Returns whether the marker has come."""
        try:
            data = self.socket.recv(1 << 20)
        except BlockingIOError:
            return False
        if not data:
            raise EOFError("the server closed the connection")
        if len(self.first) < TAIL:
            self.first = (self.first + data)[:TAIL]
        self.complete |= self.END in self.tail + data  # a push may follow
        self.tail = data[-TAIL:]
        self.size += len(data)
        return self.complete

    def close(self):
        self.client.close()


class Pings:
    """The PINGs of another client, one after the other."""

    def __init__(self, connection):
        self.connection = connection
        self.waits = False
        self.sent = self.delay_s = 0.0

    def send(self):
        self.sent = time.monotonic()
        self.connection.send(["PING"], marker=False)
        self.waits = True

    def due(self):
        return not self.waits and time.monotonic() > self.sent + BETWEEN_PINGS_S

    def receive(self):
        self.connection.read()
        if self.connection.size:
            self.waits = False
            self.delay_s = max(self.delay_s, time.monotonic() - self.sent)

    def ask(self):
        """Sends a PING, and waits for the reply."""
        self.send()
        while self.waits:
            select.select([self.connection.socket], [], [], LIMIT_S)
            self.receive()


class CostServer:
    """A running server, a connection for requests that are not measured (`ask`), one for those that are,
    and one of another client."""

    def __init__(self, name):
        self.name = name
        program = os.environ.get(PROGRAMS[name], f"build/{name}-server")
        self.server = servers.Server(name, program, OPTIONS[name])
        self.process = pathlib.Path("/proc", str(self.server.process.pid))
        # The CPU clock of another process: clock_getcpuclockid() in C.
        self.clock = (~self.server.process.pid << 3) | 2
        self.client = Client(self.server.address)
        self.other = Connection(self.server.address)
        self.measured = Connection(self.server.address)
        self.waiting = {}

    def new_waiting_client(self, key):
        """A client with requests that wait for the lock `key`. It replaces the one before."""
        if key in self.waiting:
            self.waiting[key].close()
        self.waiting[key] = Client(self.server.address)
        return self.waiting[key]

    def ask(self, *words):
        return self.client.ask(*words)

    def must(self, *words):
        reply = self.ask(*words)
        if isinstance(reply, RuntimeError):
            raise AssertionError(f"{self.name}: {' '.join(map(str, words))[:300]}: {reply}")
        return reply

    def cpu_s(self):
        """The CPU time of all threads so far."""
        return time.clock_gettime(self.clock)

    def memory_mib(self, field):
        text = (self.process / "status").read_text(encoding="ascii")
        return int(re.search(rf"{field}:\s+(\d+) kB", text).group(1)) / 1024

    def begin_peak(self):
        """Sets the peak of the resident memory to its present size, and returns that."""
        (self.process / "clear_refs").write_text("5", encoding="ascii")
        return self.memory_mib("VmHWM")

    def renew_connection(self):
        """A connection may have subscribed, or got another protocol."""
        self.measured.close()
        self.measured = Connection(self.server.address)

    def is_idle_since(self, cpu_s):
        """Whether no thread has work: Redis frees a large value in another one, maybe later."""
        states = [(task / "stat").read_text(encoding="ascii").rpartition(") ")[2][0]
                  for task in (self.process / "task").iterdir()]
        return set(states) <= {"S", "I"} and self.cpu_s() - cpu_s < IDLE_CPU_S

    def answer(self, words):
        """The beginning of the reply to a request, on the connection of those that are measured."""
        self.measured.send(words)
        self.wait_for_reply(Pings(self.other))
        return self.measured.first

    def cost(self, words):
        """Sends a request, and measures what it costs."""
        before_mib = self.begin_peak()
        self.begin_iterations()
        before_s = self.cpu_s()
        self.measured.send(words)
        pings = Pings(self.other)
        self.wait_for_reply(pings)
        cpu_s = self.settle(pings) - before_s
        return Cost(cpu_s * 1000, min(cpu_s, self.longest_iteration_s()) * 1000, pings.delay_s * 1000,
                    self.memory_mib("VmHWM") - before_mib, self.measured.first,
                    self.measured.size - len(Connection.END))

    def begin_iterations(self):
        if self.name == "holdfast":
            self.must("DEBUG", "LOOP", "START")

    def longest_iteration_s(self):
        """The longest CPU time of an iteration of Holdfast's event loop; unknown of Redis."""
        if self.name != "holdfast":
            return float("inf")
        figures = self.must("DEBUG", "LOOP", "STOP")
        return dict(zip(figures[::2], figures[1::2]))[b"longest-cpu-us"] / 1e6

    def wait_for_reply(self, pings):
        poll = select.poll()
        for connection in (self.measured, self.other):
            poll.register(connection.socket, select.POLLIN)
        limit = time.monotonic() + LIMIT_S
        complete = False
        pings.send()
        while not complete or pings.waits:
            ready = [number for number, _ in poll.poll(BETWEEN_PINGS_S * 1000)]
            if self.other.socket.fileno() in ready:
                pings.receive()
            if self.measured.socket.fileno() in ready:
                complete = self.measured.read()
            if not complete and pings.due():
                pings.send()
            if time.monotonic() > limit:
                raise TimeoutError(f"{self.name} does not reply: {self.measured.asked}")

    def settle(self, pings):
        """Waits until the server is idle. Returns its CPU time."""
        limit = time.monotonic() + LIMIT_S
        while True:
            before_s = self.cpu_s()
            time.sleep(IDLE_S)
            if self.is_idle_since(before_s):
                return before_s
            if pings.due():
                pings.ask()
            if time.monotonic() > limit:
                raise TimeoutError(f"{self.name} does not become idle")

    def stop(self):
        for connection in (self.client, self.other, self.measured, *self.waiting.values()):
            connection.close()
        return self.server.stop()
