"""The cases of leases; cases.py says what a step is."""
from cases import (ALONE, BY_LUA, CANCELLED, CONFIRMED, EXPIRED, FOR_EVER, ID_BYTES, LEFT, MAX, NO_LEASE, T,
                   Error, Event, arity, case, exclusive, info, left_of, outside)

IN_USE = Error("ERR lease id is in use")

case("a lease puts all its values, with one token",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("GET @a", "x"), ("GET @b", "y"),
     ("PTTL @a", LEFT), ("PTTL @b", LEFT), ("LOCK @a alice 60000", None),
     ("LOCKS INFO @a", info("@a", "exclusive", 1, exclusive("x", "a1", LEFT))),
     ("LEASE CANCEL @l", "OK"), ("EXISTS @a @b", 0), ("LOCK @a alice 60000", ["alice", T("a2")]))
case("a lease puts nothing where a key is taken, and names those",
     ("LOCK @b bob 60000", ["bob", T("b1")]), ("LOCK @d dan 60000 SHARED", ["dan", T("d1")]),
     ("LEASE GRANT @l 60000 @a x @d y @c z @b w", [None, ["@d", "@b"]]), ("EXISTS @a @c", 0),
     ("LEASE CANCEL @l", NO_LEASE), ("UNLOCK @b bob", 1), ("UNLOCK @d dan", 1),
     ("LEASE GRANT @l 60000 @a x @d y @c z @b w", ["@l", T("b2")]))
case("a lease's token is larger than all before of each key",
     ("LOCK @a a 60000 TOKEN {clock+3600}", ["a", T("k1")]),
     ("LOCK @b b 60000 TOKEN {clock+7200}", ["b", T("k2")]), ("DEL @a @b", 2),
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("k3")]), ("LEASE CANCEL @l", "OK"),
     ("LOCK @a a 60000", ["a", T("k4")]))
case("CONFIRM makes the values permanent",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("LEASE CONFIRM @l", T("a1")),
     ("PTTL @a", FOR_EVER), ("PTTL @b", FOR_EVER), ("LEASE CONFIRM @l", CONFIRMED),
     ("LEASE CANCEL @l", CONFIRMED), ("LEASE RENEW @l", CONFIRMED), ("GET @a", "x"),
     ("LOCKS INFO @b", info("@b", "exclusive", 1, exclusive("y", "a1", FOR_EVER))), ("DEL @a", 1),
     ("LEASE GRANT @l 60000 @a z", ["@l", T("a2")]))
case("CANCEL takes the values back",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("LEASE CANCEL @l", "OK"), ("EXISTS @a @b", 0),
     ("LEASE CANCEL @l", CANCELLED), ("LEASE CONFIRM @l", CANCELLED), ("LEASE RENEW @l", CANCELLED))
case("a lease expires, with its keys",
     ("LEASE GRANT @l 30 @a x @b y", ["@l", T("a1")]), ("~EXISTS @a @b", 0), ("LEASE CONFIRM @l", EXPIRED),
     ("LEASE RENEW @l", EXPIRED), ("LEASE CANCEL @l", "OK"), ("LEASE CONFIRM @l", EXPIRED),
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a2")]))
case("an expired lease that nobody has asked for is expired all the same",
     ("LEASE GRANT @l 30 @a x", ["@l", T("a1")]), ("~EXISTS @a", 0), ("LEASE CANCEL @l", "OK"),
     ("LEASE CONFIRM @l", EXPIRED), ("LEASE GRANT @m 30 @a x", ["@m", T("a2")]), ("~EXISTS @a", 0),
     ("LEASE GRANT @m 60000 @a y", ["@m", T("a3")]))
case("what is noted of a value and of its lease goes, the value stays",
     ("LEASE GRANT @l 60000 @a x", ["@l", T("a1")]), ("LEASE CONFIRM @l", T("a1")),
     ("PTTL T(@a)", left_of(86400000)), ("PTTL L(@a,@l)", left_of(86400000)), ("GET @a", "x"), on=BY_LUA)
case("RENEW lets the lease's time start anew",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("LEASE RENEW @l 120000", 1),
     ("PTTL @a", left_of(120000)), ("PEXPIRE @b 1000", 1), ("LEASE RENEW @l", 1),
     ("PTTL @b", left_of(120000)), ("LEASE RENEW @l 30", 1), ("~EXISTS @a @b", 0),
     ("LEASE RENEW @l 60000", EXPIRED))
case("a lease that has lost a key is over when it is asked for, and the rest goes",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("DEL @a", 1), ("GET @b", "y"),
     ("LEASE CONFIRM @l", EXPIRED), ("EXISTS @a @b", 0), ("LEASE CANCEL @l", "OK"),
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a2")]), ("SET @b mine", "OK"),
     ("LEASE RENEW @l", EXPIRED), ("EXISTS @a", 0), ("GET @b", "mine"), ("LEASE RENEW @l", EXPIRED))
case("a key that was freed and taken by another is not the lease's, with the same value neither",
     ("LEASE GRANT @l 60000 @a x @b y", ["@l", T("a1")]), ("UNLOCK @a x", 1),
     ("LOCK @a x 60000", ["x", T("a2")]), ("LEASE CANCEL @l", "OK"), ("GET @a", "x"), ("EXISTS @b", 0))
case("the lock commands see a value as its owner",
     ("LEASE GRANT @l 60000 @a x", ["@l", T("a1")]), ("LOCK @a x 90000", ["x", T("a1")]),
     ("RENEW @a x 120000", 1), ("FENCE @a x {clock+3600}", T("a2")), ("LEASE CONFIRM @l", T("a1")),
     ("PTTL @a", FOR_EVER), ("UNLOCK @a x", 1))
case("a lease tells of its keys",
     ("LISTEN @a", None), ("LEASE GRANT @l 60000 @a x", ["@l", T("a1")]), ("LEASE CANCEL @l", "OK"),
     ("HEARD @a", [Event("granted x {a1}"), Event("released x")]), on=ALONE)
case("bad leases change nothing",
     ("LEASE CONFIRM @none", NO_LEASE), ("LEASE CANCEL @none", NO_LEASE), ("LEASE RENEW @none", NO_LEASE),
     ("LEASE GRANT @l 60000 @a", arity("lease|grant")), ("LEASE GRANT @l 1 @a x @b", arity("lease|grant")),
     ("LEASE GRANT @l 60000", arity("lease|grant")), ("LEASE CONFIRM", arity("lease|confirm")),
     ("LEASE CANCEL @l x", arity("lease|cancel")), ("LEASE RENEW @l 1 1", arity("lease|renew")),
     ("LEASE GRANT @l 60000 @a 1 @b 1 @a 2", Error("ERR a key is given twice")),
     ("LEASE GRANT '' 60000 @a x", ID_BYTES), (("LEASE", "GRANT", "i" * 513, 60000, "@a", "x"), ID_BYTES),
     *((f"LEASE GRANT @l {ttl} @a x", outside("ttl", 1, MAX)) for ttl in (0, -1, MAX + 1, "1e3", "x")),
     ("EXISTS @a @b", 0), (("LEASE", "GRANT", "i" * 512, 1, "@a", "x"), ["i" * 512, T("a1")]),
     (f"LEASE GRANT @l {MAX} @b x", ["@l", T("b1")]), ("LEASE GRANT @l 60000 @c x", IN_USE),
     ("EXISTS @c", 0), ("LEASE RENEW @l 0", outside("ttl", 1, MAX)), ("LEASE CANCEL @l", "OK"))
case("values and ids are binary safe, and a value may be empty or long",
     (("LEASE", "GRANT", b"@l\x00\xff", 60000, b"@a\x00\xff", b"", b"@b", b"\r\n\x00" * 1000),
      [b"@l\x00\xff", T("a1")]), (("GET", b"@a\x00\xff"), b""), ("GET @b", b"\r\n\x00" * 1000),
     (("LEASE", "RENEW", b"@l\x00\xff"), 1), (("LEASE", "CONFIRM", b"@l\x00\xff"), T("a1")))
