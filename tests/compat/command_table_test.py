#!/usr/bin/python3
"""Compares COMMAND INFO of every command that Holdfast and Redis 7.0 share: arity, flags, the positions of
keys, and what ACL rules depend on: categories, and the access to its keys. The last line is "N passed, N
failed". HOLDFAST_SERVER and REDIS_SERVER name the two binaries."""
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
import redis
from run import Server

# Commands of later versions of Redis.
NOT_IN_REDIS_7_0 = {"client|no-touch", "client|setinfo", "cl.throttle", "cluster|myshardid", "delex",
                    "delifeq", "digest", "hexpire", "hexpireat", "hexpiretime", "hgetdel", "hgetex",
                    "hpersist", "hpexpire", "hpexpireat", "hpexpiretime", "hpttl", "hsetex", "httl",
                    "msetex"}
# The arity in Redis 7.0 of commands that have more options since.
ARITY_IN_REDIS_7_0 = {"zrank": 3, "zrevrank": 3}
# Commands of Holdfast alone. Those of LOCKS have the category @lock.
LOCKS = {"fence", "lease", "lock", "locks", "renew", "unlock"}
OWN = LOCKS | {"backup"}
# A replica that loads the data of its master does not run these commands: there are no replicas.
NO_REPLICAS = {"no_async_loading"}
# In Redis, LASTSAVE has the category @admin, but not the flag. Here the flag is the category's source.
FLAGS_OF_CATEGORIES = {"lastsave": {"admin"}}


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def raw_client(server):
    client = redis.Redis(port=int(server.port))
    client.response_callbacks.clear()
    return client


def as_map(flat):
    return dict(zip([text(name) for name in flat[::2]], flat[1::2]))


def facts(row):
    """What must be equal: arity, flags, key positions, categories, flags of each key specification."""
    name, arity, flags, *positions = row[:6]
    flags = {text(f) for f in flags} - NO_REPLICAS - FLAGS_OF_CATEGORIES.get(text(name), set())
    access = [{text(f) for f in as_map(spec)["flags"]} - {"variable_flags"} for spec in row[8]]
    arity = ARITY_IN_REDIS_7_0.get(text(name), arity)
    return arity, flags, positions, {text(category) for category in row[6]}, access


def main():
    with Server(True) as holdfast, Server(False) as stock:
        ours, theirs = raw_client(holdfast), raw_client(stock)
        names = [text(n) for n in ours.execute_command("COMMAND", "LIST", "FILTERBY", "PATTERN", "*")]
        names = [n for n in names if n.partition("|")[0] not in OWN and n not in NOT_IN_REDIS_7_0]
        faults = []
        for name in names:
            mine, other = (c.execute_command("COMMAND", "INFO", name)[0] for c in (ours, theirs))
            if other is None:
                faults.append(f"{name}: Redis has no such command")
            elif facts(mine) != facts(other):
                faults.append(f"{name}: {facts(mine)}, but in Redis {facts(other)}")
        lock = {text(n) for n in ours.execute_command("ACL", "CAT", "lock")}
        if {n.partition("|")[0] for n in lock} != LOCKS:
            faults.append(f"@lock has {sorted(lock)}")
    print("".join(f"FAILED {fault}\n" for fault in faults), end="")
    print(f"{len(names) + 1 - len(faults)} passed, {len(faults)} failed")
    return 1 if faults or len(names) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
