"""Plans sessions: the requests of each connection, their pieces, and the end of their replies.

A session is a list of batches. `how` of a batch is one of:
- "marker": a PING ends the batch. Its reply follows any number of replies and pushes.
- "count": the client waits for one reply a command, so that the batch may end inside of MULTI.
- "close": the batch has its own connection. The client half-closes it, and the server closes it.
- "scan": the client follows a cursor to its end.
- "held": the client gets no reply yet, as the command may wait; a later batch of the connection gets it.
The client gets all replies of a batch before it sends the next one, so both servers see the same order.
"""
import hashlib
from collections import namedtuple

from differential_commands import Commands
import differential_sets as sets
import differential_waits as waits
import differential_zsets as zsets
from differential_lua import Scripts
from differential_words import CHANNELS, GLOBS, KEYS, PATTERNS, VALUES
from differential_wire import Id, encode

Batch = namedtuple("Batch", "connection commands how")
Session = namedtuple("Session", "kind protocol batches")

KINDS = ("plain", "lua", "transactions", "pubsub", "memory", "paused", "silent", "errors", "notifications",
         "tracking", "broadcast", "connection", "frames", "blocking")
ALL_KEYS = KEYS + (b"big1", b"big2") + sets.KEYS + zsets.KEYS
EVENTS = (
    b"KEA", b"KEA", b"KA", b"EA", b"Kg$", b"Eh", b"Exg", b"", b"KEg$lshxmn", b"K", b"A", b"En", b"KEA?",
    b"KEm")
# Combined at random: the declaration of a script, and its body.
SCRIPT_FLAGS = (b"", b"", b"#!lua\n", b"#!lua flags=no-writes\n", b"#!lua flags=allow-oom\n",
                b"#!lua flags=no-writes,allow-oom\n", b"#!lua flags=nonsense\n")
SCRIPT_BODIES = (b"return 1", b"return redis.call('get', 's1')", b"return redis.call('set', 's1', 'x')",
                 b"return redis.pcall('set', 's2', 'y')",
                 b"redis.call('del', 's1') return redis.call('set', 's1', 1)",
                 b"redis.pcall('set', 's1', 1) return redis.pcall('append', 's1', 'z')",
                 b"return redis.call('hset', 'h1', 'f', 1)")
# Scripts that catch an error, pass it on, or make one; and scripts without errors.
FAULTY = (b"return redis.call('incr', 's1')", b"return redis.pcall('incr', 's1')",
          b"redis.pcall('incr', 's1') return 1", b"redis.pcall('nosuch') redis.pcall('get') return 2",
          b"return redis.call('nosuch')", b"return redis.error_reply('MINE alone')", b"error('x')",
          b"redis.pcall('incr', 's1') return {err = 'OTHER one'}", b"return {err = 'BARE'}", b"return 1",
          b"return redis.pcall('hget', 's1', 'f')", b"return redis.call('eval', 'return 1', 0)")
SHARDED = {b"SUBSCRIBE": b"SSUBSCRIBE", b"UNSUBSCRIBE": b"SUNSUBSCRIBE"}


def names_its_keys(command):
    """Whether an EVAL has a valid number of keys. Otherwise the server does not load or use the script."""
    return len(command) > 2 and command[2].isdigit() and int(command[2]) <= len(command) - 3


def has_order(script):
    """False for scripts whose reply may be a map or set: see EVALSHA in LEFT_OUT."""
    return b"setresp(3)" not in script


# A client that half-closes while it waits gets its reply or not: that depends on the moment.
WAITING = (b"BL", b"BR", b"BZ")


def inspection():
    """Reads the whole content of the databases, to find differences that no reply has shown."""
    for database in (b"0", b"1", b"2"):
        yield (b"SELECT", database)
        yield (b"DBSIZE",)
        yield (b"KEYS", b"*")
        for key in ALL_KEYS:
            yield from ((b"TYPE", key), (b"GET", key), (b"LRANGE", key, b"0", b"-1"),
                        (b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"), (b"SMEMBERS", key), (b"HGETALL", key),
                        (b"PEXPIRETIME", key))


class Planner:
    """Plans one session after another. The random source determines all of them."""

    def __init__(self, random):
        self.words = Commands(random)
        self.scripts = Scripts(self.words)
        self.plans = {kind: getattr(self, kind) for kind in KINDS}
        self.turns = ["plain"] * 8 + ["blocking"] * 3 + ["lua"] * 5 + ["transactions"] * 3 + ["pubsub",
            "notifications"] * 2 + [
            "tracking"] * 2 + ["broadcast", "connection", "connection", "frames"] + [
            "memory", "paused", "silent", "errors"]

    def plan(self, protocol, kind=None):
        kind = kind or self.words.one(self.turns)
        batches = list(self.plans[kind](protocol))
        if kind != "frames":
            batches.append(Batch("Z", list(inspection()), "marker"))
        return Session(kind, protocol, batches)

    def several(self, low, high, make):
        return [make() for _ in range(self.words.number(low, high))]

    def plain(self, _):
        words = self.words
        for _ in range(16):
            commands = []
            while len(commands) < 150:
                if words.chance(0.01):
                    commands += words.gone()
                elif words.chance(0.04):
                    commands.append(self.inline())
                else:
                    commands.append(words.plain())
            yield Batch("A", commands, "marker")
            yield Batch("A", self.several(1, 4, words.unordered), "marker")
            if words.chance(0.5):
                yield Batch("A", self.several(3, 8, words.big_hash), "marker")
            if words.chance(0.3):
                yield Batch("A", sets.drawn(words), "marker")
            if words.chance(0.5):
                yield Batch("A", [self.scan()], "scan")

    def scan(self):
        words = self.words
        options = words.one(((), (b"COUNT", b"1"), (b"COUNT", b"5"), (b"MATCH", words.one(GLOBS)),
                             (b"COUNT", b"3", b"MATCH", b"*1*")))
        if words.chance(0.4):
            return (b"HSCAN", words.one((b"big1", b"big2", b"h1", b"nosuch", b"s1")), b"0", *options)
        if words.chance(0.4):
            return (b"SSCAN", words.one(sets.KEYS + (b"nosuch", b"s1")), b"0", *options)
        if words.chance(0.3):
            return (b"ZSCAN", words.one(zsets.KEYS + (b"nosuch", b"s1")), b"0", *options)
        return (b"SCAN", b"0", *options, *words.one(((), (b"TYPE", b"string"), (b"TYPE", b"hash"))))

    def inline(self):
        """A command as a person types it: bare and quoted words, several blanks, either line end."""
        words = self.words
        while True:
            command = words.called()
            if all(command):
                break
        typed = [self.typed(word) for word in command]
        begin, blank = words.one((b"", b"", b" ", b"\t")), words.one((b" ", b" ", b"  ", b"\t"))
        return begin + blank.join(typed) + words.one((b"\r\n", b"\n", b" \r\n"))

    def typed(self, word):
        if not word.isalnum() or self.words.chance(0.2):
            hexed = b"".join(bytes([b]) if 32 <= b < 127 and b not in b'"\\' else b"\\x%02x" % b
                             for b in word)
            single = word.isascii() and word.decode().isprintable() and self.words.chance(0.4)
            return b"'%b'" % word.replace(b"'", b"\\'") if single and b"\\" not in word else b'"%b"' % hexed
        return word

    def lua(self, _):
        words, scripts = self.words, self.scripts
        shas = []  # the scripts that EVAL or SCRIPT LOAD loaded lately: see LEFT_OUT
        for _ in range(14):
            commands = []
            del shas[:-200]
            while len(commands) < 100:
                luck = words.draw()
                if luck < 0.7:
                    commands.append(scripts.eval())
                    if names_its_keys(commands[-1]) and has_order(commands[-1][1]):
                        shas.append(hashlib.sha1(commands[-1][1]).hexdigest().encode())
                elif luck < 0.78:
                    commands.append(scripts.by_hash(shas))
                elif luck < 0.82:
                    commands.append(self.script(shas))
                else:
                    commands.append(words.plain())
            yield Batch("A", commands, "marker")

    def script(self, shas):
        words = self.words
        luck = words.draw()
        if luck < 0.5:
            body = self.scripts.script().encode("latin-1")
            if has_order(body):
                shas.append(hashlib.sha1(body).hexdigest().encode())
            return (b"SCRIPT", b"LOAD", body)
        if luck < 0.8:
            return (b"SCRIPT", b"EXISTS", *words.some(shas + [b"x"], 1, 3))
        return (b"SCRIPT", *words.one(((b"FLUSH",), (b"FLUSH", b"ASYNC"), (b"FLUSH", b"SYNC"),
                                       (b"FLUSH", b"x"), (b"KILL",), (b"NOSUCH",),
                                       (b"EXISTS",), (b"LOAD",), (b"KILL", b"x"),
                                       (b"FLUSH", b"SYNC", b"x"))))

    def transaction_step(self):
        words = self.words
        luck = words.draw()
        if luck < 0.14:
            return (words.case(b"MULTI"), *words.some(VALUES, 0, 1)) if words.chance(0.05) else (b"MULTI",)
        if luck < 0.28:
            return (b"EXEC", b"x") if words.chance(0.03) else (b"EXEC",)
        if luck < 0.31:
            return (b"DISCARD",)
        if luck < 0.41:
            return (b"WATCH", *words.some(KEYS, 1, 3))
        if luck < 0.44:
            return (b"UNWATCH",)
        if luck < 0.47:
            command = self.scripts.eval()
            return command if has_order(command[1]) else (b"PING",)
        if luck < 0.475:
            return (b"RESET",)
        return words.plain()

    def transactions(self, _):
        """Three connections in turns: each watches, queues and executes between writes of the others."""
        words = self.words
        for _ in range(90):
            yield Batch(words.one("ABC"), self.several(1, 12, self.transaction_step), "count")
            if words.chance(0.05):
                yield Batch(words.one("ABC"), words.gone(), "count")
        for connection in "ABC":
            yield Batch(connection, [(b"DISCARD",), (b"UNWATCH",)], "count")

    def flagged(self):
        words = self.words
        body = words.one(SCRIPT_FLAGS) + words.one(SCRIPT_BODIES)
        return (words.one((b"EVAL", b"EVAL", b"EVAL_RO")), body, b"0")

    def limited_step(self):
        words = self.words
        luck = words.draw()
        if luck < 0.2:
            return (b"MULTI",)
        if luck < 0.4:
            return (b"EXEC",)
        if luck < 0.45:
            return words.one(((b"DISCARD",), (b"WATCH", words.one(KEYS)), (b"UNWATCH",), (b"RESET",)))
        return self.flagged() if luck < 0.65 else words.plain()

    def memory(self, _):
        """Above and below maxmemory in turns: rejections at once and at EXEC, and the flags of scripts."""
        words = self.words
        for _ in range(80):
            yield Batch("B", [(b"CONFIG", b"SET", b"maxmemory", words.one((b"0", b"1")))], "count")
            yield Batch("A", self.several(1, 6, self.limited_step), "count")
        yield Batch("B", [(b"CONFIG", b"SET", b"maxmemory", b"0")], "count")
        yield Batch("A", [(b"DISCARD",), (b"UNWATCH",)], "count")

    def paused(self, _):
        """Only commands that CLIENT PAUSE WRITE does not delay, so that the test never waits."""
        words = self.words
        for _ in range(10):
            yield Batch("B", [(b"CLIENT", b"PAUSE", b"3600000", b"WRITE")], "count")
            reads = self.several(1, 8, lambda: words.one((
                (b"GET", words.one(KEYS)), (b"PING",),
                (b"EVAL_RO", b"return redis.call('get', 's1')", b"0"),
                (b"EVAL", b"#!lua flags=no-writes\nreturn redis.call('get', 's1')", b"0"),
                (b"MULTI",), (b"EXEC",), (b"DISCARD",))))
            yield Batch("A", reads + [(b"DISCARD",)], "count")
            yield Batch("B", [(b"CLIENT", b"UNPAUSE")], "count")
            yield Batch("A", self.several(1, 4, words.plain), "count")

    def silent(self, protocol):
        """Subscriptions of a client with CLIENT REPLY OFF or SKIP."""
        words = self.words
        leave = [(b"UNSUBSCRIBE", *CHANNELS), (b"PUNSUBSCRIBE", *PATTERNS), (b"SUNSUBSCRIBE", *CHANNELS)]
        for _ in range(30):
            some = self.several(1, 6, lambda: self.subscription(protocol == 3))
            first = (b"CLIENT", b"REPLY", words.one((b"OFF", b"SKIP", b"OFF")))
            yield Batch("A", [first, *some, *leave, (b"CLIENT", b"REPLY", b"ON")], "marker")
            yield Batch("B", self.several(1, 3, self.publication), "marker")

    def errors(self, _):
        """Error statistics: a server counts each error once, also in EXEC and in scripts."""
        words = self.words
        for _ in range(30):
            steps = self.several(1, 6, lambda: words.one((
                words.plain(), (b"INCR", b"s1"), (b"NOSUCH", b"x"), (b"GET",), (b"EXEC",), (b"MULTI", b"x"),
                (b"EVAL", words.one(FAULTY), b"0"), (b"EVALSHA", b"0" * 40, b"0"))))
            queued = self.several(0, 4, lambda: words.one((
                (b"INCR", b"s1"), (b"GET", b"s1"), (b"HGET", b"s1", b"f"),
                (b"EVAL", words.one(FAULTY), b"0"))))
            wrong = [(b"GET",)] if words.chance(0.2) else []
            yield Batch("A", [(b"CONFIG", b"RESETSTAT"), (b"SET", b"s1", b"text"), *steps,
                              (b"MULTI",), *queued, *wrong, (b"EXEC",),
                              (b"INFO", b"ERRORSTATS"), (b"INFO", b"STATS")], "count")

    def subscription(self, resp3):
        words = self.words
        luck = words.draw()
        name = words.one((b"SUBSCRIBE", b"UNSUBSCRIBE"))
        if luck < 0.4:
            return (words.case(name), *words.some(CHANNELS, 1, 3))
        if luck < 0.65:
            return (b"P" + name, *words.some(PATTERNS, 1, 2))
        if luck < 0.75:
            return (SHARDED[name], *words.some(CHANNELS, 1, 2))
        if luck < 0.8:
            return (words.one((b"SUBSCRIBE", b"PSUBSCRIBE", b"SSUBSCRIBE")),)
        if luck < 0.9:
            return (b"PING", *words.some(VALUES, 0, 2))
        command = words.called()
        return command if resp3 or command[0].upper() not in (b"SELECT",) else (b"PING",)

    def publication(self):
        words = self.words
        luck = words.draw()
        if luck < 0.7:
            return (words.case(b"PUBLISH"), words.one(CHANNELS + (b"hello", b"c9")), words.value())
        if luck < 0.8:
            return (b"SPUBLISH", words.one(CHANNELS), words.value())
        if luck < 0.9:
            return (b"EVAL", b"return redis.call('publish', KEYS[1], ARGV[1])", b"1", words.one(CHANNELS),
                    words.short())
        return (b"PUBSUB", *words.one(((b"NUMPAT",), (b"NUMSUB", *words.some(CHANNELS, 0, 3)),
                                       (b"CHANNELS",), (b"CHANNELS", b"c*"), (b"SHARDCHANNELS",),
                                       (b"SHARDNUMSUB", *words.some(CHANNELS, 0, 2)), (b"NOSUCH",),
                                       (b"CHANNELS", b"a", b"b"), (b"NUMPAT", b"x"))))

    def pubsub(self, protocol):
        """Two subscribers, and one connection that only publishes. In RESP3 the subscribers publish too."""
        words = self.words
        for _ in range(45):
            subscriber = words.one("ST")
            yield Batch(subscriber, self.several(1, 6, lambda: self.subscription(protocol == 3)), "marker")
            if words.chance(0.15):
                yield Batch(subscriber, [(words.one((b"UNSUBSCRIBE", b"PUNSUBSCRIBE", b"SUNSUBSCRIBE")),)],
                            "marker")
            yield Batch("P", self.several(1, 25, self.publication), "marker")
            if protocol == 3 and words.chance(0.5):
                yield Batch(subscriber, self.several(1, 10, self.publication), "marker")
            yield Batch("S", [], "marker")
            yield Batch("T", [], "marker")

    def notifications(self, _):
        words = self.words
        patterns = words.one(((b"__key*__:*",), (b"__keyevent@*__:*", b"__keyspace@*__:*"),
                              (b"__keyspace@0__:s*", b"__keyevent@1__:*")))
        yield Batch("S", [(b"PSUBSCRIBE", *patterns)], "marker")
        for _ in range(20):
            yield Batch("A", [(b"CONFIG", b"SET", b"notify-keyspace-events", words.one(EVENTS)),
                              (b"CONFIG", b"GET", b"notify-keyspace-events")], "marker")
            yield Batch("A", self.several(40, 80, self.writes), "marker")
            yield Batch("A", words.gone() if words.chance(0.5) else [], "marker")
            yield Batch("S", [], "marker")

    def tracking_options(self, other):
        words = self.words
        options = list(words.one(((), (), (b"NOLOOP",), (b"OPTIN",), (b"OPTOUT",), (b"OPTOUT", b"NOLOOP"),
                                  (b"optin", b"NOLOOP"))))
        if other:
            options += [b"REDIRECT", Id(other)]
        if words.chance(0.15):
            options += words.one(([b"PREFIX", b"s"], [b"NOPE"], [b"PREFIX"], [b"REDIRECT"],
                                  [b"REDIRECT", b"999999"], [b"REDIRECT", b"0"],
                                  [b"REDIRECT", b"x"], [b"OPTIN"], [b"OPTOUT"], [b"BCAST", b"OPTIN"]))
        return options

    def tracking_switch(self, other):
        """Sets tracking again; sometimes without the OFF that a change of mode requires."""
        words = self.words
        commands = [(b"CLIENT", b"TRACKING", b"OFF")] if words.chance(0.8) else []
        word = b"ON" if words.chance(0.95) else words.one((b"on", b"what", b"OFF"))
        commands.append((b"CLIENT", b"TRACKING", word, *self.tracking_options(other)))
        commands.append((b"CLIENT", words.one((b"TRACKINGINFO", b"GETREDIR"))))
        return commands

    def call_of_reader(self):
        """No script, FLUSHALL or FLUSHDB: see LEFT_OUT."""
        command = self.words.called()
        return (b"PING",) if command[0].upper().startswith((b"FLUSH", b"EVAL", b"FCALL")) else command

    def reads(self):
        """Reads of a tracking client, some after the CLIENT CACHING of OPTIN and OPTOUT."""
        words = self.words
        for _ in range(words.number(3, 15)):
            if words.chance(0.2):
                yield (b"CLIENT", b"CACHING", words.one((b"YES",) * 8 + (b"NO", b"maybe")))
            if words.chance(0.5):
                yield words.one(((b"MGET", *words.some(KEYS, 1, 4)), (b"EXISTS", *words.some(KEYS, 1, 3)),
                                 (b"GET", words.key()), (b"HGETALL", words.key())))
            else:
                yield self.call_of_reader()

    def writes(self):
        return self.words.called() if self.words.chance(0.9) else self.scripts.eval()

    def tracking(self, protocol):
        """Two readers with tracking, a connection that gets redirected invalidations, and a writer."""
        words = self.words
        yield Batch("R", [(b"SUBSCRIBE", b"__redis__:invalidate")], "marker")
        for turn in range(40):
            reader = words.one("AB")
            if turn < 2 or words.chance(0.2):
                redirected = words.chance(0.9) if protocol == 2 else words.chance(0.2)
                yield Batch(reader, self.tracking_switch("R" if redirected else None), "count")
            yield Batch(reader, list(self.reads()), "marker")
            if words.chance(0.3):
                yield Batch(reader, [(b"MULTI",), *self.reads(), (b"EXEC",)], "marker")
            yield Batch("W", self.several(1, 20, self.writes), "marker")
            for connection in "ABR":
                yield Batch(connection, [], "marker")

    def broadcast(self, protocol):
        """BCAST collects the keys of a turn of the server's loop, so a writer sends one command a turn."""
        words = self.words
        yield Batch("R", [(b"SUBSCRIBE", b"__redis__:invalidate")], "marker")
        for _ in range(12):
            redirect = [b"REDIRECT", Id("R")] if protocol == 2 or words.chance(0.2) else []
            prefixes = words.one(([], [], [b"s"], [b"s", b"h"], [b"s", b"s1"], [b""], [b"x", b"n"]))
            options = [word for prefix in prefixes for word in (b"PREFIX", prefix)]
            options += words.some((b"NOLOOP",), 0, 1)
            yield Batch("A", [(b"CLIENT", b"TRACKING", b"ON", b"BCAST", *redirect, *options),
                              (b"CLIENT", b"TRACKINGINFO")], "count")
            for _ in range(8):
                writer = words.one("WWA")
                yield Batch(writer, [self.call_of_reader() if writer == "A" else words.called()], "count")
                yield Batch("A", [(b"ECHO", b"after")], "count")
                yield Batch("R", [], "marker")
            yield Batch("A", [(b"CLIENT", b"TRACKING", b"OFF")], "count")

    def blocking(self, _):
        """Clients that wait for elements, and others that push, move and replace lists and sorted sets."""
        words = self.words
        families = words.one(((waits.LISTS,), (waits.ZSETS,), (waits.LISTS, waits.ZSETS)))
        for turn in range(15):
            held = []
            for step in range(words.number(4, 14)):
                if len(held) < 5 and words.chance(0.45):
                    held.append(f"W{turn}.{step}")
                    yield Batch(held[-1], [words.one(families).waiting(words, b"0")], "held")
                else:
                    yield Batch(words.one("AB"), waits.woken(words, words.one(families)), "marker")
            if words.chance(0.3) and held:
                yield Batch("A", [(b"CLIENT", b"UNBLOCK", Id(words.one(held)), b"ERROR")], "marker")
            yield Batch("B", [(b"CLIENT", b"UNBLOCK", Id(name)) for name in held], "marker")
            for name in held:
                yield Batch(name, [], "marker")

    def hello(self):
        return (self.words.case(b"HELLO"), *self.words.one(HELLOS))

    def client(self):
        return (self.words.case(b"CLIENT"), *self.words.one(CLIENTS))

    def quiet(self):
        """Suppressed replies. The test cannot match replies with commands, so no command asks for times."""
        words = self.words
        skip, called = (b"CLIENT", b"REPLY", b"SKIP"), words.called
        off, on = (b"CLIENT", b"REPLY", b"OFF"), (b"CLIENT", b"REPLY", b"ON")
        return words.one(([on, (b"CLIENT", b"REPLY"), (b"CLIENT", b"REPLY", b"x")],
                          [off, *self.several(0, 5, called), on],
                          [skip, called(), called()],
                          [skip, skip, called(), called()]))

    def connection(self, protocol):
        words = self.words
        auth = ((b"x",), (b"default", b"x"), (b"nobody", b"x"), (), (b"a", b"b", b"c"))
        for turn in range(25):
            name = words.one("AB") + str(turn // 5)
            yield Batch(name, self.several(1, 6, self.hello), "marker")
            yield Batch(name, self.several(5, 30, self.client), "marker")
            yield Batch(name, self.quiet(), "marker")
            yield Batch(name, [*self.several(1, 5, words.plain), (b"AUTH", *words.one(auth)),
                               *words.one(((), ((b"RESET",),))), *self.several(1, 9, words.plain)],
                        "marker")
            if words.chance(0.2):
                yield Batch(name, [(b"SUBSCRIBE", b"c1"), (b"RESET",), (b"MULTI",), (b"SET", b"s1", b"x"),
                                   (b"RESET",), words.plain()], "marker")
            if words.chance(0.15):
                kill = words.one(((b"ID", Id(name)), (b"ID", Id(name), b"SKIPME", b"yes"),
                                  (b"TYPE", b"normal", b"ID", Id(name)), (b"ID", Id("K"))))
                yield Batch("K", [(b"CLIENT", b"KILL", *kill)], "marker")
                yield Batch(name, [(b"PING",)], "marker")
            if turn == 0 or words.chance(0.1):
                first = words.plain()
                if first[0].upper().startswith(WAITING):
                    first = (b"PING",)
                yield Batch(f"Q{turn}", [first, (b"QUIT", *words.some((b"x",), 0, 1)), (b"PING",)],
                            "close")

    def frames(self, _):
        """Unusual and broken frames among good ones. A server answers no frame after a broken one."""
        words = self.words
        for turn in range(60):
            commands = (words.called() for _ in range(words.number(0, 3)))
            left_out = (b"HELLO", *WAITING)
            before = b"".join(encode(c) for c in commands if not c[0].upper().startswith(left_out))
            broken = words.one(FRAMES)
            if words.chance(0.15):
                broken = self.mutation()
            yield Batch(f"F{turn}", [before + broken + encode((b"PING", b"after"))], "close")

    def mutation(self):
        """A good frame that is cut, or has another byte in its lengths."""
        words = self.words
        frame = bytearray(encode((b"ECHO", b"text")))
        if words.chance(0.5):
            return bytes(frame[:words.number(0, len(frame) - 1)]) + b"\r\n"
        frame[words.number(0, 5)] = words.one(b"$*+-09\r\n a\xff")
        return bytes(frame)


HELLOS = (
    (b"2",), (b"3",), (), (b"1",), (b"4",), (b"x",), (b"",), (b"3", b"SETNAME", b"me"),
    (b"3", b"SETNAME", b"a b"), (b"2", b"AUTH", b"default", b"x"), (b"3", b"AUTH", b"nobody", b"x"),
    (b"3", b"AUTH", b"default"), (b"3", b"NOPE"), (b"2", b"SETNAME"),
    (b"3", b"AUTH", b"default", b"p", b"SETNAME", b"n"))
CLIENTS = (
    (b"ID",), (b"GETNAME",), (b"SETNAME", b"me"), (b"SETNAME", b""), (b"SETNAME", b"a b"),
    (b"SETNAME", b"a\n"), (b"SETNAME", b"\xff"), (b"SETNAME", b"~"), (b"SETNAME", b"!x"), (b"GETNAME",),
    (b"GETREDIR",), (b"TRACKINGINFO",), (b"NOSUCH",), (), (b"NO-EVICT", b"ON"), (b"NO-EVICT", b"OFF"),
    (b"NO-EVICT", b"x"), (b"UNBLOCK", b"999999"), (b"UNBLOCK", b"x"), (b"UNBLOCK", b"-1"),
    (b"UNBLOCK", b"999999", b"ERROR"), (b"UNBLOCK", b"999999", b"TIMEOUT"), (b"UNBLOCK", b"999999", b"x"),
    (b"PAUSE", b"0"), (b"PAUSE", b"-1"), (b"PAUSE", b"x"), (b"PAUSE", b"1.5"), (b"PAUSE", b"0", b"ALL"),
    (b"PAUSE", b"0", b"WRITE"), (b"PAUSE", b"0", b"x"), (b"UNPAUSE",), (b"KILL", b"1.2.3.4:5"),
    (b"KILL", b"ID", b"999999"), (b"KILL", b"ID", b"x"), (b"KILL", b"ID", b"0"), (b"KILL", b"ID", b"-1"),
    (b"KILL", b"TYPE", b"replica"), (b"KILL", b"TYPE", b"nosuch"), (b"KILL", b"ADDR", b"1.2.3.4:5"),
    (b"KILL", b"USER", b"nobody"), (b"KILL", b"SKIPME", b"x"), (b"KILL", b"NOPE", b"x"),
    (b"KILL", b"LADDR", b"x", b"ID", b"99999"), (b"KILL",), (b"TRACKING",), (b"TRACKING", b"OFF"),
    (b"TRACKING", b"x"), (b"CACHING", b"YES"), (b"CACHING",), (b"ID", b"x"), (b"SETNAME",))
FRAMES = (
    b"*1\r\n$-5\r\n", b"*1\r\n$-1\r\n", b"*2147483648\r\n", b"*abc\r\n",
    b"*\r\n", b"*-1\r\n", b"*0\r\n", b"*-5\r\n", b"*1\r\n+PING\r\n", b"*1\r\nPING\r\n", b"*1\r\n$abc\r\n",
    b"*1\r\n$\r\n", b"*1\r\n$999999999999\r\n", b"*1\r\n$536870913\r\n", b"*1\r\n$ 4\r\nPING\r\n",
    b"*1\r\n$04\r\nPING\r\n", b"*1\r\n$+4\r\nPING\r\n", b"* 1\r\n$4\r\nPING\r\n", b"*+1\r\n$4\r\nPING\r\n",
    b"*01\r\n$4\r\nPING\r\n", b"*1\r\n$4\r\nPINGxx", b"*1\r\n$4\r\nPINGx\r\n", b"*1\r\n:4\r\nPING\r\n",
    b"*1\n$4\r\nPING\r\n", b"*1\r\n$4\nPING\r\n", b"*1\r\n$0\r\n\r\n", b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
    b"\r\n", b"\n", b"   \r\n", b"PING\r\n", b"PING\n", b"ping hello\r\n", b"PING \"unbalanced\r\n",
    b"PING 'unbalanced\r\n", b"PING \"a\"b\r\n", b"PING 'a'b\r\n", b"PING a\"b\r\n",
    b"ECHO \"\\x41\\n\\r\\t\\a\\b\\\\\\\"\\q\"\r\n", b"ECHO 'a\\'b\\n'\r\n", b"ECHO \"\\xzz\"\r\n",
    b"ECHO \"\"\r\n", b"ECHO ''\r\n", b"PING\r\r\n", b"\"PING\"\r\n",
    b"+OK\r\n", b"$4\r\nPING\r\n", b"GET / HTTP/1.1\r\n",
    b"x" * 65000 + b"\r\n",
    b"*1\r\n$4\r\nPING\r\n*1\r\n$4\r\nPING", b"*1\r\n$4\r\nQUIT\r\n",
    b"*3\r\n$3\r\nSET\r\n$2\r\ns1\r\n$x\r\n", b"*9223372036854775808\r\n", b"*-9223372036854775809\r\n",
    b"*1\r\n$-9223372036854775809\r\n", b"*1.5\r\n", b"*1\r\n$1.5\r\n", b"", b"*1\r\n",
    b"*2\r\n$4\r\nECHO\r\n", b"*1\r\n$16\r\n0123456789abcdef\r\n")
