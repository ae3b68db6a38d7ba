"""The values of cost_test.py: of every type and of three sizes, on Holdfast and on Redis."""
import dataclasses
import os
import random

# Numbers of elements. A string has BYTES for each.
LARGE = int(os.environ.get("HOLDFAST_COST_ELEMENTS", "1000000"))
SMALL = 1_000            # to learn what a request does
MEDIUM = LARGE // 50     # for requests that are slow on Redis too
REMOVED = LARGE // 10    # for requests that remove the value
BYTES = 64
PACKED = 500        # fields: a hash of this size is packed in Holdfast
HOLDERS = LARGE // 10  # of a shared lock, and waiters of a lock: the most that one key has
LOCKS = LARGE // 2
LEASE_KEYS = 10_000  # the most
STEP = 50_000       # elements of one call of FILL

# Adds the elements `first` to `last`: KEYS[1], command, first, last, and how a score follows.
FILL = """
local command, words = ARGV[1], {}
for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  if command == 'ZADD' then
    local scores = {rising = i, same = 0, infinite = i % 2 == 0 and 'inf' or '-inf'}
    words[#words + 1] = scores[ARGV[4]]
  end
  words[#words + 1] = string.format('m%07d', i)
  if command == 'HSET' then words[#words + 1] = 'value' .. i end
  if #words >= 3000 then redis.call(command, KEYS[1], unpack(words)); words = {} end
end
if #words > 0 then redis.call(command, KEYS[1], unpack(words)) end
"""
LOCK = """
for i = tonumber(ARGV[2]), tonumber(ARGV[3]) do
  local key, owner = 'lock:' .. i, 'owner'
  if ARGV[1] == 'SHARED' then key, owner = KEYS[1], string.format('m%07d', i) end
  redis.call('LOCK', key, owner, 100000000, unpack(ARGV, 1, ARGV[1] == 'SHARED' and 1 or 0))
end
"""


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of value. Redis has no value of a kind that is `own`."""
    name: str
    type: str
    fill: tuple = ()  # the command, and how a score follows
    own: bool = False


KINDS = [Kind("list", "list", ("RPUSH",)), Kind("set", "set", ("SADD",)),
         Kind("zset", "zset", ("ZADD", "rising")), Kind("zset-same", "zset", ("ZADD", "same")),
         Kind("zset-inf", "zset", ("ZADD", "infinite")), Kind("hash", "hash", ("HSET",)),
         Kind("packed", "hash", ("HSET",)), Kind("string", "string"), Kind("number", "string"),
         Kind("absent", "none"), Kind("holders", "lock", own=True), Kind("waiters", "lock", own=True)]
BY_NAME = {kind.name: kind for kind in KINDS}


def number_of(kind, size):
    """The number of elements of a value of this kind and size."""
    if kind.own:
        return min(size, HOLDERS)
    return {"packed": min(size, PACKED), "number": 1, "absent": 0}.get(kind.name, size)


def key_of(kind, size):
    return f"{kind.name}:{size}"


def fill_elements(server, key, kind, size):
    for first in range(0, size, STEP):
        server.must("EVAL", FILL, 1, key, kind.fill[0], first, min(first + STEP, size) - 1, *kind.fill[1:])


def fill_lock(server, key, kind, size):
    if kind.name == "holders":
        for first in range(0, size, STEP):
            server.must("EVAL", LOCK, 1, key, "SHARED", first, min(first + STEP, size) - 1)
        return
    server.must("LOCK", key, "holder", 10**8)
    waiting = server.new_waiting_client(key)
    waiting.send(["HELLO", 3], ["PING"])
    while (line := waiting.replies.readline()) != b"+PONG\r\n":
        if not line:
            raise EOFError("the server closed the connection")
    waiting.send(*(["LOCK", key, f"m{i:07}", 10**8, "WAIT", 10**8, "ASYNC"] for i in range(size)), ["PING"])
    replies = [waiting.reply() for _ in range(size + 1)]
    if {*replies} != {"QUEUED", "PONG"}:
        raise AssertionError(f"{key}: {replies[0]!r}, {replies[-1]!r}")


def fill(server, key, kind, size):
    """Makes the value of a key anew."""
    server.must("UNLINK", key)
    number = number_of(kind, size)
    if kind.fill:
        fill_elements(server, key, kind, number)
    elif kind.own:
        fill_lock(server, key, kind, number)
    elif kind.name == "string":
        server.must("SET", key, random.Random(1).randbytes(BYTES * number))
    elif kind.name == "number":
        server.must("SET", key, "5")


def fill_locks(server):
    for first in range(0, LOCKS, STEP):
        server.must("EVAL", LOCK, 1, "lock", "EXCLUSIVE", first, min(first + STEP, LOCKS) - 1)


def grant_lease(server):
    """Makes the lease with the most keys, if it does not exist."""
    if server.ask("EXISTS", "lease:0"):
        return
    words = ["LEASE", "GRANT", "lease", 10**8]
    for i in range(LEASE_KEYS):
        words += [f"lease:{i}", "v"]
    server.must(*words)


def end_lease(server):
    server.ask("LEASE", "CANCEL", "lease")
    server.must("UNLINK", *(f"lease:{i}" for i in range(LEASE_KEYS)))
    server.ask("LEASE", "CANCEL", "new")
