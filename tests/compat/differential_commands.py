"""Makes random commands of one reply each, on values of all types, keys and the server; some are invalid.

No command may let a key expire while the test runs, or put a large element into a hash whose order is
compared. No command may have a reply that only one server can give (see LEFT_OUT in differences.py).
"""
import differential_lists as lists
import differential_sets as sets
import differential_zsets as zsets
from differential_functions import FAMILY
from differential_words import (BIG_KEYS, EPOCH_PAST, FIELDS, GLOBS, HUGE_INTEGERS, INTEGERS, KEYS,
                                LONG_VALUES, NOT_INTEGERS, OPTIONS, UNKNOWN, VALUES, Words)

# These commands get random arguments: a few calls are valid by chance, most are not.
CHAOS = (
    b"GET SET GETDEL GETEX GETSET SETNX SETEX PSETEX MGET MSET MSETNX GETRANGE SUBSTR SETRANGE APPEND "
    b"STRLEN INCR DECR INCRBY DECRBY INCRBYFLOAT HSET HSETNX HMSET HGET HMGET HGETALL HDEL HEXISTS HLEN "
    b"HKEYS HVALS HINCRBY HINCRBYFLOAT HSTRLEN HSCAN DEL UNLINK EXISTS TOUCH TYPE RENAME RENAMENX COPY "
    b"EXPIRE PEXPIRE EXPIREAT PEXPIREAT TTL PTTL EXPIRETIME PEXPIRETIME PERSIST DBSIZE SELECT SWAPDB "
    b"FLUSHDB FLUSHALL OBJECT ECHO PING WAIT EVAL EVALSHA EVAL_RO EVALSHA_RO SCRIPT PUBLISH SPUBLISH "
    b"PUBSUB ROLE UNWATCH COMMAND CLIENT FCALL FCALL_RO RESTORE ").split() + (
        lists.LIST_NAMES + sets.NAMES + zsets.NAMES)
# With a small number these would let a key expire soon, or in an undefined order.
TIMED = frozenset(b"SET GETEX SETEX PSETEX EXPIRE PEXPIRE EXPIREAT PEXPIREAT WAIT RESTORE".split())
# An argument tells the number of their keys.
COUNTED = frozenset(
    b"LMPOP SINTERCARD ZDIFF ZDIFFSTORE ZINTER ZINTERCARD ZINTERSTORE ZMPOP ZUNION ZUNIONSTORE".split())
CLOCKS = frozenset(b"TTL PTTL EXPIRETIME PEXPIRETIME".split())
SUBCOMMANDS = {
    b"OBJECT": b"FREQ NOSUCH".split(),
    b"SCRIPT": b"EXISTS LOAD FLUSH NOSUCH".split(),
    b"PUBSUB": b"NUMSUB NUMPAT SHARDNUMSUB NOSUCH".split(),
    b"COMMAND": b"GETKEYS NOSUCH".split(),
    b"CLIENT": b"GETNAME SETNAME GETREDIR NOSUCH UNBLOCK CACHING".split(),
}
GETKEYS = (
    b"GET k", b"SET k v", b"MSET a 1 b 2", b"MSET a 1 b", b"MGET a b c", b"DEL a b", b"PING", b"GET",
    b"NOSUCH a", b"EVAL s 2 a b c", b"EVAL s 0", b"EVAL s 5 a", b"EVAL s abc", b"RENAME a b",
    b"COPY a b DB 1", b"HSET h f v", b"OBJECT ENCODING k", b"COMMAND COUNT", b"EXISTS a b", b"HMGET h a b",
    b"MSETNX a 1 b 2", b"PUBLISH c m", b"EVALSHA s 1 k", b"GETEX k EX 10", b"WATCH a b", b"SELECT 1",
    *lists.GETKEYS_OF_LISTS, *sets.GETKEYS_OF_SETS, *zsets.GETKEYS_OF_ZSETS)


class Commands(Words):
    """`plain()` draws any command with one reply; the other methods draw from one family."""

    def __init__(self, random):
        super().__init__(random)
        self.families = ([self.string] * 34 + [self.hash] * 22 + [self.list] * 22 + [self.zset] * 22
                         + [self.set] * 22 + [self.keyspace] * 14 + [self.expiry] * 16
                         + [self.chaos] * 8 + [self.server] * 3 + [self.object] * 2 + [self.unknown] * 1
                         + [self.function] * 6)

    def plain(self):
        return self.families[int(self.draw() * len(self.families))]()

    def called(self):
        """A command for a script. Its replies must be identical, so it asks for no times."""
        while True:
            command = self.plain()
            if command[0].upper() not in CLOCKS:
                return command

    def list(self):
        return lists.any_list(self)

    def string(self):
        return self.one(STRINGS)(self)

    def set_options(self, command):
        for _ in range(self.number(0, 2) if self.chance(0.6) else 0):
            option = self.one((b"NX", b"XX", b"GET", b"KEEPTTL", b"EX", b"PX", b"EXAT", b"PXAT", b"nx",
                               b"ex", b"px"))
            command.append(option)
            name = option.upper()
            if name in (b"EX", b"PX") and not self.chance(0.03):
                command.append(self.relative(1 if name == b"EX" else 1000))
            elif name in (b"EXAT", b"PXAT"):
                # With a past time the server removes the key at its next access: see gone().
                time = self.absolute(1 if name == b"EXAT" else 1000)
                command.append(b"0" if time in EPOCH_PAST else time)
        return tuple(command)

    def set_string(self):
        return self.set_options([self.case(b"SET"), self.key(), self.value()])

    def getex(self):
        command = [b"GETEX", self.key()]
        for _ in range(self.number(0, 1) if self.chance(0.95) else 2):
            option = self.one((b"EX", b"PX", b"EXAT", b"PXAT", b"PERSIST", b"persist", b"NX", b"KEEPTTL"))
            command.append(option)
            if option in (b"EX", b"PX"):
                command.append(self.relative(1 if option == b"EX" else 1000))
            elif option in (b"EXAT", b"PXAT"):
                command.append(self.absolute(1 if option == b"EXAT" else 1000))
        return tuple(command)

    def setrange(self):
        offset = self.one((b"0", b"1", b"5", b"40", b"300", b"-1", b"536870912", b"9223372036854775807",
                           b"x"))
        return (b"SETRANGE", self.key(), offset, self.value())

    def pairs(self, name):
        command = [name]
        for _ in range(self.number(1, 3)):
            command += [self.key(), self.value()]
        if self.chance(0.05):
            command.append(self.key())
        return tuple(command)

    def hash(self):
        return self.one(HASHES)(self)

    def zset(self):
        return self.one(zsets.ZSETS)(self)

    def set(self):
        return self.one(sets.SETS)(self)

    def hash_pairs(self, name):
        command = [self.case(name), self.key()]
        for _ in range(self.number(1, 3)):
            command += [self.one(FIELDS), self.short()]
        if self.chance(0.03):
            command.append(self.one(FIELDS))
        return tuple(command)

    def hscan(self):
        command = [b"HSCAN", self.key(), self.one((b"0", b"0", b"0", b"abc", b"-1", b""))]
        if self.chance(0.3):
            command += [b"MATCH", self.one((b"*", b"f*", b"?", b"[^f]*", b""))]
        if self.chance(0.3):
            command += [b"COUNT", self.one((b"1", b"10", b"1000", b"0", b"-1", b"abc"))]
        if self.chance(0.05):
            command.append(self.one((b"TYPE", b"MATCH", b"NOVALUES")))
        return tuple(command)

    def expiry(self):
        return self.one(EXPIRIES)(self)

    def expire(self, name, time):
        command = [self.case(name), self.key(), time]
        if self.chance(0.45):
            command += self.some((b"NX", b"XX", b"GT", b"LT", b"nx", b"gt"), 1,
                                 1 if self.chance(0.8) else 2)
            if self.chance(0.04):
                command.append(b"NOPE")
        return tuple(command)

    def keyspace(self):
        return self.one(KEYSPACES)(self)

    def copy(self):
        command = [b"COPY", self.key(), self.key()]
        for _ in range(self.number(0, 2)):
            command += self.one(([b"DB", b"1"], [b"DB", b"0"], [b"REPLACE"], [b"replace"], [b"DB", b"99"],
                                 [b"DB", b"x"], [b"DB"], [b"NOPE"]))
        return tuple(command)

    def object(self):
        return (b"OBJECT", self.one((b"FREQ", b"freq", b"ENCODE")),
                self.key())

    def function(self):
        return self.one(FAMILY)(self)

    def server(self):
        return self.one(SERVERS)(self)

    def unknown(self):
        return (self.one(UNKNOWN), *self.some(VALUES + LONG_VALUES, 0, 4))

    def argument(self):
        luck = self.draw()
        if luck < 0.45:
            return self.key()
        if luck < 0.6:
            return self.one(FIELDS)
        if luck < 0.75:
            return self.one(VALUES)
        return self.one(OPTIONS) if luck < 0.88 else self.one(NOT_INTEGERS)

    def chaos(self):
        """A known command with random arguments."""
        name = self.one(CHAOS)
        arguments = [self.argument() for _ in range(self.number(0, 5 if self.chance(0.3) else 3))]
        if name in TIMED:
            arguments = [b"soon" if is_number(argument) else argument for argument in arguments]
        elif name in (b"EVAL", b"EVAL_RO"):
            arguments[:1] = [b"return {KEYS[1], ARGV[1]}"] if arguments else []
        elif name == b"SELECT" and len(arguments) == 1:
            return (b"SELECT", self.one((b"0", b"1", b"2", b"0", b"16", b"-1", b"abc", b"")))
        elif name in SUBCOMMANDS:
            arguments.insert(0, self.one(SUBCOMMANDS[name]))
        elif name in (b"ZRANK", b"ZREVRANK"):  # see LEFT_OUT
            arguments = arguments[:2]
        elif name in COUNTED:  # see LEFT_OUT
            arguments = [b"x" if begins_as_number(word) else word for word in arguments]
        elif name == b"SADD":  # see differential_sets.py
            arguments[1:] = [sets.ONLY] * len(arguments[1:])
        elif name in (b"HSCAN", b"SSCAN", b"ZSCAN") and len(arguments) > 1:
            arguments[1] = b"x"
        return (self.case(name), *arguments)

    def gone(self):
        """Sets a key with a past expiry and reads it, in one atomic step. A later read would depend on the
        moment at which the server removes the key."""
        key = self.key()
        past = self.one((b"1", b"1000", b"1000000000"))
        option = self.one((b"EXAT", b"PXAT"))
        return [(b"MULTI",), (b"SET", key, self.value(), option, past),
                (self.one((b"GET", b"TTL", b"EXISTS", b"TYPE", b"INCR", b"HLEN", b"PERSIST")), key),
                (b"GET", key), (b"EXEC",)]

    def unordered(self):
        """A command whose reply has no defined order. The reply is sorted before the comparison. So the
        command must not be part of a transaction or a script."""
        return self.one(UNORDERED + sets.UNORDERED)(self)

    def big_hash(self):
        """Grows a hash beyond the limits of a listpack, in number or in size, or reads such a hash."""
        key = self.one(BIG_KEYS)
        luck = self.draw()
        if luck < 0.25:
            count = self.one((127, 128, 129, 130, 300, 5))
            return (b"HSET", key, *[word for i in range(count) for word in (b"m%d" % i, b"%d" % i)])
        if luck < 0.4:
            return (b"HSET", key, self.one((b"long", b"g" * 64, b"g" * 65)),
                    self.one((b"g" * 64, b"g" * 65)))
        if luck < 0.55:
            return (b"HDEL", key, *[b"m%d" % self.number(0, 300) for _ in range(40)], b"long", b"g" * 65)
        return self.one(BIGS)(self, key)


def begins_as_number(word):
    """Whether C's atoi() reads a number from a word that is none, such as " 1", "01" and "1e3"."""
    return word.lstrip(b" +")[:1].isdigit() and not (word.isdigit() and (word[:1] != b"0" or word == b"0"))


def is_number(word):
    return word.strip().lstrip(b"+-").isdigit()


def key_only(*names):
    return [lambda g, n=name: (g.case(n), g.key()) for name in names]


STRINGS = (
    [lambda g: g.set_string()] * 8
    + key_only(b"GET", b"GET", b"GET", b"GETDEL", b"STRLEN", b"INCR", b"DECR") + [
        lambda g: g.getex(),
        lambda g: g.getex(),
        lambda g: (b"GETSET", g.key(), g.value()),
        lambda g: (b"SETNX", g.key(), g.value()),
        lambda g: (b"SETEX", g.key(), g.relative(1), g.value()),
        lambda g: (b"PSETEX", g.key(), g.relative(1000), g.value()),
        lambda g: (b"MGET", *g.some(KEYS, 1, 5)),
        lambda g: g.pairs(b"MSET"),
        lambda g: g.pairs(b"MSETNX"),
        lambda g: (g.one((b"GETRANGE", b"SUBSTR")), g.key(), g.integer(), g.integer()),
        lambda g: (b"GETRANGE", g.key(), g.one(INTEGERS), g.one(INTEGERS)),
        lambda g: g.setrange(),
        lambda g: (b"APPEND", g.key(), g.short()),
        lambda g: (b"INCRBY", g.key(), g.integer()),
        lambda g: (b"DECRBY", g.key(), g.integer()),
        lambda g: (b"INCRBYFLOAT", g.key(), g.real()),
        lambda g: (b"SET", g.one((b"n1", b"n2")), g.one(INTEGERS + HUGE_INTEGERS)),
        lambda g: (b"INCR", g.one((b"n1", b"n2"))),
    ])
HASHES = key_only(b"HGETALL", b"HGETALL", b"HLEN", b"HKEYS", b"HVALS") + [
    lambda g: g.hash_pairs(b"HSET"),
    lambda g: g.hash_pairs(b"HSET"),
    lambda g: (b"HSET", g.one((b"h1", b"h2", b"h3")), g.one(FIELDS), g.short()),
    lambda g: g.hash_pairs(b"HMSET"),
    lambda g: (b"HSETNX", g.key(), g.one(FIELDS), g.short()),
    lambda g: (b"HGET", g.key(), g.one(FIELDS)),
    lambda g: (b"HGET", g.one((b"h1", b"h2", b"h3")), g.one(FIELDS)),
    lambda g: (b"HMGET", g.key(), *g.some(FIELDS, 1, 4)),
    lambda g: (b"HDEL", g.key(), *g.some(FIELDS, 1, 3)),
    lambda g: (b"HEXISTS", g.key(), g.one(FIELDS)),
    lambda g: (b"HSTRLEN", g.key(), g.one(FIELDS)),
    lambda g: (b"HINCRBY", g.key(), g.one(FIELDS), g.integer()),
    lambda g: (b"HINCRBY", g.one((b"h1", b"h2", b"h3")), b"n", g.one(INTEGERS)),
    lambda g: (b"HINCRBYFLOAT", g.key(), g.one(FIELDS), g.one((b"0.1", b"-1.5", b"1e3", b"abc", b"", b"nan",
                                                               b"3"))),
    lambda g: g.hscan(),
    lambda g: (b"HRANDFIELD", b"nosuch",
               *g.one(((), (b"2",), (b"0",), (b"x",), (b"-1", b"WITHVALUES"), (b"1", b"nope")))),
    lambda g: sets.drawn_by_script(g, b"HRANDFIELD", Words.key),
]
EXPIRIES = key_only(b"TTL", b"PTTL", b"EXPIRETIME", b"PEXPIRETIME", b"PERSIST") + [
    lambda g: g.expire(b"EXPIRE", g.relative(1)),
    lambda g: g.expire(b"PEXPIRE", g.relative(1000)),
    lambda g: g.expire(b"EXPIREAT", g.absolute(1)),
    lambda g: g.expire(b"PEXPIREAT", g.absolute(1000)),
]
KEYSPACES = key_only(b"TYPE") + [
    lambda g: (b"DEL", *g.some(KEYS, 1, 3)),
    lambda g: (b"UNLINK", *g.some(KEYS, 1, 3)),
    lambda g: (b"EXISTS", *g.some(KEYS, 1, 4)),
    lambda g: (b"TOUCH", *g.some(KEYS, 1, 4)),
    lambda g: (b"RENAME", g.key(), g.key()),
    lambda g: (b"RENAMENX", g.key(), g.key()),
    lambda g: g.copy(),
    lambda g: (b"DBSIZE",),
    lambda g: (b"SELECT", g.one((b"0", b"0", b"1", b"2", b"15", b"16", b"-1", b"abc"))),
]
SERVERS = [
    lambda g: (b"SWAPDB", g.one((b"0", b"1")), g.one((b"0", b"1", b"2", b"16", b"-1", b"x"))),
    lambda g: (b"FLUSHDB", *g.some((b"ASYNC", b"SYNC", b"nope"), 0, 1)),
    lambda g: (b"PING", *g.some(VALUES, 0, 2)),
    lambda g: (b"ECHO", *g.some(VALUES, 1, 1)),
    lambda g: (b"COMMAND", b"GETKEYS", *g.one(GETKEYS).split()),
    lambda g: (b"COMMAND", b"GETKEYSANDFLAGS", *g.one(GETKEYS).split()),
    lambda g: (b"WAIT", b"0", b"0"),
    lambda g: (b"WAIT", g.one((b"-1", b"0", b"x")), g.one((b"x", b"0", b"-1"))),
    lambda g: (b"ROLE",),
    lambda g: (b"MODULE", b"LIST"),
    lambda g: (b"FLUSHALL", *g.some((b"ASYNC", b"SYNC", b"nope"), 0, 1)) if g.chance(0.2) else (b"DBSIZE",),
    lambda g: (b"CONFIG", b"GET", g.one((b"databases", b"nosuch", b"notify-keyspace-events"))),
    lambda g: (b"CONFIG", *g.one(((b"SET", b"nosuch", b"1"), (b"SET", b"notify-keyspace-events", b"?"),
                                  (b"NOPE",),
                                  (b"SET", b"notify-keyspace-events"), (b"GET",), (b"SET",)))),
    lambda g: (b"PUBLISH", b"nobody", g.value()),
]
UNORDERED = [
    lambda g: (b"KEYS", g.one(GLOBS)),
    lambda g: (b"KEYS", b"*"),
    lambda g: (b"KEYS", *g.some(GLOBS, 0, 2)),
    lambda g: (b"OBJECT", b"IDLETIME", g.key()),
    lambda g: (b"RANDOMKEY",),
    lambda g: (b"SCAN", b"0", b"COUNT", b"10000"),
    lambda g: (b"SCAN", b"0", b"MATCH", g.one(GLOBS), b"COUNT", b"10000"),
    lambda g: (b"SCAN", b"0", b"TYPE", g.one((b"string", b"hash", b"list", b"set", b"zset", b"nosuch",
                                             b"STRING")), b"COUNT", b"10000"),
    lambda g: (b"SCAN", g.one((b"x", b" 0", b"1.5")), *g.some(OPTIONS, 0, 2)),
    lambda g: (b"SCAN", b"0", *g.one(((b"COUNT", b"0"), (b"COUNT", b"x"), (b"MATCH",), (b"NOPE", b"1")))),
    lambda g: (b"OBJECT", b"ENCODING", g.one(BIG_KEYS)),
    lambda g: (b"COMMAND", b"INFO", g.one(CHAOS).lower(), b"nosuch"),
]
BIGS = [
    lambda g, k: (b"HGETALL", k),
    lambda g, k: (b"HKEYS", k),
    lambda g, k: (b"HVALS", k),
    lambda g, k: (b"HLEN", k),
    lambda g, k: (b"OBJECT", b"ENCODING", k),
    lambda g, k: (b"HSCAN", k, b"0", b"COUNT", b"100000"),
    lambda g, k: (b"HMGET", k, b"m0", b"m100", b"m299", b"long"),
    lambda g, k: (b"HINCRBY", k, b"m7", g.integer()),
    lambda g, k: (b"RENAME", k, g.one(BIG_KEYS)),
    lambda g, k: (b"COPY", k, g.one(BIG_KEYS), b"REPLACE"),
    lambda g, k: (b"DEL", k) if g.chance(0.3) else (b"TYPE", k),
]
