"""Makes random commands on sorted sets: those of one reply, and those that wait for a member.

Small sets have keys of their own, as ZSCAN of a large one has cursors. So have sets whose members all have
the same score: for other sets Redis leaves open which members a range of members has.
"""
from differential_functions import AGAIN
from differential_lists import BAD_TIMEOUTS, LISTS, MOMENT
from differential_sets import drawn_by_script

SMALL = (b"z1", b"z2", b"z3")
LARGE = (b"zbig1", b"zbig2")
LEX = (b"zlex1", b"zlex2")
SETS = (b"zset1",)  # with members that fit into a listpack
KEYS = SMALL + LARGE + LEX
MEMBERS = tuple(b"m%d" % i for i in range(12)) + (b"", b"\x00\xff", b"12", b"-1", b"a b", b"m" * 64)
SCORES = (b"0", b"1", b"2", b"2", b"3", b"-1", b"1.5", b"0.1", b"0.2", b"1e3", b"1e17", b"inf", b"-inf",
          b"+inf", b"3.0", b"-0", b"123456789.123", b"0.30000000000000004", b"17179869184",
          b"1e-7", b"9007199254740993")
ODD_SCORES = (b"nan", b"", b"abc", b" 1", b"1 ", b"1x", b"0x10", b"1e400", b"1e-400", b"infinity",
              b"(1", b"1\x00", b"+1", b"01", b".5", b"5.")
BOUNDS = (b"-inf", b"+inf", b"0", b"1", b"2", b"(1", b"(2", b"3", b"(1.5", b"100", b"-1", b"(-inf",
          b"(+inf")
ODD_BOUNDS = (b"", b"(", b"x", b"(x", b"nan", b"((1", b"1 ", b" 1", b"[1")
LEX_BOUNDS = (b"-", b"+", b"[m1", b"(m1", b"[m5", b"(m5", b"[", b"(", b"[z", b"(m11")
ODD_LEX_BOUNDS = (b"", b"m1", b"-x", b"+x", b"1")
INDEXES = (b"0", b"1", b"2", b"-1", b"-2", b"5", b"-5", b"100", b"-100", b"0", b"-1")
AGGREGATES = (b"SUM", b"MIN", b"MAX", b"sum", b"avg")
NAMES = (
    b"ZADD ZCARD ZCOUNT ZDIFF ZDIFFSTORE ZINCRBY ZINTER ZINTERCARD ZINTERSTORE ZLEXCOUNT ZMPOP ZMSCORE "
    b"ZPOPMAX ZPOPMIN ZRANGE ZRANGEBYLEX ZRANGEBYSCORE ZRANGESTORE ZRANK ZREM ZREMRANGEBYLEX "
    b"ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREVRANGE ZREVRANGEBYLEX ZREVRANGEBYSCORE ZREVRANK ZSCAN ZSCORE "
    b"ZUNION ZUNIONSTORE").split()


def key(g):
    luck = g.draw()
    return g.one(SMALL) if luck < 0.9 else g.key()


def any_key(g):
    return g.one(LARGE) if g.chance(0.3) else key(g)


def member(g):
    return g.one(MEMBERS)


def score(g):
    return g.one(SCORES) if g.chance(0.96) else g.one(ODD_SCORES)


def bound(g):
    return g.one(BOUNDS) if g.chance(0.96) else g.one(ODD_BOUNDS)


def lex_bound(g):
    return g.one(LEX_BOUNDS) if g.chance(0.96) else g.one(ODD_LEX_BOUNDS)


def index(g):
    return g.one(INDEXES) if g.chance(0.96) else g.integer()


def zadd(g):
    command = [g.case(b"ZADD"), any_key(g)]
    if g.chance(0.35):
        command += g.some((b"NX", b"XX", b"GT", b"LT", b"CH", b"INCR", b"nx", b"ch", b"XY"), 1, 2)
    for _ in range(1 if b"INCR" in command and g.chance(0.8) else g.number(1, 4)):
        command += [score(g), member(g)]
    if g.chance(0.03):
        command.append(member(g))
    return tuple(command)


def grow(g):
    """Takes a set beyond the limits of a listpack, in number or in size."""
    if g.chance(0.2):
        return (b"ZADD", g.one(LARGE), score(g), b"g" * g.one((64, 65)))
    count = g.one((126, 127, 128, 129, 300))
    factor = g.one((1, 7, 1000))
    return (b"ZADD", g.one(LARGE),
            *[word for i in range(count) for word in (b"%d" % (i % factor), b"m%d" % i)])


def limit(g):
    return [b"LIMIT", index(g), index(g)] if g.chance(0.9) else [b"LIMIT", index(g)]


def zrange_options(g, names):
    options = []
    if g.chance(0.4):
        options.append(g.one((b"WITHSCORES", b"withscores")))
    if g.chance(0.3):
        options += limit(g)
    if names and g.chance(0.3):
        options.append(g.one(names))
    if g.chance(0.02):
        options.append(g.one((b"NOPE", b"BYLEX", b"REV", b"LIMIT")))
    return options


def by_index(g):
    name = g.one((b"ZRANGE", b"ZREVRANGE"))
    options = [b"WITHSCORES"] if g.chance(0.5) else []
    if name == b"ZRANGE" and g.chance(0.3):
        options.append(b"REV")
    if g.chance(0.03):
        options += limit(g)
    return (g.case(name), any_key(g), index(g), index(g), *options)


def by_score(g):
    name = g.one((b"ZRANGE", b"ZRANGEBYSCORE", b"ZREVRANGEBYSCORE"))
    options = zrange_options(g, (b"REV",) if name == b"ZRANGE" else ())
    if name == b"ZRANGE":
        options.insert(0, b"BYSCORE")
    return (g.case(name), any_key(g), bound(g), bound(g), *options)


def by_lex(g):
    name = g.one((b"ZRANGE", b"ZRANGEBYLEX", b"ZREVRANGEBYLEX"))
    options = limit(g) if g.chance(0.3) else []
    if name == b"ZRANGE":
        options += [b"BYLEX"] + ([b"REV"] if g.chance(0.3) else [])
    if g.chance(0.02):
        options.append(b"WITHSCORES")
    return (g.case(name), g.one(LEX), lex_bound(g), lex_bound(g), *options)


def range_store(g):
    if g.chance(0.3):
        return (b"ZRANGESTORE", g.one(LEX), g.one(LEX), lex_bound(g), lex_bound(g), b"BYLEX")
    options = g.one(([], [b"BYSCORE"], [b"REV"], [b"BYSCORE", b"REV"], [b"BYSCORE", *limit(g)],
                     [b"WITHSCORES"]))
    ends = (bound(g), bound(g)) if b"BYSCORE" in options else (index(g), index(g))
    return (b"ZRANGESTORE", key(g), key(g), *ends, *options)


def sources(g, keys):
    named = [g.one(keys) if g.chance(0.9) else g.key() for _ in range(g.number(1, 3))]
    count = len(named) if g.chance(0.95) else g.number(-1, 5)
    return named, [b"%d" % count if g.chance(0.98) else b"x", *named]


def combine_options(g, count, weighted, last):
    options = []
    if weighted and g.chance(0.4):
        options += [b"WEIGHTS", *[score(g) for _ in range(count)]]
    if weighted and g.chance(0.3):
        options += [b"AGGREGATE", g.one(AGGREGATES)]
    if last and g.chance(0.6):
        options += last
    if g.chance(0.02):
        options.append(b"NOPE")
    return options


def combine(g):
    name = g.one((b"ZUNION", b"ZINTER", b"ZDIFF"))
    named, words = sources(g, SMALL + LARGE + SETS)
    return (g.case(name), *words, *combine_options(g, len(named), name != b"ZDIFF", [b"WITHSCORES"]))


def combine_store(g):
    name = g.one((b"ZUNIONSTORE", b"ZINTERSTORE", b"ZDIFFSTORE"))
    large = g.chance(0.3)
    named, words = sources(g, LARGE + SETS if large else SMALL + SETS)
    target = g.one(LARGE) if large else key(g)
    return (g.case(name), target, *words, *combine_options(g, len(named), name != b"ZDIFFSTORE", []))


def intercard(g):
    named, words = sources(g, SMALL + LARGE + SETS)
    return (b"ZINTERCARD", *words, *combine_options(g, len(named), False, [b"LIMIT", index(g)]))


def scan(g):
    command = [b"ZSCAN", key(g), g.one((b"0", b"0", b"0", b"abc", b"-1", b""))]
    if g.chance(0.3):
        command += [b"MATCH", g.one((b"*", b"m*", b"?", b"[^m]*", b""))]
    if g.chance(0.3):
        command += [b"COUNT", g.one((b"1", b"10", b"1000", b"0", b"-1", b"abc"))]
    return tuple(command)


def pop(g):
    options = [g.one((b"0", b"1", b"2", b"100", b"-1", b"x"))] if g.chance(0.5) else []
    return (g.case(g.one((b"ZPOPMIN", b"ZPOPMAX"))), any_key(g), *options)


def end(g):
    return g.one((b"MIN", b"MAX", b"min")) if g.chance(0.97) else g.one((b"LEFT", b"", b"COUNT"))


def multiple(g, *before):
    """The arguments of ZMPOP and BZMPOP."""
    return (*before, *g.counted(wait_key, end))


def wait_key(g):
    return g.one(LISTS) if g.chance(0.05) else key(g)


def waiting(g, timeout):
    """A command that waits if its keys have no member."""
    name = g.one((b"BZPOPMIN", b"BZPOPMAX", b"BZMPOP"))
    if name == b"BZMPOP":
        return multiple(g, name, timeout)
    return (name, *[wait_key(g) for _ in range(g.number(1, 3))], timeout)


ZSETS = [zadd] * 8 + [by_score] * 3 + [by_index, by_lex, combine, combine_store, pop] * 2 + [
    grow, range_store, intercard, scan] + [
    lambda g: waiting(g, g.one(BAD_TIMEOUTS) if g.chance(0.3) else MOMENT),
    lambda g: multiple(g, b"ZMPOP"),
    lambda g: (b"ZADD", g.one(LEX), *[w for _ in range(g.number(1, 4)) for w in (b"0", member(g))]),
    lambda g: (b"ZREM", any_key(g), *g.some(MEMBERS, 1, 4)),
    lambda g: (b"ZINCRBY", any_key(g), score(g), member(g)),
    lambda g: (b"ZSCORE", any_key(g), member(g)),
    lambda g: (b"ZMSCORE", any_key(g), *g.some(MEMBERS, 1, 4)),
    lambda g: (b"ZCARD", any_key(g)),
    lambda g: (g.one((b"ZRANK", b"ZREVRANK")), any_key(g), member(g)),
    lambda g: (b"ZCOUNT", any_key(g), bound(g), bound(g)),
    lambda g: (b"ZLEXCOUNT", g.one(LEX), lex_bound(g), lex_bound(g)),
    lambda g: (b"ZREMRANGEBYRANK", any_key(g), index(g), index(g)),
    lambda g: (b"ZREMRANGEBYSCORE", any_key(g), bound(g), bound(g)),
    lambda g: (b"ZREMRANGEBYLEX", g.one(LEX), lex_bound(g), lex_bound(g)),
    lambda g: (b"ZRANDMEMBER", b"nosuch",
               *g.one(((), (b"2",), (b"0",), (b"x",), (b"-1", b"WITHSCORES")))),
    lambda g: (b"OBJECT", b"ENCODING", g.one(SMALL + LARGE)),
    lambda g: drawn_by_script(g, b"ZRANDMEMBER", any_key),
    lambda g: (b"SADD", g.one(SETS), *g.some(MEMBERS, 1, 3)),
    lambda g: (b"COPY", g.one(SMALL), g.one(SMALL), b"REPLACE"),
    lambda g: (b"EVAL", AGAIN, b"1", g.one(SMALL + LARGE), g.one(LARGE), b"0", b"REPLACE"),
    lambda g: (b"RENAME", g.one(LARGE), g.one(LARGE)),
    lambda g: (b"PERSIST", g.one(SMALL)),
    lambda g: (b"DEL", g.one(SMALL + LARGE + LEX + SETS)),
    lambda g: (b"TYPE", g.one(SMALL + LARGE)),
]


def few(g):
    """ZADD of few members, to a key that clients wait for."""
    return (b"ZADD", wait_key(g), *[w for _ in range(g.number(1, 4)) for w in (g.one(SCORES), member(g))])


GETKEYS_OF_ZSETS = (
    b"ZADD z 1 a", b"ZUNION 2 a b WEIGHTS 1 2", b"ZINTERCARD 1 a LIMIT 3", b"ZDIFFSTORE t 2 a b",
    b"ZDIFF x a", b"ZUNIONSTORE t 0 a", b"ZINTERSTORE t 3 a b", b"ZRANGESTORE t s 0 1", b"ZRANGE z 0 1",
    b"BZPOPMIN a b 0", b"ZMPOP 2 a b MIN", b"BZMPOP 0 1 a MAX")
