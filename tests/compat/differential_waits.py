"""Makes the commands of clients that wait for elements of lists and sorted sets, and the changes of others
that may serve them."""
from collections import namedtuple

import differential_lists as lists
import differential_sets as sets
import differential_zsets as zsets

# `waiting(g, timeout)` waits if its keys have no element; `few` adds elements, `pop` takes some, and
# `change` is any command of the type. `fills`: a script that adds elements to two keys.
Family = namedtuple("Family", "key waiting few pop change fills")
LISTS = Family(lists.list_key, lists.waiting, lists.push, lists.pop,
               lambda g: g.one(lists.CHANGES + lists.READS)(g),
               b"redis.call('RPUSH', KEYS[1], 'x', 'y') return redis.call('RPUSH', KEYS[2], 'z')")
ZSETS = Family(zsets.wait_key, zsets.waiting, zsets.few, zsets.pop, lambda g: g.one(zsets.ZSETS)(g),
               b"redis.call('ZADD', KEYS[1], 1, 'x', 2, 'y') return redis.call('ZADD', KEYS[2], 3, 'z')")


def replacement(g, key):
    """Gives a key another value or type, takes it away, or changes nothing of it."""
    return g.one((
        lambda: (b"DEL", key(g)), lambda: (b"SET", key(g), b"v"), lambda: (b"HSET", key(g), b"f", b"v"),
        lambda: (b"SADD", key(g), sets.ONLY), lambda: (b"SUNIONSTORE", key(g), g.one(sets.ONE)),
        lambda: (b"SPOP", key(g)), lambda: (b"RPUSH", key(g), b"a", b"b"),
        lambda: (b"COPY", key(g), key(g)),
        lambda: (b"COPY", key(g), key(g), b"REPLACE"), lambda: (b"RENAME", key(g), key(g)),
        lambda: (b"RENAMENX", key(g), key(g)), lambda: (b"PERSIST", key(g)), lambda: (b"FLUSHALL",)))()


def woken(g, family):
    """Changes that may serve clients that wait, and others. A transaction only adds and takes elements:
    Redis serves the keys in the order in which they got their type."""
    luck = g.draw()
    if luck < 0.15:
        steps = [g.one((family.few, family.few, family.pop))(g) for _ in range(g.number(1, 5))]
        return [(b"MULTI",), *steps, (b"EXEC",)]
    if luck < 0.2:
        return [(b"EVAL", family.fills, b"2", family.key(g), family.key(g))]
    if luck < 0.35:
        return [replacement(g, family.key)]
    return [(family.few if luck < 0.7 else family.change)(g)]
