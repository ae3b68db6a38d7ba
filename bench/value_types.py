"""Sorted sets, lists and sets at the work that lock libraries use them for: a limiter with a sliding
window, the hand-over of a list's element to a waiting client, and the members of sets; and their memory."""
import functools

from lines import Line
from servers import Server

KEYS = 10_000  # limiters, and sets; each has a few members
MEMBERS = 1_000_000
# A request is counted unless the window of a minute has 10 of them: the script of many limiters.
LIMITER = """redis.call("ZREMRANGEBYSCORE", KEYS[1], "-inf", ARGV[1] - 60000)
if redis.call("ZCARD", KEYS[1]) >= 10 then return 0 end
redis.call("ZADD", KEYS[1], ARGV[1], ARGV[2])
redis.call("PEXPIRE", KEYS[1], 60000)
return 1"""


def limiter(kind, pipeline):
    with Server(kind) as server:
        digest = server.ask("SCRIPT", "LOAD", LIMITER).decode()
        request = (f"EVALSHA {digest} 1 {{key}} {{deadline}} {{owner}}", ":")
        return server.load("closed", request, pipeline=pipeline, keys=KEYS, seconds=1)["rate"]


def members(kind, pipeline):
    with Server(kind) as server:
        cycle = [("SADD {key} {owner}", ":"), ("SISMEMBER {key} {owner}", ":")]
        return server.load("closed", *cycle, pipeline=pipeline, keys=KEYS, seconds=1)["rate"]


def pushes_and_pops(kind, pipeline):
    with Server(kind) as server:
        cycle = [("LPUSH {key} {owner}", ":1"), ("BLPOP {key} 0", "*2")]
        return server.load("closed", *cycle, pipeline=pipeline, seconds=1)["rate"]


def hand_overs(kind):
    """Clients that wait for the one element of a list, and push it back as soon as they have it."""
    with Server(kind) as server:
        server.ask("LPUSH", "queue", "permit")
        return server.load("contended", ("BLPOP queue 0", "*2"), ("LPUSH queue permit", ":1"),
                           connections=100, seconds=1)["rate"]


def bytes_a_member(kind, request):
    """Resident memory for each member of one large value."""
    with Server(kind) as server:
        before_kib = server.memory_kib()
        server.load("closed", (request, ":"), pipeline=64, requests=MEMBERS, keys=MEMBERS, in_order=True)
        return (server.memory_kib() - before_kib) * 1024 / MEMBERS


def value_type_lines():
    def line(work, measure, *args, unit="/s", **budget):
        return Line(work, "Redis", unit, ours=functools.partial(measure, "Holdfast", *args),
                    theirs=functools.partial(measure, "Redis", *args), **budget)

    found = []
    for name, measure in (("limiter script with a sorted set", limiter), ("SADD and SISMEMBER", members),
                          ("LPUSH and BLPOP", pushes_and_pops)):
        found += [line(f"{name}, pipeline {pipeline}", measure, pipeline, at_least=at_least)
                  for pipeline, at_least in ((1, 1), (64, 1.5))]
    found.append(line("LPUSH to the next BLPOP, 100 clients", hand_overs, at_least=1))
    found += [line(f"bytes a member of a {name}, of 1 million", bytes_a_member, request, unit="B",
                   at_most=1)
              for name, request in (("sorted set", "ZADD large {deadline} {key}"),
                                    ("set", "SADD large {key}"), ("list", "RPUSH large {key}"))]
    return found
