"""Makes random commands on lists: those of one reply, and those that wait for an element."""
from differential_words import INTEGERS, LONG_VALUES, NOT_INTEGERS, VALUES

LISTS = (b"l1", b"l2", b"l3")
LIST_NAMES = (
    b"LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LINDEX LRANGE LREM LTRIM LSET LINSERT LPOS LMOVE RPOPLPUSH "
    b"LMPOP").split()
ELEMENTS = (b"a", b"b", b"c", b"1", b"2", b"-5", b"", b"300") + VALUES[:8]
ENDS = (b"LEFT", b"RIGHT", b"left", b"Right")
# A BLPOP of this time ends by itself.
MOMENT = b"0.001"
BAD_TIMEOUTS = (b"-1", b"x", b"", b"nan", b"inf", b"1e30", b" 1", b"-0.5", b"1.5.5")


def list_key(g):
    return g.one(LISTS) if g.chance(0.8) else g.key()


def element(g):
    if g.chance(0.02):
        return g.one(LONG_VALUES + (b"e" * 9000,))
    return g.one(ELEMENTS)


def index(g):
    return g.one(NOT_INTEGERS) if g.chance(0.03) else g.one(INTEGERS)


def end(g):
    return g.one(ENDS) if g.chance(0.97) else g.one((b"UP", b"", b"BEFORE"))


def push(g):
    count = 1 if g.chance(0.6) else g.number(1, 12)
    return (g.case(g.one((b"LPUSH", b"RPUSH", b"RPUSH", b"LPUSHX", b"RPUSHX"))), list_key(g),
            *[element(g) for _ in range(count)])


def pop(g):
    count = () if g.chance(0.5) else (g.one((b"0", b"1", b"2", b"5", b"100", b"-1", b"x")),)
    return (g.case(g.one((b"LPOP", b"RPOP"))), list_key(g), *count)


def position(g):
    command = [b"LPOS", list_key(g), element(g)]
    for _ in range(g.number(0, 2)):
        command += [g.one((b"RANK", b"COUNT", b"MAXLEN", b"rank")), index(g)]
    return tuple(command if g.chance(0.95) else command + [g.one((b"RANK", b"NOPE", b"COUNT"))])


def multiple(g, *before):
    """The arguments of LMPOP and BLMPOP."""
    return (*before, *g.counted(list_key, end))


def one_key(g, name, *rest):
    return (g.case(name), list_key(g), *rest)


CHANGES = [push] * 8 + [pop] * 4 + [
    lambda g: one_key(g, b"LREM", index(g), element(g)),
    lambda g: one_key(g, b"LSET", index(g), element(g)),
    lambda g: one_key(g, b"LINSERT", g.one((b"BEFORE", b"AFTER", b"after", b"x")), element(g), element(g)),
    lambda g: one_key(g, b"LTRIM", index(g), index(g)) if g.chance(0.4) else (b"PING",),
    lambda g: (b"LMOVE", list_key(g), list_key(g), end(g), end(g)),
    lambda g: (b"RPOPLPUSH", list_key(g), list_key(g)),
    lambda g: multiple(g, b"LMPOP"),
]
READS = [
    lambda g: one_key(g, b"LRANGE", b"0", b"-1"),
    lambda g: one_key(g, b"LRANGE", index(g), index(g)),
    lambda g: one_key(g, b"LINDEX", index(g)),
    lambda g: one_key(g, b"LLEN"),
    position,
    position,
]


def waiting(g, timeout):
    """A command that waits if its keys have no element."""
    name = g.one((b"BLPOP", b"BRPOP", b"BLPOP", b"BLMOVE", b"BRPOPLPUSH", b"BLMPOP"))
    if name == b"BLMOVE":
        return (name, list_key(g), list_key(g), end(g), end(g), timeout)
    if name == b"BRPOPLPUSH":
        return (name, list_key(g), list_key(g), timeout)
    if name == b"BLMPOP":
        return multiple(g, name, timeout)
    return (name, *[list_key(g) for _ in range(g.number(1, 3))], timeout)


def any_list(g):
    luck = g.draw()
    if luck < 0.05:
        return waiting(g, g.one(BAD_TIMEOUTS) if g.chance(0.3) else MOMENT)
    return g.one(CHANGES if luck < 0.7 else READS)(g)


GETKEYS_OF_LISTS = (b"LPUSH l a", b"BLPOP a b 0", b"BLMOVE a b LEFT LEFT 0", b"LMPOP 2 a b LEFT",
                    b"BLMPOP 0 1 a LEFT", b"RPOPLPUSH a b", b"LRANGE l 0 1")
