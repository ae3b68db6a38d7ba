"""Makes random commands of one family: DUMP, RESTORE, FUNCTION and FCALL.

The bytes of a payload are each server's own, so that DUMP is called in scripts that restore its reply. A
library has one function, because Redis lists several in the order of a hash table.
"""
# Payloads of Redis 7.0.15: strings, integers, a compressed string, a hash as a listpack and as a table.
PAYLOADS = (
    b"\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xce", b"\x00\xc0\x0c\n\x00<*\xf8Q\\\x04\xbc\xd5",
    b"\x00\xc1\xc7\xcf\n\x00g\xed\xa26\xb4\xdb&\xd0",
    b"\x00\xc2\xd2\x02\x96I\n\x00\x02\xa4y\xf6\xc2\xd5g\n",
    b"\x00\x00\n\x00]\x9b\\@\x0f\x7f\xa2\xda",
    b"\x00\xc3\t@d\x01aa\xe0W\x00\x01aa\n\x00\xe8\xa3\xb5\x07\xb0m\xf2q",
    b"\x10\x12\x12\x00\x00\x00\x04\x00\x81f\x02\x81v\x02\x81g\x02\x0c\x01\xff"
    b"\n\x00\xde\x139\x93\xf7\x83\x81~",
    b"\x04\x01\x01f\x01v\n\x00\xad\xf2CV\xb1\x86\x0e\xfc",
    b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x0c\x01\x81b\x02\xff"
    b"\n\x00\x8f\xa7\x9c\xb3T\xa8\xc3/",
    b"\x11\x1d\x1d\x00\x00\x00\x06\x00\x81c\x02\x84-inf\x05\x81a\x02\x01\x01\x81b\x02\x832.5\x04\xff"
    b"\n\x009\x923\x9b\xe1\x1f2=",
    b"\x05\x01\x01a\x00\x00\x00\x00\x00\x00\xf8?\n\x00E\xa3\xa8\x8fD\xe9Y\xda")
# A wrong checksum, a newer version, too short, no value.
NO_PAYLOADS = (b"\x00\x01v\n\x00\x91\x08\xce\xb2\x198\x8a\xcf",
               b"\x00\x01v\x0b\x00\x91\x08\xce\xb2\x198\x8a\xce",
               b"", b"x", b"\n\x00]\x9b\\@\x0f\x7f\xa2\xda")
AGAIN = (b"local d = redis.call('dump', KEYS[1]) if not d then return false end "
         b"return redis.call('restore', ARGV[1], ARGV[2], d, unpack(ARGV, 3))")
AGAIN_ALL = b"return redis.call('restore', KEYS[1], 0, redis.call('dump', KEYS[1]), 'REPLACE')"

BODIES = (
    b"redis.register_function('%s', function(keys, args) return {keys, args} end)",
    b"redis.register_function{function_name='%s', callback=function(keys) "
    b"return redis.call('GET', keys[1]) end, flags={'no-writes'}}",
    b"redis.register_function{function_name='%s', callback=function(keys, args) "
    b"return redis.call('SET', keys[1], args[1]) end, flags={'no-writes', 'allow-oom'}, description='d'}",
    b"redis.register_function('%s', function(keys, args) return redis.pcall(unpack(args)) end)",
    b"redis.register_function('%s', function(keys, args) return redis.call(unpack(args)) end)",
    b"redis.register_function('%s', function() x = 1 end)",
    b"redis.register_function('%s', function() return KEYS end)",
    b"redis.register_function('%s', function() error('boom') end)",
    b"local n = 0 redis.register_function('%s', function() n = n + 1 return n end)",
    b"redis.register_function('%s', function() return redis.register_function end)")
NO_BODIES = (
    b"", b"x x", b"redis.call('GET', 'k')", b"x = 1", b"local a = string", b"redis.register_function()",
    b"redis.register_function('f')", b"redis.register_function('f', 1)", b"redis.register_function{}",
    b"redis.register_function{function_name='f', callback=function() end, flags={'no'}}",
    b"redis.register_function('a-b', function() end)", b"redis.register_function{callback=1}",
    b"local a = {} a = a.b.c")
HEADS = (b"#!lua name=%s\n",) * 12 + (b"#!LUA NAME=%s\n", b"#!lua %s\n", b"#!js name=%s\n", b"%s",
                                     b"#!lua name=%s",
                                     b"#!lua name=a-%s\n", b"#!lua name=%s x\n", b"#!lua name=%s name=a\n")
LIBRARIES = (b"l1", b"l2", b"L1")
FUNCTIONS = (b"f1", b"f2", b"F1")


def restore(g):
    payload = g.one(PAYLOADS) if g.chance(0.9) else g.one(NO_PAYLOADS)
    ttl = g.one((b"0", b"0", b"0", b"-1", b"x", b"")) if g.chance(0.8) else g.relative(1000)
    if ttl == b"9223372036854775807":  # see LEFT_OUT
        ttl = b"0"
    words = (b"REPLACE", b"replace", b"FREQ", b"IDLETIME", b"5", b"nope")
    options = g.some(words, 0, 3) if g.chance(0.2) else ()
    replace = (b"REPLACE",) if g.chance(0.6) else ()
    return (g.case(b"RESTORE"), g.key(), ttl, payload, *replace, *options)


def load(g):
    body = g.one(BODIES) % g.one(FUNCTIONS) if g.chance(0.9) else g.one(NO_BODIES)
    replace = (b"REPLACE",) if g.chance(0.5) else ()
    return (b"FUNCTION", g.case(b"LOAD"), *replace, g.one(HEADS) % g.one(LIBRARIES) + body)


def fcall(g):
    name = g.one((b"FCALL", b"FCALL", b"FCALL_RO"))
    count = g.one((b"0", b"1", b"1", b"1", b"2", b"-1", b"x"))
    arguments = g.one(((b"GET", g.key()), (b"SET", g.key(), b"v"), (b"PING",), (b"nosuch",), (b"GET",), ()))
    return (g.case(name), g.one(FUNCTIONS + (b"nosuch",)), count, g.key(), *arguments)


FAMILY = [restore] * 6 + [load] * 4 + [fcall] * 10 + [
    lambda g: (b"EVAL", AGAIN, b"1", g.key(), g.key(), b"0", *g.some((b"REPLACE",), 0, 1)),
    lambda g: (b"EVAL", AGAIN_ALL, b"1", g.key()),
    lambda g: (b"DUMP", b"nosuch"),
    lambda g: (b"DUMP",),
    lambda g: (b"FUNCTION", b"DELETE", g.one(LIBRARIES)),
    lambda g: (b"FUNCTION", b"LIST", b"LIBRARYNAME", g.one((b"l2", b"l2", b"nosuch")),
               *g.some((b"WITHCODE", b"nope"), 0, 1)),
    lambda g: (b"FUNCTION", b"STATS"),
    lambda g: (b"FUNCTION", b"KILL"),
    lambda g: (b"FUNCTION", b"FLUSH", *g.some((b"SYNC", b"ASYNC", b"nope"), 0, 2))
    if g.chance(0.3) else (b"PING",),
    lambda g: (b"FUNCTION", b"RESTORE", g.one(PAYLOADS + NO_PAYLOADS), *g.some((b"FLUSH", b"nope"), 0, 1))
    if g.chance(0.2) else (b"PING",),
    lambda g: (b"FUNCTION", g.one((b"NOSUCH", b"DUMP")), b"x"),
]
