"""The words of random commands. There are few keys, so that many commands use the same key.

No key expires while the test runs, and EXPIRE's GT and LT never compare two almost equal times. So times
from now end in 2038..2044 or far after 2100. Absolute times are between these ranges, so that
differences.py can recognise them.
"""
KEYS = (b"s1", b"s2", b"s3", b"n1", b"n2", b"h1", b"h2", b"h3", b"l1", b"l2", b"l3", b"x1", b"",
        b"a\x00\xff\r\n ", b"{tag}1")
# A hash beyond the limits of a listpack has no defined order. Such hashes have their own keys.
BIG_KEYS = (b"big1", b"big2")
FIELDS = (b"f1", b"f2", b"f3", b"n", b"", b"\x00\xff", b"a b", b"12", b"f" * 64)
LONG = b"L" * 64
VALUES = (b"", b"a", b"hello", b"0", b"1", b"-1", b"10", b"9999", b"10000", b"3.5", b"-0", b"007", b" 1",
          b"1 ",
          b"+1", b"1e3", b"0x10", b"nan", b"inf", b"9223372036854775807", b"-9223372036854775808",
          b"9223372036854775808", b"v" * 44, b"v" * 45, b"\x00\x01\xfe\r\n", b"\xc3\xa9",
          b"1234567890123456789",
          b"12345678901234567890", b"99999999999999999999", LONG)
LONG_VALUES = (b"w" * 65, b"w" * 1000, b"\x00" * 300)
INTEGERS = (b"0", b"1", b"-1", b"2", b"3", b"-2", b"5", b"-5", b"10", b"100", b"-100", b"12")
HUGE_INTEGERS = (
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775806", b"-9223372036854775807",
    b"4611686018427387904")
NOT_INTEGERS = (
    b"", b"abc", b"1.5", b" 1", b"1 ", b"01", b"+1", b"-0", b"9223372036854775808", b"-9223372036854775809",
    b"1e3", b"0x1", b"nan", b"--1", b"-", b"1\x00", b"\xff", b"123456789012345678901234567890")
FLOATS = (
    b"0.1", b"-0.1", b"1", b"1e3", b"3.0e3", b"-1.5", b"0.5", b"10.50", b"1e-5", b"100", b"0", b"0x1p3",
    b"1e17", b"5.0e-324", b"1e-17", b"123456789.123456789", b"2.2250738585072014e-308")
ODD_FLOATS = (
    b"nan", b"inf", b"-inf", b"+inf", b"infinity", b"", b"abc", b" 1", b"1 ", b"1e4932", b"1e5000",
    b"1.5.5", b"1e", b".5", b"5.", b"-.5e1", b"1\x00", b"1e308", b"-1e308", b"9" * 300)
CHANNELS = (b"c1", b"c2", b"c3", b"news.a", b"news.b", b"", b"\x00\xff")
# At most one pattern matches a channel, as a server may serve a client's patterns in any order.
PATTERNS = (b"c1*", b"c[23]", b"news.*", b"h?llo", b"nothing*", b"\\c9", b"")
GLOBS = (
    b"*", b"s*", b"?1", b"[sn]1", b"[^s]*", b"h[1-2]", b"\\s1", b"", b"s1", b"*1*", b"[a-", b"x\\", b"**",
    b"[]", b"[^]", b"*[", b"{tag}*", b"?" * 8, b"[\\]]")
UNKNOWN = (
    b"nosuch", b"NOSUCH", b"get2", b"", b"a\r\nb", b"\x00\xff", b"x" * 200, b"set|get", b"config|get")
OPTIONS = (
    b"NX", b"XX", b"GT", b"LT", b"EX", b"PX", b"EXAT", b"PXAT", b"KEEPTTL", b"PERSIST", b"GET", b"MATCH",
    b"COUNT", b"TYPE", b"DB", b"REPLACE", b"nx", b"Match", b"ON", b"OFF", b"ASYNC", b"LIMIT")

RELATIVE_S = ((370_000_000, 550_000_000), (4_000_000_000, 5_000_000_000))
ABSOLUTE_S = (2_900_000_000, 3_500_000_000)
BAD_TIMES = (
    b"9223372036854775807", b"-9223372036854775808", b"9223372036854775", b"9223372036854776",
    b"-9223372036854775", b"-9223372036854776", b"9223372036854775808", b"99999999999999999999", b"abc",
    b"", b"1.5", b" 100", b"+100", b"0x10", b"1e3", b"-0")
PAST = (b"0", b"-1", b"-100")
EPOCH_PAST = PAST + (b"1", b"1000", b"1000000000")


class Words:
    """Draws words from a seeded random source."""

    def __init__(self, random):
        self.random = random
        self.draw = random.random

    def one(self, choices):
        return choices[int(self.draw() * len(choices))]

    def chance(self, probability):
        return self.draw() < probability

    def number(self, low, high):
        return low + int(self.draw() * (high - low + 1))

    def some(self, choices, low, high):
        return [self.one(choices) for _ in range(self.number(low, high))]

    def key(self):
        return self.one(KEYS)

    def value(self):
        return self.one(VALUES) if self.draw() < 0.93 else self.one(LONG_VALUES)

    def short(self):
        """A value that fits into a listpack. Hashes whose order is compared must have only such values."""
        return self.one(VALUES)

    def integer(self):
        luck = self.draw()
        if luck < 0.75:
            return self.one(INTEGERS)
        return self.one(HUGE_INTEGERS) if luck < 0.87 else self.one(NOT_INTEGERS)

    def real(self):
        luck = self.draw()
        if luck < 0.7:
            return self.one(FLOATS)
        return self.one(ODD_FLOATS) if luck < 0.85 else self.integer()

    def relative(self, unit):
        """A time from now in seconds (unit 1) or ms (unit 1000); sometimes an invalid or a past one."""
        luck = self.draw()
        if luck < 0.8:
            low, high = self.one(RELATIVE_S)
            return b"%d" % (self.number(low, high) * unit)
        return self.one(BAD_TIMES) if luck < 0.93 else self.one(PAST)

    def absolute(self, unit):
        luck = self.draw()
        if luck < 0.8:
            # Few distinct values, so that GT and LT also compare equal times.
            return b"%d" % ((ABSOLUTE_S[0] + 100_000_000 * self.number(0, 6)) * unit + self.number(0, 1))
        return self.one(BAD_TIMES) if luck < 0.9 else self.one(EPOCH_PAST)

    def counted(self, key, end):
        """The arguments of a pop from several keys: their number, the keys, an end, a count."""
        keys = [key(self) for _ in range(self.number(1, 3))]
        number = b"%d" % len(keys) if self.chance(0.95) else self.one((b"0", b"-1", b"x", b"2", b"9"))
        count = (b"COUNT", self.one((b"1", b"2", b"10", b"0", b"x"))) if self.chance(0.5) else ()
        more = self.some((b"COUNT", b"1", b"x"), 1, 2) if self.chance(0.02) else ()
        return (number, *keys, end(self), *count, *more)

    def case(self, name):
        luck = self.draw()
        if luck < 0.7:
            return name
        return name.lower() if luck < 0.9 else name.title()
