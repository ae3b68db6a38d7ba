#!/usr/bin/env python3
"""The permitted differences between replies of Holdfast and Redis, each with its reason. `--list` prints
all of them.

NORMALISED: replies that differ even between two servers of stock Redis. The comparison allows for that
difference only. LISTED: intended differences of Holdfast. LEFT_OUT: requests that the test does not send.
UNSENT: the commands of both servers of which it sends none. A long run fails if it sends too few.
"""
import re
import sys
from collections import namedtuple

Rule = namedtuple("Rule", "command same reason")
Listed = namedtuple("Listed", "command redis holdfast reason")

MS_ARE_ABOVE = 100_000_000_000
SLACK_MS = 5000
TIMES_ARE_ABOVE = 300_000_000
# Times that were set as absolute times are exact to the millisecond (see differential_words.py).
ABSOLUTE = ((2_900_000_000, 3_600_000_000), (2_900_000_000_000, 3_600_000_000_000))


# The latest times that Holdfast stores, counted from now. Absolute ones are later by the time since 1970.
LATEST_MS, FAR_MS = 2 ** 53 - 1, 4_000_000_000_000
LATEST_S, FAR_S = LATEST_MS // 1000 + 1, FAR_MS // 1000


def children(a, b):
    """The two lists, if both are lists of one type and length, else None."""
    if a[0] == b[0] and isinstance(a[1], list) and isinstance(b[1], list) and len(a[1]) == len(b[1]):
        return zip(a[1], b[1])
    return None


def times(a, b, ids):
    if a == b:
        return True
    if a[0] == b":" == b[0]:
        if b[1] >= LATEST_S and abs(b[1] - LATEST_MS) <= FAR_MS or abs(b[1] - LATEST_S) <= FAR_S:
            return a[1] > b[1]
        low, high = sorted((a[1], b[1]))
        slack = SLACK_MS if high > MS_ARE_ABOVE else SLACK_MS // 1000
        exact = any(first <= value < last for value in (low, high) for first, last in ABSOLUTE)
        return low > TIMES_ARE_ABOVE and high - low <= slack and not exact
    pairs = children(a, b)
    return pairs is not None and all(times(x, y, ids) for x, y in pairs)


def without_order(reply, kinds):
    """The reply with the maps, and the lists of these kinds, in one order."""
    kind, value = reply
    if not isinstance(value, list):
        return reply
    items = [without_order(item, kinds) for item in value]
    if kind == b"%":
        items = sorted(zip(items[::2], items[1::2]), key=repr)
    return kind, sorted(items, key=repr) if kind in kinds else items


def same_tables(a, b, _):
    return without_order(a, b"~") == without_order(b, b"~")


def same_flat_tables(a, b, _):
    return without_order(a, b"~*") == without_order(b, b"~*")


def in_any_order(a, b, _):
    return children(a, b) is not None and sorted(a[1], key=repr) == sorted(b[1], key=repr)


def pairs_of(reply):
    return sorted(zip(reply[1][::2], reply[1][1::2]), key=repr)


def pairs_in_any_order(a, b, _):
    return children(a, b) is not None and pairs_of(a) == pairs_of(b)


def scan_of_elements(a, b, ids):
    return children(a, b) is not None and a[1][0] == b[1][0] and in_any_order(a[1][1], b[1][1], ids)


def scan_of_pairs(a, b, ids):
    return children(a, b) is not None and a[1][0] == b[1][0] and pairs_in_any_order(a[1][1], b[1][1], ids)


def same_client(a, b, ids):
    if a == b:
        return True
    if a[0] == b":" == b[0]:
        return any(a[1] == ids[0].get(name) and b[1] == ids[1].get(name) for name in ids[0])
    pairs = children(a, b)
    return pairs is not None and all(same_client(x, y, ids) for x, y in pairs)


def greeting(a, b, ids):
    pairs = children(a, b)
    if pairs is None:
        return False
    free, name = (b"version",), None
    for x, y in pairs:
        if not same_client(x, y, ids) and name not in free:
            return False
        name = x[1]
    return True


def any_key(a, b, _):
    return a[0] == b[0] and (a[1] is None) == (b[1] is None)


def same_number(a, b, ids):
    return any_key(a, b, ids) and (not isinstance(a[1], list) or len(a[1]) == len(b[1]))


def idle(a, b, _):
    return a[0] == b":" == b[0] and a[1] >= 0 and 0 <= b[1] <= 60


# Commands with more options since Redis 7.0, and so another arity.
NEWER = (b"zrank", b"zrevrank")


def same_name_and_arity(a, b):
    return a[0] == b[0] and (a[1] == b[1] or a[0][1] in NEWER)


def command_table_row(a, b, _):
    """Compares name, arity, flags, key positions and ACL categories; not tips and key specifications."""
    pairs = children(a, b)
    if pairs is None:
        return False
    for x, y in pairs:
        if x != y and (children(x, y) is None or not same_name_and_arity(x[1], y[1])
                       or x[1][3:6] != y[1][3:6]
                       or not in_any_order(x[1][2], y[1][2], None)
                       or not in_any_order(x[1][6], y[1][6], None)):
            return False
    return True


def same_total_of_errors(a, b, _):
    total = [re.search(rb"total_error_replies:(\d+)", side[1]) for side in (a, b)]
    return all(total) and total[0].group(1) == total[1].group(1)


def unsubscribed(a, b, _):
    """Compares lists of replies: the counts in their order, the names in any order."""
    counts = [[reply[1][0::2] for reply in side if isinstance(reply[1], list)] for side in (a, b)]
    names = [sorted(repr(reply[1][1]) for reply in side if isinstance(reply[1], list)) for side in (a, b)]
    return [r[0] for r in a] == [r[0] for r in b] and counts[0] == counts[1] and names[0] == names[1]


NORMALISED = [
    Rule(rb"(TTL|PTTL|EXPIRETIME|PEXPIRETIME|EXEC)\b", times,
         "A time counted from now depends on when the server read it. It may differ by 5 seconds; one that "
         "was set as an absolute time may not. In EXEC the same holds for integers as large as times. "
         "A time to live beyond 2^53-1 milliseconds (285,000 years) is kept as that."),
    Rule(rb"(KEYS|PUBSUB (SHARD)?CHANNELS|HKEYS BIG|HVALS BIG)", in_any_order,
         "Keys, channels, and fields of a hash over the listpack's limits have no order (in Redis that of "
         "a hash table with a random seed). A small hash has the order of insertion, "
         "and that is compared."),
    Rule(rb"HGETALL BIG", pairs_in_any_order, "As HKEYS: the pairs of a large hash have no order."),
    Rule(rb"EVAL(_RO)? [\s\S]*SETRESP\(3\)", same_flat_tables,
         "A map or set that a script returns has the order of a Lua table, which depends on the build of "
         "Lua. RESP2 has only arrays for it."),
    Rule(rb"(EVAL|EVALSHA|FCALL)(_RO)?\b", same_tables, "As for SETRESP: maps and sets of scripts."),
    Rule(rb"(SMEMBERS|SINTER|SUNION|SDIFF)\b", in_any_order, "The members of a set have no order."),
    Rule(rb"(SPOP|SRANDMEMBER)\b", same_number,
         "Which members they return, is random. A script of the test checks that the set had them, that "
         "they are different, and that SPOP removes them."),
    Rule(rb"S?SCAN ", scan_of_elements,
         "Elements come in any order. Cursors are each server's own: the test compares the set of elements "
         "of a full iteration."),
    Rule(rb"HSCAN BIG", scan_of_pairs, "As SCAN."),
    Rule(rb"RANDOMKEY", any_key, "Which key it is, is random; whether there is one, is not."),
    Rule(rb"OBJECT IDLETIME", idle,
         "Seconds since the last access: 0 to 60 in a session. In Redis all keys with the same integer "
         "below 10,000 share one object, which may be as old as the server."),
    Rule(rb"(CLIENT|RESET)", same_client,
         "Client ids are each server's own numbers; they must name the same connection."),
    Rule(rb"INFO STATS", same_total_of_errors,
         "The test compares total_error_replies only; the other statistics are each server's own."),
    Rule(rb"HELLO", greeting, "Version and id are the server's own."),
    Rule(rb"COMMAND INFO", command_table_row,
         "Name, arity, flags, key positions and ACL categories are compared. Tips and key specifications "
         "are not: clients do not read them. (command_table_test.py compares the access to keys.)"),
]
MANY = [Rule(rb"[PS]?UNSUBSCRIBE$", unsubscribed,
             "A client that leaves all channels at once gets their names in any order.")]

LISTED = [
    Listed(rb"OBJECT ENCODING", r"'(raw|embstr)'", r"'(int|embstr)'",
           "Holdfast stores all strings in one way, and derives the encoding from the value. In Redis it "
           "also depends on the history: APPEND, SETRANGE and INCRBYFLOAT leave other encodings than SET."),
    Listed(rb"OBJECT REFCOUNT", r":1", r":2147483647",
           "As OBJECT ENCODING: in Holdfast it depends on the value only."),
    Listed(rb"P?EXPIRE(AT)? .* \d{13,} (GT|LT)", r":[01]", r":[01]",
           "Holdfast replaces each time beyond 2^53-1 milliseconds by that limit, counted from now."),
]

LEFT_OUT = [
    ("streams, bitmaps, HyperLogLog, geo, MOVE, SORT, LCS, HRANDFIELD, REPLICAOF",
     "Holdfast has no such types or commands."),
    ("LOCK, UNLOCK, RENEW, FENCE, LOCKS, LEASE, SET IFEQ (IFNE, IFDEQ, IFDNE), DELEX, DELIFEQ, DIGEST, "
     "MSETEX, CL.THROTTLE, CLIENT SETINFO, CLIENT NO-TOUCH",
     "Redis 7.0 has no such commands."),
    ("ZRANK and ZREVRANK with a third argument", "Redis 7.2 and Holdfast have the option WITHSCORE."),
    ("INFO but for errors, CONFIG GET *",
     "They describe the server itself: its versions, memory and options."),
    ("times in scripts", "Each server has its own clock."),
    ("keys that expire while the test runs",
     "Each server chooses the moment of the removal. The transcripts test expiry to the millisecond, with "
     "a simulated clock."),
    ("numbers of keys like 1e3 and 01",
     "The command rejects them, but the tracking and COMMAND GETKEYS of Redis read them as 1."),
    ("RESTORE with a TTL near 2^63 ms",
     "Redis adds the time and overflows, so it creates no key. Holdfast replaces the TTL by its limit."),
    ("BYLEX ranges of members with different scores", "Which members they return, is undefined."),
    ("ZRANDMEMBER, HRANDFIELD, and several members of a set in transactions, but for scripts that check or "
     "sort them",
     "Which members and which order, is random. Transcripts test WITHSCORES and WITHVALUES."),
    ("EVALSHA of a script that only EVAL loaded, after 200 other scripts",
     "Redis 7.0 keeps all scripts. Holdfast keeps 500 of these, as Redis 7.4."),
    ("timeouts of waits for elements above 1 ms, WAIT with a time, CLIENT PAUSE with a time",
     "They would wait in real time. Under CLIENT PAUSE WRITE the test sends only commands that the pause "
     "does not delay."),
    ("EVALSHA, or EVAL in a transaction, of a script with setresp(3)",
     "The order of its maps, see above. The command does not show the text of the script."),
    ("pairs() over several keys of a table, tostring() of a table, redis.REDIS_VERSION",
     "Undefined order, an address, and a version."),
    ("error({}) in a script: an error that is a table without the field err",
     "It ends Redis 7.0.15 (a null pointer)."),
    ("frames with more than max-arguments (1,048,576) arguments",
     "That is Holdfast's limit, an option; Redis has 2,147,483,647."),
    ("OBJECT ENCODING and OBJECT REFCOUNT if another command reads the key in between",
     "They depend on the history of a string, see above; the transcripts test them."),
    ("inline lines of about 64 KiB, with a NUL byte at their start, or that begin with POST or Host:",
     "The reply of Redis to a long line depends on the pieces in which the line arrived. After HTTP both "
     "servers close the connection, Redis without the replies that were due."),
    ("scripts, FLUSHALL and FLUSHDB by a client with tracking on",
     "For a script Redis 7.0 remembers the keys in KEYS; Holdfast, as Redis 7.2, remembers the keys that "
     "it read. Redis does not count the changes of a script as the client's own (NOLOOP). After FLUSHALL "
     "in a transaction Redis sends its invalidation before those of single keys."),
    ("several patterns that match one channel on one connection",
     "Redis serves them in the order of a hash table."),
    ("BCAST invalidations of several keys in one turn of the event loop",
     "Each server sends them together at the end of a turn, and the length of a turn varies."),
]

# Commands that both servers have, and that the test does not send.
UNSENT = [
    (rb".*\|help", "The texts name the subcommands of each server."),
    (rb"(acl|cluster|latency|memory|slowlog)(\|.*)?|client\|(info|list)|command\|(count|docs|list)",
     "They describe the server itself: its versions, memory, options, times and commands."),
    (rb"time|lastsave", "Each server has its own clock."),
    (rb"bgrewriteaof|bgsave|config\|rewrite|debug|monitor|save|shutdown",
     "They act on the process or its files, or repeat requests of other clients with times."),
]


def is_unsent(name):
    return any(re.fullmatch(pattern, name) for pattern, _ in UNSENT)


def line_of(command):
    if isinstance(command, bytes):
        return command.strip()
    return b" ".join(arg for arg in command if isinstance(arg, bytes))


def rule_for(command, rules=tuple(NORMALISED)):
    return next((rule for rule in rules if re.match(rule.command, line_of(command).upper())), None)


def listed(command, redis_reply, holdfast_reply):
    """The listed difference that matches these replies, given as text; or None."""
    line = line_of(command)
    return next((entry for entry in LISTED if re.match(entry.command, line, re.IGNORECASE | re.DOTALL)
                 and re.fullmatch(entry.redis, redis_reply, re.DOTALL)
                 and re.fullmatch(entry.holdfast, holdfast_reply, re.DOTALL)), None)


def show():
    print("Compared with a tolerance:")
    for rule in NORMALISED + MANY:
        print(f"- {rule.command.decode()}: {rule.reason}")
    print("\nIntended differences:" if LISTED else "\nIntended differences: none.")
    for entry in LISTED:
        print(f"- {entry.command.decode()}: Redis {entry.redis}, Holdfast {entry.holdfast}. {entry.reason}")
    print("\nNot sent:")
    for what, reason in LEFT_OUT:
        print(f"- {what}. {reason}")
    for pattern, reason in UNSENT:
        print(f"- commands like {pattern.decode()}. {reason}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--list"]:
        sys.exit("usage: differences.py --list")
    show()
