"""limits, as Flask-Limiter and slowapi use it: windows in strings and in lists, by their strategies.

The library takes the time from time.time(), so Clock moves the windows.
"""
import time

import limits.storage.redis
import redis
from limits import parse, storage, strategies

from steps import HOST, PORT, Background, error_of, step


class Clock:
    """Stands for the module `time` in the library; the server's clock does not move."""
    ahead = 0

    def time(self):
        return time.time() + self.ahead


CLOCK = Clock()
limits.storage.redis.time = CLOCK


def hits(limiter, item, key, times, cost=1):
    return [limiter.hit(item, key, cost=cost) for _ in range(times)]


def connected():
    return storage.storage_from_string(f"redis://{HOST}:{PORT}")


def key_of(item, key):
    return item.key_for(key)


def moving_window(r, store):
    limiter = strategies.MovingWindowRateLimiter(store)
    item = parse("3/hour")
    key = key_of(item, "me")
    step("moving window", [hits(limiter, item, "me", 4), hits(limiter, item, "you", 1)],
         [[True, True, True, False], [True]])
    step("it is a list with a TTL", [r.type(key), r.llen(key), 3500 < r.ttl(key) <= 3600],
         [b"list", 3, True])
    reset, left = limiter.get_window_stats(item, "me")
    step("window stats", [3590 < reset - time.time() <= 3600, left], [True, 0])
    step("test without a hit", [limiter.test(item, "me"), limiter.test(item, "else")], [False, True])
    CLOCK.ahead += 1800
    step("half a window later", [hits(limiter, item, "me", 1), hits(limiter, item, "you", 1)],
         [[False], [True]])
    CLOCK.ahead += 1801
    step("after the first window", [hits(limiter, item, "me", 4), hits(limiter, item, "you", 3)],
         [[True, True, True, False], [True, True, False]])
    step("only the newest entries are kept", r.llen(key), 3)
    step("several at once", [hits(limiter, item, "bulk", 2, cost=2), hits(limiter, item, "bulk", 2)],
         [[True, False], [True, False]])
    step("clear", [store.clear(key), r.exists(key), hits(limiter, item, "me", 1)], [None, 0, [True]])


def fixed_window(r, store):
    limiter = strategies.FixedWindowRateLimiter(store)
    item = parse("2/hour")
    key = key_of(item, "fixed")
    step("fixed window", hits(limiter, item, "fixed", 3), [True, True, False])
    step("it is a string with a TTL", [r.type(key), r.get(key), 3500 < r.ttl(key) <= 3600],
         [b"string", b"3", True])
    elastic = strategies.FixedWindowElasticExpiryRateLimiter(store)
    r.expire(key, 60)
    step("elastic expiry", [hits(elastic, item, "fixed", 1), 3500 < r.ttl(key) <= 3600], [[False], True])
    step("reset of all limits", [store.reset() > 0, r.keys("LIMITER*")], [True, []])


def together(r):
    """Eight threads with their own connections: exactly the limit passes."""
    item = parse("20/hour")

    def run():
        store = connected()  # the limiter refers to it weakly
        return sum(hits(strategies.MovingWindowRateLimiter(store), item, "crowd", 10))

    results = [thread.result() for thread in [Background(run) for _ in range(8)]]
    step("80 hits by 8 clients", sum(results), 20)
    step("the window's size", r.llen(key_of(item, "crowd")), 20)


def main():
    r = redis.Redis(HOST, PORT)
    store = connected()
    step("check", store.check(), True)
    moving_window(r, store)
    fixed_window(r, store)
    together(r)
    r.script_flush()
    limiter = strategies.MovingWindowRateLimiter(store)
    step("after script flush", hits(limiter, parse("1/hour"), "flushed", 2), [True, False])
    r.set(key_of(parse("1/hour"), "text"), "v")
    step("another type is an error", error_of(hits, limiter, parse("1/hour"), "text", 1).startswith(
        "ResponseError: WRONGTYPE"), True)


main()
