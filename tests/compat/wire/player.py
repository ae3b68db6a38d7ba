"""Plays scenarios against a running server, over sockets: a connection for each name, and one for queries.

Knows the transcript's steps and RESP. Has no fixed pauses: it reads a reply as soon as it arrives, and
polls for a condition (a key no longer exists, a client is blocked) until it is true or the time limit ends.
"""
import re
import socket
import time

from differential_wire import encode, parse, reply_end

from wire.transcript import shown

LIMIT_S = 10  # time limit for one event; only a test that fails takes that long


class Wrong(Exception):
    """A reply or a state that the transcript does not expect."""


def wire_bytes(reply):
    """The canonical bytes of a reply. Another form of the same value, such as `:01`, has other bytes."""
    kind, value = reply
    if value is None:
        return kind + b"-1\r\n"
    if isinstance(value, list):
        count = len(value) // (2 if kind == b"%" else 1)
        return kind + b"%d\r\n" % count + b"".join(map(wire_bytes, value))
    if kind in (b"$", b"="):
        return kind + b"%d\r\n%b\r\n" % (len(value), value)
    return kind + (b"%d" % value if kind == b":" else value) + b"\r\n"


def reply_text(raw):
    reply = parse(raw, 0)[0]
    return shown(reply) if wire_bytes(reply) == raw else f"not as RESP is written: {raw!r}"


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = "%s:%d" % self.socket.getsockname()
        self.out, self.heard, self.is_open = b"", b"", True

    def flush(self):
        self.socket.sendall(self.out)
        self.out = b""

    def hear(self):
        """The text of the next reply, or (closed)."""
        end_s = time.monotonic() + LIMIT_S
        while (end := reply_end(self.heard, 0)) < 0:
            self.socket.settimeout(max(end_s - time.monotonic(), 0.001))
            try:
                more = self.socket.recv(65536)
            except TimeoutError:
                raise Wrong(f"no reply within {LIMIT_S} s, after {self.heard!r}") from None
            except ConnectionResetError:
                more = b""
            if not more:
                self.is_open = False
                return "(closed)" + (repr(self.heard) if self.heard else "")
            self.heard += more
        raw, self.heard = self.heard[:end], self.heard[end:]
        return reply_text(raw)

    def ask(self, *words):
        self.out += encode([word.encode() for word in words])
        self.flush()
        return self.hear()


class Player:
    """Plays scenarios on one server. `side` is H for Holdfast, R for Redis."""

    def __init__(self, port, side):
        self.port, self.side = port, side
        self.looker = Connection(port)
        self.connections = {}
        self.steps_played = 0

    def play(self, transcript, scenario, rewrite=None):
        """Plays all steps; raises Wrong at the first that fails. With `rewrite`, calls it instead for each
        reply that differs."""
        self.begin()
        try:
            for step in scenario.steps:
                if step.side in (None, self.side):
                    self.play_step(transcript, step, rewrite)
            self.flush()
            for name in self.connections:
                self.end(name)
        finally:
            self.close()

    def begin(self):
        for words in (("FLUSHALL",), ("SCRIPT", "FLUSH"), ("SELECT", "0")):
            if (heard := self.looker.ask(*words)) != "+OK":
                raise Wrong(f"{' '.join(words)}: {heard}")

    def play_step(self, transcript, step, rewrite):
        try:
            self.do_step(transcript, step, rewrite)
        except (Wrong, OSError, ValueError) as wrong:
            raise Wrong(f"{transcript.path}:{step.number}: {wrong}") from None
        self.steps_played += 1

    def do_step(self, transcript, step, rewrite):
        if step.kind in (">", ">>"):
            self.send(transcript, step)
            return
        self.flush()
        if step.kind == "gone":
            self.look("EXISTS", lambda heard: heard == "0", f"{step.text} to end", step.text, db=step.who)
        elif step.kind == "drop":
            self.end(step.who)
            self.connections.pop(step.who).socket.close()
        elif step.text == "(waits)":
            self.expect_wait(self.connections[step.who])
        else:
            self.expect(transcript, step, rewrite)

    def send(self, transcript, step):
        """Sends consecutive lines of one connection at once, as a pipeline."""
        if step.who not in self.connections:
            self.connections[step.who] = Connection(self.port)
        self.flush(but=step.who)
        words = transcript.request(step.text)
        self.connections[step.who].out += encode(words) if step.kind == ">" else b"".join(words)

    def flush(self, but=None):
        for name, connection in self.connections.items():
            if connection.out and name != but:
                connection.flush()

    def expect(self, transcript, step, rewrite):
        heard = self.connections[step.who].hear()
        if transcript.matches(step.text, heard):
            return
        if not rewrite:
            raise Wrong(f"{step.who}: expected {step.text}\n    but received {heard}")
        rewrite(step, transcript.named(heard))

    def expect_wait(self, connection):
        """Waits until CLIENT LIST shows the client as blocked. The client must have received nothing."""
        client = re.compile(rf"addr={re.escape(connection.address)} .*? flags=\w*b")
        self.look("CLIENT", client.search, f"{connection.address} to be blocked", "LIST")
        connection.socket.settimeout(0.001)
        try:
            connection.heard += connection.socket.recv(65536)
        except TimeoutError:
            pass
        if connection.heard:
            raise Wrong(f"it should wait, but received {connection.heard!r}")

    def look(self, command, is_so, what, *words, db="0"):
        """Polls until `is_so` accepts the reply. The pause only saves processor time."""
        self.looker.ask("SELECT", db)
        end_s = time.monotonic() + LIMIT_S
        while not is_so(heard := self.looker.ask(command, *words)):
            if time.monotonic() > end_s:
                raise Wrong(f"waited {LIMIT_S} s for {what}: {heard}")
            time.sleep(0.003)

    def end(self, name):
        """Checks that there is no reply beyond the transcript: the next one answers this PING."""
        connection = self.connections[name]
        heard = connection.ask("PING", "the end") if connection.is_open else '"the end"'
        if heard not in ('"the end"', '["pong", "the end"]'):
            raise Wrong(f"at the end {name} also received {heard}")

    def close(self):
        for connection in self.connections.values():
            connection.socket.close()
        self.connections = {}
