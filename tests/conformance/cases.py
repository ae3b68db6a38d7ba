"""The one table of cases: what is said to a server, and what it answers, whichever it is.

A step is a command and the reply. In commands and replies @k stands for a key of the case, of which all
have one hash tag, T(@k) for its token key, and L(@k,@l) for the key of the lease @l whose first key is @k.
`~` before a command: it is given again until it has that reply. LISTEN key begins to listen to the key's
events; HEARD key tells those that came since. LISTED key: the key's row of LOCKS LIST.
"""
import dataclasses

from expected import Error, Event, Token, Within, exclusive, holder, info, left_of, row

NATIVE, EVAL, LUA, REDIS, CLUSTER = TARGETS = ("native", "eval", "lua", "redis", "cluster")
BY_LUA = (LUA, REDIS, CLUSTER)         # where the scripts themselves do it
BY_SCRIPT = (EVAL, LUA, REDIS, CLUSTER)
ALONE = (NATIVE, EVAL, REDIS, CLUSTER)  # where what a script does has no events of Holdfast beside it
T = Token
TTL = 60_000
LEFT = left_of(TTL)
FOR_EVER = -1
WRONG_TYPE = Error("WRONGTYPE Operation against a key holding the wrong kind of value")
TOO_FAR = Error("ERR token is further ahead than max-token-lead allows")
SYNTAX = Error("ERR syntax error")
OWNER_BYTES = Error("ERR owner must be 1 to 512 bytes")
ID_BYTES = Error("ERR id must be 1 to 512 bytes")
EXPIRED = Error("EXPIRED the lease has expired")
CANCELLED = Error("CANCELLED the lease was cancelled")
CONFIRMED = Error("CONFIRMED the lease is confirmed")
NO_LEASE = Error("NOLEASE no such lease")
MAX = 2**53 - 1
LONGEST = Within(MAX - 2 * 10**12, MAX)  # the scripts let none end after that time of the clock
# As the lock libraries release: compare and delete.
COMPARE_AND_DELETE = """if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0"""


def arity(command):
    return Error(f"ERR wrong number of arguments for '{command}' command")


def outside(name, lowest, highest):
    return Error(f"ERR {name} must be an integer from {lowest} to {highest}")


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    steps: tuple
    targets: tuple = TARGETS


CASES = []


def case(name, *steps, on=TARGETS):
    CASES.append(Case(name, steps, on))


case("a lock is granted to one owner, with a token",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("LOCK @k bob 60000", None), ("GET @k", "alice"),
     ("PTTL @k", LEFT), ("UNLOCK @k bob", -1), ("UNLOCK @k alice", 1), ("UNLOCK @k alice", 0),
     ("EXISTS @k", 0), ("LOCK @k bob 60000", ["bob", T("k2")]))
case("a repeat by the holder keeps the token and sets the time anew",
     ("LOCK @k alice 120000", ["alice", T("k1")]), ("LOCK @k alice 60000", ["alice", T("k1")]),
     ("PTTL @k", LEFT), ("LOCK @k alice 0", ["alice", T("k1")]), ("PTTL @k", FOR_EVER),
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("PTTL @k", LEFT))
case("a ttl of 0 is until released",
     ("LOCK @k alice 0", ["alice", T("k1")]), ("PTTL @k", FOR_EVER), ("LOCK @k bob 1", None),
     ("RENEW @k alice", 1), ("PTTL @k", FOR_EVER), ("UNLOCK @k alice", 1))
case("the longest ttl there is",
     (f"LOCK @k alice {MAX}", ["alice", T("k1")]), ("PTTL @k", LONGEST),
     (f"LOCK @s alice {MAX} SHARED", ["alice", T("s1")]), ("PTTL @s", LONGEST),
     (f"RENEW @s alice {MAX}", 1), ("UNLOCK @s alice", 1))
case("an owner has its end, then the next comes",
     ("LOCK @k alice 30", ["alice", T("k1")]), ("~LOCK @k bob 60000", ["bob", T("k2")]),
     ("UNLOCK @k alice", -1), ("RENEW @k alice", -1), ("FENCE @k alice 1", -1), ("GET @k", "bob"))
case("what has expired is held by nobody",
     ("LOCK @k alice 30", ["alice", T("k1")]), ("~EXISTS @k", 0), ("RENEW @k alice", 0),
     ("UNLOCK @k alice", 0), ("FENCE @k alice 1", 0), ("LOCKS INFO @k", None), ("LOCKS BREAK @k", 0),
     ("LOCK @k alice 60000", ["alice", T("k2")]))
case("RENEW sets the time anew, for the ttl last given",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("RENEW @k alice", 1), ("PTTL @k", LEFT),
     ("RENEW @k alice 120000", 1), ("RENEW @k alice", 1), ("PTTL @k", left_of(120000)),
     ("RENEW @k bob", -1), ("PTTL @k", left_of(120000)), ("RENEW @k alice 0", 1),
     ("PTTL @k", FOR_EVER), ("LOCK @k alice 60000", ["alice", T("k1")]))
case("RENEW goes by the ttl that the owner gave, whatever another program did to the key meanwhile",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("PEXPIRE @k 1000000", 1), ("RENEW @k alice", 1),
     ("PTTL @k", LEFT), ("PEXPIRE @k 1000", 1), ("RENEW @k alice", 1), ("PTTL @k", left_of(60000)),
     on=BY_LUA)  # to Holdfast, PEXPIRE gives a ttl, too
case("RENEW may bring the end nearer",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("RENEW @k alice 30", 1),
     ("~LOCK @k bob 60000", ["bob", T("k2")]))

case("readers hold it together, a writer waits outside",
     ("LOCK @k alice 60000 SHARED", ["alice", T("k1")]), ("LOCK @k bob 60000 shared", ["bob", T("k2")]),
     ("LOCK @k carol 60000", None), ("GET @k", WRONG_TYPE), ("UNLOCK @k carol", -1),
     ("RENEW @k carol", -1), ("UNLOCK @k alice", 1), ("LOCK @k carol 60000", None), ("UNLOCK @k bob", 1),
     ("EXISTS @k", 0), ("LOCK @k carol 60000", ["carol", T("k3")]), ("LOCK @k bob 60000 SHARED", None))
case("a counted lock admits its number",
     ("LOCK @k a 60000 LIMIT 2", ["a", T("k1")]), ("LOCK @k b 60000 LIMIT 2", ["b", T("k2")]),
     ("LOCK @k c 60000 LIMIT 2", None), ("LOCK @k c 60000 LIMIT 3", None), ("LOCK @k c 60000 SHARED", None),
     ("UNLOCK @k a", 1), ("LOCK @k c 60000 LIMIT 3", ["c", T("k3")]), ("LOCK @k d 60000 LIMIT 3", None),
     ("UNLOCK @k b", 1), ("LOCK @k d 60000 SHARED", ["d", T("k4")]),
     ("LOCK @k e 60000 LIMIT 3", ["e", T("k5")]), ("LOCK @k f 60000 SHARED", None))
case("LIMIT 1 is exclusive",
     ("LOCK @k a 60000 LIMIT 1", ["a", T("k1")]), ("GET @k", "a"), ("LOCK @k b 60000 SHARED", None),
     ("LOCK @k a 60000", ["a", T("k1")]))
case("a sole reader becomes the writer, with a new token; among others it does not",
     ("LOCK @k a 60000 SHARED", ["a", T("k1")]), ("LOCK @k b 60000 SHARED", ["b", T("k2")]),
     ("LOCK @k a 60000", None), ("UNLOCK @k b", 1), ("LOCK @k a 60000", ["a", T("k3")]), ("GET @k", "a"),
     ("LOCK @k b 60000 SHARED", None))
case("a writer becomes a reader, with its token, and others come in",
     ("LOCK @k a 60000", ["a", T("k1")]), ("LOCK @k a 120000 SHARED", ["a", T("k1")]),
     ("PTTL @k", left_of(120000)), ("LOCK @k b 60000 SHARED", ["b", T("k2")]), ("UNLOCK @k a", 1),
     ("UNLOCK @k b", 1), ("EXISTS @k", 0))
case("another capacity: a larger one keeps the token, a smaller one is a new grant",
     ("LOCK @k a 60000 LIMIT 2", ["a", T("k1")]), ("LOCK @k a 60000 LIMIT 4", ["a", T("k1")]),
     ("LOCK @k b 60000 LIMIT 4", ["b", T("k2")]), ("LOCK @k a 60000 LIMIT 3", ["a", T("k3")]),
     ("LOCK @k c 60000 LIMIT 4", ["c", T("k4")]), ("LOCK @k c 60000 LIMIT 2", None),
     ("LOCK @k d 60000 LIMIT 4", None), ("LOCK @k a 60000 SHARED", ["a", T("k3")]),
     ("LOCK @k d 60000 LIMIT 4", ["d", T("k5")]))
case("each reader has an end of its own, and the key that of the last",
     ("LOCK @k a 30 SHARED", ["a", T("k1")]), ("LOCK @k b 60000 SHARED", ["b", T("k2")]),
     ("PTTL @k", LEFT), ("~LOCK @k b 60000", ["b", T("k3")]), ("UNLOCK @k a", -1), ("UNLOCK @k b", 1))
case("a reader who stays for ever keeps the key for ever, and no longer than itself",
     ("LOCK @k a 0 SHARED", ["a", T("k1")]), ("LOCK @k b 60000 SHARED", ["b", T("k2")]),
     ("PTTL @k", FOR_EVER), ("UNLOCK @k a", 1), ("PTTL @k", LEFT), ("RENEW @k b 0", 1),
     ("PTTL @k", FOR_EVER), ("RENEW @k b 60000", 1), ("PTTL @k", LEFT))
case("a reader whose hold has expired acquires the lock again, beside another one",
     ("LOCK @k a 30 SHARED", ["a", T("k1")]), ("LOCK @k b 60000 SHARED", ["b", T("k2")]),
     ("~LISTED @k", row("@k", "shared", 1, "k2", LEFT, "b")),
     ("LOCK @k a 60000 SHARED", ["a", T("k3")]), ("LISTED @k", row("@k", "shared", 2, "k3", LEFT, "b")),
     ("UNLOCK @k b", 1), ("UNLOCK @k a", 1), ("UNLOCK @k a", 0))
case("the key of readers is gone when all have expired",
     ("LOCK @k a 30 SHARED", ["a", T("k1")]), ("LOCK @k b 30 LIMIT 7", ["b", T("k2")]), ("~EXISTS @k", 0),
     ("UNLOCK @k a", 0), ("LOCK @k c 60000", ["c", T("k3")]))
case("a place that has expired is free for the next",
     ("LOCK @k a 30 LIMIT 2", ["a", T("k1")]), ("LOCK @k b 60000 LIMIT 2", ["b", T("k2")]),
     ("~LOCK @k c 60000 LIMIT 2", ["c", T("k3")]), ("LOCK @k d 60000 LIMIT 2", None), ("RENEW @k a", -1))
case("RENEW of a reader concerns no other",
     ("LOCK @k a 60000 SHARED", ["a", T("k1")]), ("LOCK @k b 90000 SHARED", ["b", T("k2")]),
     ("RENEW @k a 200000", 1), ("RENEW @k a", 1),
     ("LOCKS INFO @k", info("@k", "shared", 0, holder("a", "k1", left_of(200000)),
                            holder("b", "k2", left_of(90000)))))

case("LOCKS INFO of an exclusive lock",
     ("LOCKS INFO @k", None), ("LOCK @k alice 60000", ["alice", T("k1")]),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("alice", "k1", LEFT))), ("RENEW @k alice 0", 1),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("alice", "k1", FOR_EVER))))
case("LOCKS INFO of readers and counted holds: in the order of their tokens",
     ("LOCK @k z 60000 SHARED", ["z", T("k1")]), ("LOCK @k y 0 LIMIT 5", ["y", T("k2")]),
     ("LOCK @k a 60000 LIMIT 4", ["a", T("k3")]),
     ("LOCKS INFO @k", info("@k", "limit", 4, holder("z", "k1", LEFT),
                            holder("y", "k2", FOR_EVER, "limit", 5), holder("a", "k3", LEFT, "limit", 4))))
case("NOTE: LOCKS INFO and LOCKS LIST show it; a repeat without it keeps it, one with it replaces it",
     ("LOCK @k alice 60000 NOTE 'nightly report'", ["alice", T("k1")]),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("alice", "k1", LEFT, note="nightly report"))),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "alice", "nightly report")),
     ("LOCK @k alice 60000", ["alice", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "alice", "nightly report")),
     ("RENEW @k alice 60000", 1), ("LOCK @k alice 60000 note second", ["alice", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "alice", "second")),
     ("LOCK @k alice 60000 NOTE ''", ["alice", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "alice", "")))
case("NOTE: the notes of several holders, and what changes their holds",
     ("LOCK @k a 60000 SHARED NOTE first", ["a", T("k1")]), ("LOCK @k b 60000 SHARED", ["b", T("k2")]),
     ("LOCK @k c 0 NOTE third SHARED", ["c", T("k3")]), ("RENEW @k a 60000", 1),
     ("LOCKS INFO @k", info("@k", "shared", 0, holder("a", "k1", LEFT, note="first"),
                            holder("b", "k2", LEFT), holder("c", "k3", FOR_EVER, note="third"))),
     ("UNLOCK @k b", 1), ("FENCE @k a {clock+60}", T("k4")), ("UNLOCK @k c", 1),
     ("LISTED @k", row("@k", "shared", 1, "k4", LEFT, "a", "first")),
     ("LOCK @k a 60000 LIMIT 2", ["a", T("k5")]),
     ("LISTED @k", row("@k", "limit", 1, "k5", LEFT, "a", "first")),
     ("LOCK @k a 60000", ["a", T("k6")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k6", LEFT, "a", "first")),
     ("LOCK @k a 60000 SHARED", ["a", T("k6")]),
     ("LISTED @k", row("@k", "shared", 1, "k6", LEFT, "a", "first")))
case("NOTE: a later hold of the same owner does not have it",
     ("LOCK @k a 60000 NOTE why", ["a", T("k1")]), ("UNLOCK @k a", 1), ("LOCK @k a 60000", ["a", T("k2")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k2", LEFT, "a")), ("LOCKS BREAK @k", 1),
     ("LOCK @k a 60000 SHARED NOTE why", ["a", T("k3")]), ("LOCKS BREAK @k", 1),
     ("LOCK @k a 30 SHARED NOTE why", ["a", T("k4")]), ("~EXISTS @k", 0),
     ("LOCK @k a 60000 SHARED", ["a", T("k5")]), ("LISTED @k", row("@k", "shared", 1, "k5", LEFT, "a")),
     ("DEL @k", 1), ("SET @k a PX 60000", "OK"),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("a", "k6", LEFT))))
case("NOTE has any bytes, at most 256: before, at and after",
     (("LOCK", "@k", "a", 60000, "NOTE", b"\x00\r\n \xff"), ["a", T("k1")]),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("a", "k1", LEFT, note=b"\x00\r\n \xff"))),
     *((("LOCK", "@k", "a", 60000, "NOTE", "n" * n), ["a", T("k1")]) for n in (255, 256)),
     (("LOCK", "@k", "a", 60000, "NOTE", "n" * 257), Error("ERR NOTE must be at most 256 bytes")),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "a", "n" * 256)),
     ("LOCK @k a 60000 NOTE", SYNTAX), ("LOCK @k a 60000 NOTE a NOTE a", SYNTAX),
     ("LOCK @k a 60000 NOTE '' NOTE ''", SYNTAX))
case("NOTE: the word behind it is its text, whatever it is",
     ("LOCK @k a 60000 NOTE SHARED", ["a", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "a", "SHARED")))
case("NOTE: with LEFT",
     ("LOCK @k a 60000 NOTE LEFT", ["a", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT, "a", "LEFT")),
     ("LOCK @k b 60000 NOTE NOTE LEFT", LEFT), ("LOCK @k b 60000 LEFT NOTE LEFT", LEFT), on=BY_SCRIPT)
case("NOTE: the token key has it as long as the hold, and only the hold with its token",
     ("LOCK @s a 0 SHARED NOTE why", ["a", T("s1")]), ("PTTL T(@s)", FOR_EVER),
     ("LOCK @s b 60000 SHARED NOTE why", ["b", T("s2")]), ("UNLOCK @s a", 1), ("HLEN T(@s)", 3),
     ("PTTL T(@s)", left_of(86400000 + 60000)), ("RENEW @s b 120000", 1),
     ("PTTL T(@s)", left_of(86400000 + 120000)), ("UNLOCK @s b", 1), ("HLEN T(@s)", 2),
     ("HSET T(@s) n:c '7 of an earlier hold' n:d 'not a note'", 2),
     ("LOCK @s c 60000 SHARED", ["c", T("s3")]), ("LISTED @s", row("@s", "shared", 1, "s3", LEFT, "c")),
     ("HLEN T(@s)", 2), on=BY_LUA)

case("LOCKS BREAK ends all holds",
     ("LOCKS BREAK @k", 0), ("LOCK @k a 60000", ["a", T("k1")]), ("LOCKS BREAK @k", 1), ("EXISTS @k", 0),
     ("LOCK @k a 60000 SHARED", ["a", T("k2")]), ("LOCK @k b 0 SHARED", ["b", T("k3")]),
     ("LOCKS BREAK @k", 2), ("EXISTS @k", 0), ("LOCK @k a 60000", ["a", T("k4")]))

case("LOCKS LIST: a row of each lock, of whatever mode",
     ("LISTED @k", None), ("LOCK @k alice 60000", ["alice", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT)), ("RENEW @k alice 0", 1),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", FOR_EVER)), ("UNLOCK @k alice", 1), ("LISTED @k", None),
     ("LOCK @k a 30000 SHARED", ["a", T("k2")]), ("LOCK @k b 60000 SHARED", ["b", T("k3")]),
     ("LISTED @k", row("@k", "shared", 2, "k3", left_of(60000), "a")),
     ("LOCK @k c 60000 LIMIT 4", ["c", T("k4")]), ("LISTED @k", row("@k", "limit", 3, "k4", LEFT)),
     ("RENEW @k a 0", 1), ("LISTED @k", row("@k", "limit", 3, "k4", FOR_EVER)))
case("LOCKS LIST: what has expired, and what is no lock, is not there",
     ("LOCK @k a 30", ["a", T("k1")]), ("~LISTED @k", None), ("LOCK @s a 30 SHARED", ["a", T("s1")]),
     ("LOCK @s b 60000 SHARED", ["b", T("s2")]), ("~LISTED @s", row("@s", "shared", 1, "s2", LEFT)),
     ("HSET @h f v", 1), ("LISTED @h", None), ("LISTED T(@k)", None))
case("LOCKS LIST: a string is the lock of its value, and nothing is written for it",
     ("SET @k tom PX 60000", "OK"), ("LISTED @k", row("@k", "exclusive", 1, None, LEFT)),
     ("EXISTS T(@k)", 0), ("LOCK @k tom 60000", ["tom", T("k1")]),
     ("LISTED @k", row("@k", "exclusive", 1, "k1", LEFT)), ("SET @k other", "OK"),
     ("LISTED @k", row("@k", "exclusive", 1, None, FOR_EVER)))
case("LOCKS REVOKE asks the holders, and takes nothing away",
     ("LISTEN @k", None), ("LOCKS REVOKE @k", 0), ("HEARD @k", []), ("LOCK @k a 60000", ["a", T("k1")]),
     ("LOCKS REVOKE @k", 1), ("LOCK @k a 60000", ["a", T("k1")]), ("UNLOCK @k a", 1),
     ("LOCK @k b 60000 SHARED", ["b", T("k2")]), ("LOCK @k c 60000 SHARED", ["c", T("k3")]),
     ("LOCKS REVOKE @k", 2), ("LOCKS BREAK @k", 2), ("LOCKS REVOKE @k", 0),
     ("HEARD @k", [Event("granted a {k1}"), Event("revoke"), Event("released a"), Event("granted b {k2}"),
                   Event("granted c {k3}"), Event("revoke"), Event("broken b"), Event("broken c")]),
     ("LOCK @x a 30 SHARED", ["a", T("x1")]), ("LOCK @x b 60000 SHARED", ["b", T("x2")]),
     ("~LOCKS REVOKE @x", 1), ("SET @s tom", "OK"), ("LOCKS REVOKE @s", 1), on=ALONE)

case("a lock that was broken is over, also for its owner",
     ("LOCK @k a 0", ["a", T("k1")]), ("LOCKS BREAK @k", 1), ("RENEW @k a", 0), ("UNLOCK @k a", 0),
     ("SET @k a NX PX 60000", "OK"), ("LOCK @k a 60000", ["a", T("k2")]))
case("a lock of SET NX PX excludes, and is excluded",
     ("SET @k tom NX PX 60000", "OK"), ("LOCK @k alice 60000", None), ("LOCK @k alice 60000 SHARED", None),
     ("UNLOCK @k alice", -1), (("EVAL", COMPARE_AND_DELETE, 1, "@k", "tom"), 1),
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("SET @k tom NX PX 60000", None),
     (("EVAL", COMPARE_AND_DELETE, 1, "@k", "tom"), 0), (("EVAL", COMPARE_AND_DELETE, 1, "@k", "alice"), 1),
     ("LOCK @k bob 60000", ["bob", T("k2")]))
case("a lock of SET NX PX is renewed and released as any other",
     ("SET @k tom NX PX 60000", "OK"), ("RENEW @k tom 120000", 1), ("PTTL @k", left_of(120000)),
     ("RENEW @k tom", 1), ("PTTL @k", left_of(120000)), ("LOCK @k tom 60000", ["tom", T("k1")]),
     ("UNLOCK @k tom", 1), ("EXISTS @k", 0))
case("a lock of SET NX PX has a token when one asks for it, always the same",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("DEL @k", 1), ("SET @k tom NX PX 60000", "OK"),
     ("LOCKS INFO @k", info("@k", "exclusive", 1, exclusive("tom", "k2", LEFT))),
     ("LOCK @k tom 60000", ["tom", T("k2")]), ("FENCE @k tom 1", T("k2")), ("UNLOCK @k tom", 1),
     ("LOCK @k bob 60000", ["bob", T("k3")]))
case("a lock of SET NX PX is no earlier one of the same owner, that was released or has expired",
     ("LOCK @k tom 60000", ["tom", T("k1")]), ("UNLOCK @k tom", 1), ("SET @k tom NX PX 60000", "OK"),
     ("LOCK @k tom 30", ["tom", T("k2")]), ("~EXISTS @k", 0), ("SET @k tom NX PX 60000", "OK"),
     ("LOCK @k tom 60000", ["tom", T("k3")]))
case("a lock that was overwritten is its new owner's",
     ("LOCK @k alice 60000", ["alice", T("k1")]), ("SET @k tom PX 60000", "OK"), ("UNLOCK @k alice", -1),
     ("LOCK @k tom 60000", ["tom", T("k2")]), ("LOCK @k alice 60000", None))
case("readers are ended by DEL",
     ("LOCK @k a 60000 SHARED", ["a", T("k1")]), ("DEL @k", 1), ("UNLOCK @k a", 0),
     ("LOCK @k b 60000", ["b", T("k2")]))
case("an owner who comes back after others has a new token",
     ("LOCK @k a 30", ["a", T("k1")]), ("~LOCK @k b 60000", ["b", T("k2")]), ("UNLOCK @k b", 1),
     ("LOCK @k a 60000", ["a", T("k3")]))

case("FENCE raises the token of a hold, and all after it",
     ("LOCK @k a 60000", ["a", T("k1")]), ("FENCE @k a 0", T("k1")), ("FENCE @k b 1", -1),
     ("FENCE @none a 1", 0), ("FENCE @k a {clock+3600}", T("k2")), ("LOCK @k a 60000", ["a", T("k2")]),
     ("UNLOCK @k a", 1), ("LOCK @k b 60000", ["b", T("k3")]), ("LOCK @k b 60000 SHARED", ["b", T("k3")]),
     ("LOCK @k c 60000 SHARED", ["c", T("k4")]), ("FENCE @k b {clock+7200}", T("k5")),
     ("FENCE @k c 5", T("k4")), ("LOCK @k d 60000 SHARED", ["d", T("k6")]))
case("a raised token counts also where the lock was deleted by other means",
     ("LOCK @k a 60000", ["a", T("k1")]), ("FENCE @k a {clock+3600}", T("k2")), ("DEL @k", 1),
     ("LOCK @k b 60000 SHARED", ["b", T("k3")]), ("FENCE @k b {clock+7200}", T("k4")), ("DEL @k", 1),
     ("LOCK @k c 60000", ["c", T("k5")]))
case("a token that the client names: taken if larger, refused where too far ahead",
     ("LOCK @k a 60000 TOKEN {clock+3600}", ["a", T("k1")]),
     ("LOCK @k a 60000 TOKEN {clock+7200}", ["a", T("k1")]), ("UNLOCK @k a", 1),
     ("LOCK @k b 60000 TOKEN 5", ["b", T("k2")]), ("LOCKS BREAK @k", 1),
     ("LOCK @k c 60000 SHARED TOKEN {clock+7200}", ["c", T("k3")]),
     ("LOCK @k d 60000 SHARED TOKEN {clock+100000}", TOO_FAR), ("LOCK @k d 60000 SHARED", ["d", T("k4")]),
     (f"LOCK @x d 60000 TOKEN {MAX}", TOO_FAR), (f"FENCE @k c {MAX}", TOO_FAR),
     ("LOCK @x d 60000 TOKEN 0", ["d", T("x1")]))

case("a wrong number of arguments",
     ("LOCK", arity("lock")), ("LOCK @k", arity("lock")), ("LOCK @k a", arity("lock")),
     ("RENEW @k", arity("renew")), ("RENEW @k a 1 1", arity("renew")), ("UNLOCK @k", arity("unlock")),
     ("UNLOCK @k a b", arity("unlock")), ("FENCE @k a", arity("fence")), ("FENCE @k a 1 1", arity("fence")),
     ("LOCKS INFO", arity("locks|info")), ("LOCKS INFO @k a", arity("locks|info")),
     ("LOCKS BREAK", arity("locks|break")), ("LOCKS BREAK @k a", arity("locks|break")),
     ("LOCKS REVOKE", arity("locks|revoke")), ("LOCKS REVOKE @k a", arity("locks|revoke")),
     ("EXISTS @k", 0))
case("a ttl is an integer from 0 to 2^53-1: before, at and after both ends",
     *((f"LOCK @k a {bad}", outside("ttl", 0, MAX)) for bad in
       (-1, MAX + 1, "1e3", "01", "+1", "x", "0x10", "1.0", 10**30)),
     ("LOCK @k a ''", outside("ttl", 0, MAX)), ("LOCK @k a ' 1'", outside("ttl", 0, MAX)),
     ("EXISTS @k", 0), (f"LOCK @k a {MAX}", ["a", T("k1")]), ("RENEW @k a -1", outside("ttl", 0, MAX)),
     (f"RENEW @k a {MAX + 1}", outside("ttl", 0, MAX)), ("RENEW @none a x", outside("ttl", 0, MAX)),
     ("FENCE @k a -1", outside("token", 0, MAX)), (f"FENCE @k a {MAX + 1}", outside("token", 0, MAX)))
case("an owner has 1 to 512 bytes: before, at and after",
     ("LOCK @k '' 60000", OWNER_BYTES), (("LOCK", "@k", "o" * 513, 60000), OWNER_BYTES),
     (("LOCK", "@k", "o" * 512, 60000), ["o" * 512, T("k1")]), ("UNLOCK @k ''", -1),
     (("UNLOCK", "@k", "o" * 512), 1), ("LOCK @k o 60000", ["o", T("k2")]))
case("bad options change nothing",
     ("LOCK @k a 1 SHARED SHARED", SYNTAX), ("LOCK @k a 1 SHARED LIMIT 2", SYNTAX),
     ("LOCK @k a 1 LIMIT 2 SHARED", SYNTAX), ("LOCK @k a 1 LIMIT", SYNTAX), ("LOCK @k a 1 TOKEN", SYNTAX),
     ("LOCK @k a 1 LIMIT 2 LIMIT 2", SYNTAX), ("LOCK @k a 1 TOKEN 2 TOKEN 2", SYNTAX),
     ("LOCK @k a 1 NX", SYNTAX), ("LOCK @k a 1 LIMIT 0", outside("LIMIT", 1, 2**31 - 1)),
     (f"LOCK @k a 1 LIMIT {2**31}", outside("LIMIT", 1, 2**31 - 1)),
     ("LOCK @k a 1 TOKEN -1", outside("TOKEN", 0, MAX)), ("EXISTS @k", 0),
     (f"LOCK @k a 60000 LIMIT {2**31 - 1}", ["a", T("k1")]))
case("a key of another type",
     ("HSET @k f v", 1), ("LOCK @k a 1", WRONG_TYPE), ("LOCK @k a 1 SHARED", WRONG_TYPE),
     ("RENEW @k a", WRONG_TYPE), ("UNLOCK @k a", WRONG_TYPE), ("FENCE @k a 1", WRONG_TYPE),
     ("LOCKS INFO @k", WRONG_TYPE), ("LOCKS BREAK @k", 0), ("LOCKS REVOKE @k", 0), ("LISTED @k", None),
     ("HGETALL @k", ["f", "v"]))
case("keys and owners are binary safe",
     (("LOCK", b"@k\x00\r\n\xff", b"o\x00\r\n\xff", 60000), [b"o\x00\r\n\xff", T("k1")]),
     (("LOCK", b"@k\x00\r\n\xff", b"o\x00", 60000), None), (("GET", b"@k\x00\r\n\xff"), b"o\x00\r\n\xff"),
     (("LOCKS", "INFO", b"@k\x00\r\n\xff"),
      info(b"@k\x00\r\n\xff", "exclusive", 1, exclusive(b"o\x00\r\n\xff", "k1", LEFT))),
     (("UNLOCK", b"@k\x00\r\n\xff", b"o\x00\r\n\xff"), 1),
     (("LOCK", b"@s", b"o: \x00\r\n\xff", 60000, "SHARED"), [b"o: \x00\r\n\xff", T("s1")]),
     (("LOCK", b"@s", b"holdfast:lock", 60000, "SHARED"), [b"holdfast:lock", T("s2")]),
     (("RENEW", b"@s", b"o: \x00\r\n\xff"), 1), (("UNLOCK", b"@s", b"o: \x00\r\n\xff"), 1),
     (("UNLOCK", b"@s", b"holdfast:lock"), 1), ("EXISTS @s", 0))
TAGGED = (b"plain @", b"{tag @}k", b"x{tag @}y{z}", b"{@", b"a{b{c @}d", b"{tag @}")
case("keys with and without a hash tag of their own",
     *(step for i, key in enumerate(TAGGED)
       for step in ((("LOCK", key, "a", 60000), ["a", T("abcdef"[i] + "1")]),
                    (("LOCK", key, "b", 60000), None), (("UNLOCK", key, "a"), 1),
                    (("LOCK", key, "b", 60000, "SHARED"), ["b", T("abcdef"[i] + "2")]))))

case("keys whose token key is in another slot: on one server only",
     (("LOCK", b"x} @", "a", 60000), ["a", T("a1")]), (("LOCK", b"x} @", "b", 60000), None),
     (("LOCK", b"", "a", 60000), ["a", T("b1")]), (("UNLOCK", b"", "a"), 1),
     on=(NATIVE, EVAL, LUA, REDIS))
case("the events of a key",
     ("LISTEN @k", None), ("LOCK @k a 60000", ["a", T("k1")]), ("LOCK @k b 60000", None),
     ("LOCK @k a 60000", ["a", T("k1")]), ("RENEW @k a 120000", 1), ("UNLOCK @k a", 1), ("UNLOCK @k a", 0),
     ("HEARD @k", [Event("granted a {k1}"), Event("released a")]),
     ("LOCK @k a 60000 SHARED", ["a", T("k2")]), ("LOCK @k b 60000 SHARED", ["b", T("k3")]),
     ("UNLOCK @k a", 1), ("LOCK @k b 60000", ["b", T("k4")]), ("LOCKS BREAK @k", 1),
     ("HEARD @k", [Event("granted a {k2}"), Event("granted b {k3}"), Event("released a"),
                   Event("granted b {k4}"), Event("broken b")]), on=ALONE)
case("what Redis's own clients do not hear of otherwise: an end that has come nearer, a place more",
     ("LISTEN @k", None), ("LOCK @k a 60000", ["a", T("k1")]), ("RENEW @k a 30000", 1),
     ("RENEW @k a 90000", 1), ("LOCK @k a 90000 SHARED", ["a", T("k1")]), ("RENEW @k a 1000", 1),
     ("HEARD @k", [Event("granted a {k1}"), Event("renewed a"), Event("granted a {k1}"),
                   Event("renewed a")]), on=(REDIS, CLUSTER))
case("an end that has come nearer by another LOCK of the holder is told, too",
     ("LISTEN @k", None), ("LOCK @k a 0", ["a", T("k1")]), ("LOCK @k a 90000", ["a", T("k1")]),
     ("LOCK @k a 30000", ["a", T("k1")]), ("LOCK @k a 60000", ["a", T("k1")]),
     ("LOCK @k a 30000 SHARED", ["a", T("k1")]), ("LOCK @k a 60000", ["a", T("k2")]),
     ("LOCK @k a 30000 SHARED", ["a", T("k2")]), ("LOCK @k a 10000 SHARED", ["a", T("k2")]),
     ("HEARD @k", [Event("granted a {k1}"), Event("renewed a"), Event("renewed a"), Event("granted a {k1}"),
                   Event("renewed a"), Event("granted a {k2}"), Event("granted a {k2}"), Event("renewed a"),
                   Event("renewed a")]), on=(REDIS, CLUSTER))
case("LEFT: how long the refused will have to wait",
     ("LOCK @k a 60000 LEFT", ["a", T("k1")]), ("LOCK @k b 60000 left", LEFT), ("LOCK @k b 60000", None),
     ("RENEW @k a 0", 1), ("LOCK @k b 60000 SHARED LEFT", -1), ("LOCK @k b 60000 LEFT LEFT", SYNTAX),
     ("LOCK @s a 0 LIMIT 2", ["a", T("s1")]), ("LOCK @s b 60000 LIMIT 2 LEFT", ["b", T("s2")]),
     ("LOCK @s c 90000 LEFT LIMIT 2", LEFT), on=BY_SCRIPT)
STAR = "* is not possible on Redis: choose a unique name"
case("options that only Holdfast has are named as such",
     *((f"LOCK @k a 60000 {option}", Error(f"ERR {option.split()[0]} is not possible on Redis: {why}"))
       for option, why in (("WAIT 0", "the client waits, for the events of the key and LEFT"),
                           ("ASYNC", "the client waits, for the events of the key and LEFT"),
                           ("SESSION", "it does not tell scripts of the end of a connection"),
                           ("DELAY 5", "it does not tell scripts of the end of a key"))),
     ("LOCK @k * 60000", Error(f"ERR the owner {STAR}")),
     ("LEASE GRANT * 60000 @k v", Error(f"ERR the id {STAR}")), ("EXISTS @k", 0), on=BY_LUA)
case("on Holdfast the scripts and the commands are one, with all options",
     ("LOCK @k * 60000 SESSION DELAY 5", [..., T("k1")]), ("LOCK @s a 60000 SHARED WAIT 5", ["a", T("s1")]),
     ("TYPE @s", "lock"), ("EXISTS T(@s)", 0), ("LOCK @d a 30 DELAY 60000", ["a", T("d1")]),
     ("~EXISTS @d", 0), ("LOCK @d b 1 LEFT", LEFT), on=(EVAL,))
case("token keys go: not before they must",
     ("LOCK @k a 60000", ["a", T("k1")]), ("PTTL T(@k)", left_of(86400000 + 60000)),
     ("LOCK @k a 0", ["a", T("k1")]), ("PTTL T(@k)", FOR_EVER), ("UNLOCK @k a", 1),
     ("PTTL T(@k)", left_of(86400000)), ("LOCK @k a 60000 TOKEN {clock+3600}", ["a", T("k2")]),
     ("UNLOCK @k a", 1), ("PTTL T(@k)", left_of(86400000 + 3600000)),
     ("LOCK @s a 60000 SHARED", ["a", T("s1")]), ("PTTL T(@s)", left_of(86400000)), on=BY_LUA)
case("without its token key a lock is what it was, and no token goes back",
     ("LOCK @k a 60000", ["a", T("k1")]), ("DEL T(@k)", 1), ("LOCK @k b 60000", None),
     ("LOCK @k a 60000", ["a", T("k2")]), ("DEL T(@k)", 1), ("UNLOCK @k a", 1),
     ("LOCK @k b 60000 SHARED", ["b", T("k3")]), ("DEL T(@k)", 1), ("RENEW @k b", 1),
     ("LOCK @k c 60000 SHARED", ["c", T("k4")]), on=BY_LUA)
case("a hash that is not quite a lock is none",
     ("HSET @a holdfast:lock 1", 1), ("LOCK @a a 1 SHARED", WRONG_TYPE),
     ("HSET @b holdfast:lock 1 o:a 'x'", 2), ("LOCK @b a 1 SHARED", WRONG_TYPE),
     ("HSET @c holdfast:lock 2 o:a '5 4294967295 -1 0 0 0 0 0'", 2), ("UNLOCK @c a", WRONG_TYPE),
     ("HSET @d holdfast:lock 1 o:a '5 4294967295 -1 0 0 0 0 0' f v", 3), ("UNLOCK @d a", WRONG_TYPE),
     ("HSET @e holdfast:lock 1 o:a '5 4294967295 -1 0 0 0 0 0'", 2), ("UNLOCK @e a", 1), on=BY_LUA)
