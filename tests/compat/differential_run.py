"""Plays sessions on two servers, compares the replies, and shortens a session that shows a difference."""
import re
import select
import socket
import time
from collections import Counter, namedtuple

import differences
from differential_sessions import Batch, Session
from differential_wire import (command_text, encode, has_id, parse, parse_all, reply_end, reply_text,
                               wire_text)

LIMIT_S = 20
RESET = [(b"FLUSHALL",), (b"SCRIPT", b"FLUSH"), (b"FUNCTION", b"FLUSH"),
         (b"CONFIG", b"SET", b"notify-keyspace-events", b"")]
SUBSCRIBES = re.compile(rb"[PS]?(UN)?SUBSCRIBE$", re.IGNORECASE)
OUT_OF_BAND = frozenset([b"message", b"pmessage", b"smessage", b"invalidate"])

GONE = b"A SERVER IS GONE"
Difference = namedtuple("Difference", "batch command replies")


class Closed(Exception):
    pass


class Connection:
    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(address)
        self.pending = b""
        self.ended = False

    def send(self, data):
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass

    def receive(self):
        try:
            data = self.socket.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            raise Closed
        self.pending += data

    def take(self, end):
        taken, self.pending = self.pending[:end], self.pending[end:]
        return taken

    def until(self, marker):
        """Everything up to the marker, or to the end."""
        searched = 0
        while True:
            at = self.pending.find(marker, searched)
            if at >= 0:
                return self.take(at + len(marker))
            searched = max(0, len(self.pending) - len(marker))
            self.receive()

    def count(self, number):
        """The next replies, with the pushes before and between them."""
        at = 0
        while number:
            end = reply_end(self.pending, at)
            if end < 0:
                self.receive()
                continue
            number -= self.pending[at] != b">"[0]
            at = end
        return self.take(at)

    def to_end(self):
        self.socket.shutdown(socket.SHUT_WR)
        while True:
            self.receive()


class Side:
    """One of the two servers with the connections of a session."""

    def __init__(self, server):
        self.server = server
        self.connections, self.ids = {}, {}

    def begin(self, protocol):
        self.finish()
        self.protocol = protocol
        control = self.open("control")
        control.send(b"".join(map(encode, RESET)))
        control.count(len(RESET))

    def open(self, name):
        connection = self.connections.get(name)
        if connection is None or connection.ended and not connection.pending:
            connection = self.connections[name] = Connection(self.server.address)
            hello = [(b"HELLO", b"3")] if self.protocol == 3 else []
            connection.send(b"".join(map(encode, hello + [(b"CLIENT", b"ID")])))
            replies = parse_all(connection.count(len(hello) + 1))[0]
            self.ids[name] = replies[-1][1]
        return connection

    def finish(self):
        for connection in self.connections.values():
            connection.socket.close()
        self.connections.clear()
        self.ids.clear()

    def send(self, batch, marker):
        """Sends a batch. First opens the connections that its commands name, in the same order on both
        servers."""
        ids = self.ids if any(map(has_id, batch.commands)) else None
        if ids is not None:
            for arg in (arg for command in batch.commands for arg in command if not isinstance(arg, bytes)):
                self.open(arg.connection)
        connection = self.open(batch.connection)
        connection.send(b"".join([encode(command, ids) for command in batch.commands]) + marker)

    def answer(self, batch, tail):
        """The bytes of the answer, and whether the server closed the connection after them."""
        connection = self.connections[batch.connection]
        try:
            if batch.how == "marker":
                return connection.until(tail), False
            if batch.how == "held":
                return self.hold(batch.connection), False
            if batch.how == "count":
                return connection.count(len(batch.commands)), False
            connection.to_end()
        except Closed:
            rest = connection.take(len(connection.pending))
            connection.socket.close()
            del self.connections[batch.connection]
            return rest, True
        except TimeoutError:
            rest = connection.take(len(connection.pending))
            return rest + b"-(no more bytes within %d s)\r\n" % LIMIT_S, True

    def hold(self, name):
        """Returns when the connection waits, or has a reply; reads nothing of it."""
        connection, control = self.connections[name], self.connections["control"]
        while not connection.pending and not select.select([connection.socket], [], [], 0)[0]:
            control.send(encode((b"CLIENT", b"LIST", b"ID", b"%d" % self.ids[name])))
            if re.search(rb" flags=\w*b", control.count(1)):
                break
        return b""

    def scan(self, batch):
        """The elements of a full iteration, as one reply."""
        connection = self.open(batch.connection)
        command = list(batch.commands[0])
        at = 1 if command[0] == b"SCAN" else 2
        has_pairs = command[0] in (b"HSCAN", b"ZSCAN")
        found, turns = set(), 0
        while turns < 10000:
            connection.send(encode(command))
            reply = parse(connection.count(1), 0)[0]
            if reply[0] == b"-":
                return reply
            command[at] = reply[1][0][1]
            items = reply[1][1][1]
            found.update(map(repr, zip(items[::2], items[1::2]) if has_pairs else items))
            turns += 1
            if command[at] == b"0":
                return (b"~", [(b"+", item.encode()) for item in sorted(found)])
        return (b"-", b"the iteration does not end")


def kind_of(reply):
    """The first word of a push, or of the array that RESP2 sends in its place."""
    return reply[1][0][1] if reply[0] in (b"*", b">") and reply[1] and reply[1][0][0] == b"$" else None


def is_out_of_band(reply):
    return kind_of(reply) in OUT_OF_BAND


def confirms(reply, name):
    return kind_of(reply) == name.lower()


def align(commands, replies):
    """Pairs (command or None, its replies) in the order of the replies; None if the numbers of commands and
    replies do not match."""
    aligned, at = [], 0
    for command in commands:
        while at < len(replies) and is_out_of_band(replies[at]):
            aligned.append((None, [replies[at]]))
            at += 1
        if at >= len(replies):
            return None
        end = at + 1
        if isinstance(command, tuple) and SUBSCRIBES.match(command[0]) and confirms(replies[at],
            command[0]):
            limit = at + len(command) - 1 if len(command) > 1 else len(replies)
            while end < limit and end < len(replies) and confirms(replies[end], command[0]):
                end += 1
        aligned.append((command, replies[at:end]))
        at = end
    aligned += [(None, [reply]) for reply in replies[at:]]
    return aligned if all(map(is_out_of_band, replies[at:])) else None


class Duel:
    """Two servers. The replies of the first are the right ones."""

    def __init__(self, right, other):
        self.sides = (Side(right), Side(other))
        self.marks = 0
        self.commands = 0
        self.sent = set()  # the names of the commands: b"config", b"config|get"
        self.seen = Counter()

    def play(self, session):
        """The first difference of a session that is not a listed one, or None. A crash of either server is
        also a difference: no session may send a command that crashes stock Redis."""
        for side in self.sides:
            side.begin(session.protocol)
        for index, batch in enumerate(session.batches):
            self.note_sent(batch.commands)
            try:
                difference = self.scan(batch) if batch.how == "scan" else self.exchange(batch)
            except (Closed, OSError):
                difference = (GONE,), [[(b"-", b"a server is gone")]] * 2
            if difference:
                return Difference(index, *difference)
        return None

    def note_sent(self, commands):
        self.commands += len(commands)
        for command in commands:
            if isinstance(command, tuple):
                words = [arg.lower() for arg in command[:2] if isinstance(arg, bytes)]
                self.sent.update((words[0], b"|".join(words)))

    def shared_commands(self):
        """The names of the commands that both servers have."""
        names = []
        for side in self.sides:
            side.begin(2)
            listing = side.open("control")
            subcommands = encode((b"COMMAND", b"LIST", b"FILTERBY", b"PATTERN", b"*|*"))
            listing.send(encode((b"COMMAND", b"LIST")) + subcommands)
            names.append({name for reply in parse_all(listing.count(2))[0] for _, name in reply[1]})
        return names[0] & names[1]

    def restart_dead(self):
        return [side.server.name for side in self.sides if side.server.restart_if_dead()]

    def scan(self, batch):
        replies = [side.scan(batch) for side in self.sides]
        return None if replies[0] == replies[1] else (batch.commands[0], [[reply] for reply in replies])

    def exchange(self, batch):
        self.marks += 1
        tail = b"<end %d>\r\n" % self.marks
        marker = encode((b"PING", tail[:-2])) if batch.how == "marker" else b""
        for side in self.sides:
            side.send(batch, marker)
        (right, right_closed), (other, other_closed) = [side.answer(batch, tail) for side in self.sides]
        if right_closed == other_closed and right == other:
            return None
        commands = batch.commands + [(b"PING", tail[:-2])] if batch.how == "marker" else batch.commands
        difference = self.compare(commands, right, other)
        if difference or right_closed == other_closed:
            return difference
        return b"the connection's end", [[(b"+",
                                           b"closed" if closed else b"open")] for closed in (right_closed,
                                               other_closed)]

    def compare(self, commands, right, other):
        (rights, right_rest), (others, other_rest) = parse_all(right), parse_all(other)
        aligned = align(commands, rights), align(commands, others)
        if None in aligned or right_rest or other_rest:
            return self.compare_unaligned(rights + [(b"?", right_rest)], others + [(b"?", other_rest)],
                                          aligned)
        for (command, a), (other_command, b) in zip(*aligned):
            if command != other_command or not self.same(command, a, b):
                return command or other_command, [a, b]
        at = min(map(len, aligned))
        rest = max(aligned, key=len)[at:]
        return (rest[0][0], [side[at][1] if at < len(side) else [] for side in aligned]) if rest else None

    @staticmethod
    def compare_unaligned(rights, others, aligned):
        """The first difference if replies cannot be matched with commands on both sides: then all replies
        must be equal, except times. If one side can be matched, it gives the command of the first
        difference."""
        at = next((i for i, (a, b) in enumerate(zip(rights, others)) if not differences.times(a, b, None)),
                  min(len(rights), len(others)))
        if at == len(rights) == len(others):
            return None
        owners = next(([command for command, replies in side for _ in replies] for side in aligned if side),
                      [])
        return owners[at] if at < len(owners) else None, [rights[at:at + 1], others[at:at + 1]]

    def same(self, command, a, b):
        if a == b:
            return True
        if command is None:
            return False
        many = differences.rule_for(command, differences.MANY)
        ids = [side.ids for side in self.sides]
        if many and many.same(a, b, ids):
            return True
        if len(a) != 1 or len(b) != 1:
            return False
        rule = differences.rule_for(command)
        if rule and rule.same(a[0], b[0], ids):
            return True
        listed = differences.listed(command, reply_text(a[0]), reply_text(b[0]))
        if listed:
            self.seen[listed.reason] += 1
        return listed is not None


def shown(replies):
    return [" ".join(map(reply_text, side)) if side else "(nothing)" for side in replies]


def signature(difference):
    """The key by which two differences probably have the same cause: the command's name, and the forms of
    the replies."""
    command = difference.command
    name = b"?" if command is None else command.split(b" ")[0] if isinstance(command, bytes) else command[0]
    forms = [re.sub(r"[0-9a-f]{6,}|[0-9]+", "#", reply)[:60] for reply in shown(difference.replies)]
    return name.upper(), *forms


def units_of(batch):
    """The pieces of a batch that may be left out. Commands that begin and end a mode are in one piece."""
    if any(isinstance(command, tuple) and command[:2] == (b"CLIENT",
                                                          b"REPLY") for command in batch.commands):
        return [batch.commands]
    units, piece, ends = [], [], None
    for command in batch.commands:
        piece.append(command)
        head = command[:3] if isinstance(command, tuple) else (command,)
        if batch.how == "marker" and ends is None:
            ends = {(b"MULTI",): (b"EXEC",)}.get(head)
        if ends in (None, head):
            units.append(piece)
            piece, ends = [], None
    return units + [piece] if piece else units or [[]]


class Shrinker:
    def __init__(self, duel, session, difference, limit_s):
        self.duel, self.session, self.difference = duel, session, difference
        self.wanted = signature(difference)
        self.deadline = time.monotonic() + limit_s

    def session_of(self, units):
        batches = []
        last = None
        for index, commands in units:
            if index == last:
                batches[-1].commands.extend(commands)
            else:
                origin = self.session.batches[index]
                batches.append(Batch(origin.connection, list(commands), origin.how))
                last = index
        return Session(self.session.kind, self.session.protocol, batches)

    def still_differs(self, units):
        difference = self.duel.play(self.session_of(units))
        if self.wanted[0] == GONE:
            self.duel.restart_dead()
        if difference is None or signature(difference) != self.wanted:
            return False
        self.difference = difference
        return True

    def shrink(self):
        """The shortest session found within the time, and its difference."""
        batches = self.session.batches[:self.difference.batch + 1]
        units = [(i, unit) for i, batch in enumerate(batches) for unit in units_of(batch)]
        units = self.without_chunks(units)
        single = []
        for i, unit in units:
            splits = self.session.batches[i].how != "marker"
            single += [(i, [command]) for command in unit] if splits else [(i, unit)]
        if len(single) != len(units):
            units = self.without_chunks(single)
        self.still_differs(units)
        return self.session_of(units), self.difference

    def without_chunks(self, units):
        size = max(1, len(units) // 2)
        while True:
            at = 0
            while at < len(units) and time.monotonic() < self.deadline:
                fewer = units[:at] + units[at + size:]
                if fewer and self.still_differs(fewer):
                    units = fewer
                else:
                    at += size
            if size == 1 or time.monotonic() >= self.deadline:
                return units
            size = max(1, size // 2)


def report(session, difference, names):
    """The text of a difference: the commands that show it, and both replies."""
    lines = []
    for batch in session.batches[:difference.batch + 1]:
        text = wire_text if batch.how == "close" else command_text
        lines += [f"  {batch.connection} > {text(command)}" for command in batch.commands]
        if not batch.commands:
            lines.append(f"  {batch.connection} > (listens)")
        if batch.how == "scan":
            lines[-1] += "   (to its end)"
    if len(lines) > 40:
        lines = lines[:5] + [f"  ... {len(lines) - 35} more"] + lines[-30:]
    about = "(a push, or unknown)" if difference.command is None else command_text(difference.command)
    lines.append(f"  differs: {about}")
    width = max(map(len, names)) + 1
    lines += [f"    {name + ':':{width}} {reply}" for name, reply in zip(names, shown(difference.replies))]
    return "\n".join(lines)
