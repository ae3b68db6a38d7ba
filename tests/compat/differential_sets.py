"""Makes random commands on sets.

The members of a set have no order, so a command of plain() that replies with members only asks for sets of
one member: the keys ONE and those of all types hold at most the member ONLY. Sets of several members have
keys of their own. unordered() and drawn() ask for their members, and so do scripts that sort or check them.
"""
from differential_functions import AGAIN
from differential_words import LONG_VALUES

SMALL = (b"set1", b"set2", b"set3")
LARGE = (b"sbig1", b"sbig2")
ONE = (b"one1", b"one2")
ONLY = b"only"
KEYS = SMALL + LARGE + ONE
NAMES = (b"SADD SCARD SDIFF SDIFFSTORE SINTER SINTERCARD SINTERSTORE SISMEMBER SMEMBERS SMISMEMBER SMOVE "
         b"SPOP SRANDMEMBER SREM SSCAN SUNION SUNIONSTORE").split()
# These could give a key of any type other members than ONLY, if a script chose their arguments.
FILLING = frozenset(b"SADD SMOVE SDIFFSTORE SINTERSTORE SUNIONSTORE RENAME RENAMENX COPY".split())
INTEGERS = tuple(b"%d" % i for i in range(8)) + (b"-5", b"32768", b"2147483648", b"9223372036854775807",
                                               b"-9223372036854775808")
TEXTS = (b"a", b"b", b"c", b"", b"007", b"1.5", b" 1", b"9223372036854775808", b"\x00\xff", b"a b",
         b"m" * 64, ONLY)
COUNTS = (b"0", b"1", b"2", b"3", b"100", b"9223372036854775807")
NO_COUNTS = (b"x", b"", b"1.5", b"9223372036854775808")

# Redis chooses other members than Holdfast. The script replies what both must agree on: the number of
# chosen members, of different ones, of all before and after, and of those that were chosen wrongly. ARGV[2]
# is a count. After SPOP the two servers would have different sets, so the script removes the set.
DRAWN = b"""local name, count = ARGV[1], tonumber(ARGV[2] or 1)
local function all()
  if name == 'ZRANDMEMBER' then return redis.call('ZRANGE', KEYS[1], 0, -1) end
  if name == 'HRANDFIELD' then return redis.call('HKEYS', KEYS[1]) end
  return redis.call('SMEMBERS', KEYS[1])
end
local function known(list)
  local found, n = {}, 0
  for _, member in ipairs(list) do
    if not found[member] then found[member] = true n = n + 1 end
  end
  return found, n
end
local before, size = known(all())
local reply = redis.call(name, KEYS[1], ARGV[2])
if type(reply) ~= 'table' then reply = {reply or nil} end
local chosen, different = known(reply)
local after, left = known(all())
local wrong = 0
for member in pairs(chosen) do
  if not before[member] or (name == 'SPOP') == (after[member] == true) then wrong = wrong + 1 end
end
if name == 'SPOP' then redis.call('DEL', KEYS[1]) end
return {#reply, count and count < 0 and 'any' or different, size, left, wrong}"""
DRAWN_ONE = DRAWN.replace(b"KEYS[1], ARGV[2])", b"KEYS[1])")
SORTED = b"local r = redis.call(unpack(ARGV)) if type(r) == 'table' then table.sort(r) end return r"


def own_key(g):
    """A key whose set may have any members."""
    return g.one(LARGE) if g.chance(0.15) else g.one(SMALL)


def one_key(g):
    """A key whose set has at most the member ONLY, or that has any other type."""
    return g.one(ONE) if g.chance(0.7) else g.key()


def key(g):
    return own_key(g) if g.chance(0.9) else one_key(g)


def member(g):
    luck = g.draw()
    if luck < 0.02:
        return g.one(LONG_VALUES)
    return g.one(INTEGERS if luck < 0.6 else TEXTS)


def members(g, most):
    if g.chance(0.5):  # such a set stays an intset
        return g.some(INTEGERS, 1, most)
    return [member(g) for _ in range(g.number(1, most))]


def add(g):
    if g.chance(0.15):
        return (g.case(b"SADD"), one_key(g), *[ONLY] * g.number(1, 2))
    return (g.case(b"SADD"), own_key(g), *members(g, 6))


def grow(g):
    """Takes a set beyond the limit of an intset, in number or by a text."""
    first = g.one((0, 0, 100, -70_000))
    count = g.one((5, 300, 511, 512, 513))
    prefix = g.one((b"", b"", b"m"))
    return (b"SADD", g.one(LARGE), *[b"%b%d" % (prefix, first + i) for i in range(count)])


def move(g):
    if g.chance(0.2):
        return (b"SMOVE", key(g), one_key(g), ONLY)
    return (g.case(b"SMOVE"), key(g), own_key(g), member(g))


def combined_name(g):
    return g.one((b"SINTER", b"SUNION", b"SDIFF"))


def store(g):
    any_members = g.chance(0.8)
    target, source = (own_key, key) if any_members else (one_key, one_key)
    return (g.case(combined_name(g) + b"STORE"), target(g), *[source(g) for _ in range(g.number(1, 3))])


def intercard(g):
    keys = [key(g) for _ in range(g.number(1, 3))]
    number = b"%d" % len(keys) if g.chance(0.93) else g.one((b"0", b"-1", b"x", b"5", b"2"))
    words = (b"LIMIT", g.one(COUNTS + (b"-1", b"x"))) if g.chance(0.5) else ()
    more = g.some((b"LIMIT", b"1", b"NOPE"), 1, 2) if g.chance(0.03) else ()
    return (g.case(b"SINTERCARD"), number, *keys, *words, *more)


def drawn_count(g, negative):
    if g.chance(0.04):
        return g.one(NO_COUNTS + (b"-9223372036854775808",))
    return g.one((b"-1", b"-7", b"-100")) if negative and g.chance(0.3) else g.one(COUNTS)


def drawn_by_script(g, name, any_key):
    """SPOP, SRANDMEMBER, ZRANDMEMBER or HRANDFIELD, in a script that checks the reply."""
    if g.chance(0.3):
        return (b"EVAL", DRAWN_ONE, b"1", any_key(g), name)
    return (b"EVAL", DRAWN, b"1", any_key(g), name, drawn_count(g, name != b"SPOP"))


def members_of_one(g):
    """A command whose reply has at most one member, or the same one several times."""
    name = g.one((b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF", b"SPOP", b"SRANDMEMBER", b"SSCAN"))
    if name in (b"SPOP", b"SRANDMEMBER"):
        counts = (b"0", b"1", b"5") + ((b"-1", b"-3") if name == b"SRANDMEMBER" else (b"-1",))
        count = g.some(counts + NO_COUNTS, 0, 2 if g.chance(0.03) else 1)
        return (g.case(name), one_key(g), *count)
    if name == b"SSCAN":
        return (name, one_key(g), *scan_words(g))
    return (g.case(name), *[one_key(g) for _ in range(1 if name == b"SMEMBERS" else g.number(1, 3))])


def scan_words(g):
    words = [g.one((b"0", b"0", b"0", b"0", b"abc", b""))]
    if g.chance(0.3):
        words += [b"MATCH", g.one((b"*", b"o*", b"?", b"[^o]*", b"-*", b""))]
    if g.chance(0.3):
        words += [b"COUNT", g.one((b"10000", b"10000", b"0", b"-1", b"abc"))]
    return words


def members_by_script(g):
    """A command whose reply has several members, in a script that sorts them."""
    name = g.one((b"SMEMBERS", b"SINTER", b"SUNION", b"SDIFF"))
    keys = [key(g) for _ in range(1 if name == b"SMEMBERS" else g.number(1, 3))]
    return (b"EVAL", SORTED, b"0", name, *keys)


SETS = [add] * 8 + [members_of_one, members_by_script, store, move] * 3 + [intercard, intercard, grow] + [
    lambda g: drawn_by_script(g, b"SPOP", key),
    lambda g: drawn_by_script(g, b"SRANDMEMBER", key),
    lambda g: (g.case(b"SREM"), key(g), *members(g, 5)),
    lambda g: (b"SREM", key(g), *members(g, 5)),
    lambda g: (b"SREM", g.one(LARGE), *[b"%d" % i for i in range(g.number(0, 500), 513)], b"m1"),
    lambda g: (g.case(b"SISMEMBER"), key(g), member(g)),
    lambda g: (b"SMISMEMBER", key(g), *members(g, 4)),
    lambda g: (b"SCARD", key(g)),
    lambda g: (b"TYPE", g.one(KEYS)),
    lambda g: (b"OBJECT", g.one((b"ENCODING", b"ENCODING", b"REFCOUNT")), g.one(KEYS)),
    lambda g: (b"COPY", own_key(g), own_key(g), *g.some((b"REPLACE",), 0, 1)),
    lambda g: (b"RENAME", own_key(g), own_key(g)),
    lambda g: (b"EVAL", AGAIN, b"1", own_key(g), own_key(g), b"0", b"REPLACE"),
    lambda g: (b"PERSIST", g.one(KEYS)),
    lambda g: (b"DEL", g.one(KEYS)),
]
# Their replies have the members in any order; so they are not for transactions and scripts.
UNORDERED = [
    lambda g: (b"SMEMBERS", key(g)),
    lambda g: (combined_name(g), *[key(g) for _ in range(g.number(1, 3))]),
    lambda g: (b"SRANDMEMBER", key(g), b"100000"),
    lambda g: (b"SRANDMEMBER", key(g), *g.some((b"1", b"-3", b"2", b"-100"), 0, 1)),
    lambda g: (b"SPOP", key(g), b"100000"),
    lambda g: (b"SSCAN", key(g), b"0", b"COUNT", b"100000", *g.one(((), (b"MATCH", b"*1*")))),
]


def drawn(g):
    """Takes random members, and then the rest, of which each server has another one."""
    chosen = own_key(g)
    count = g.some((b"1", b"2", b"5", b"300"), 0, 1)
    return [(b"SPOP", chosen, *count), (b"SCARD", chosen), (b"DEL", chosen)]


GETKEYS_OF_SETS = (b"SADD s a", b"SINTERCARD 2 a b LIMIT 1", b"SINTERCARD 3 a b", b"SUNIONSTORE t a b",
                   b"SMOVE a b m", b"SDIFF a b c", b"SPOP s 2", b"SSCAN s 0")
