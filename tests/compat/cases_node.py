"""The cases from npm. Their packages are pinned in node/package-lock.json and live in build/compat/node."""
import json
import pathlib
import sys

from cases import Case

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import npm  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent / "node"
BUILD = HERE.parents[2] / "build/compat/node"


def install():
    npm.install(HERE, BUILD)


def node_case(library, package, how, *command):
    """The case of a program in node/. `package` is its name in package.json, which may be an alias."""
    pinned = json.loads((HERE / "package.json").read_text())["dependencies"][package]
    return Case(library, pinned.rpartition("@")[2], how, ["node", *command], str(HERE),
                {"NODE_PATH": str(BUILD / "node_modules")}, install)


CLIENT = "every step of a client"
LOCK = "lock steps, 50 clients, mixing"
WINDOW = "a moving window, 60 requests at once"

# The longest case is first, as two cases run at a time.
CASES = [
    node_case("redlock 4", "redlock4", "the test file that it ships", "redlock4_own_test.js"),
    node_case("redlock 4", "redlock4", LOCK, "redlock4.js"),
    node_case("redlock 5", "redlock5", LOCK, "redlock5.js"),
    node_case("@sesamecare-oss/redlock", "@sesamecare-oss/redlock", LOCK, "sesamecare_redlock.js"),
    node_case("redis-semaphore", "redis-semaphore", "Mutex: " + LOCK, "redis_semaphore_mutex.js"),
    node_case("redis-semaphore", "redis-semaphore", "RedlockMutex: " + LOCK, "redis_semaphore_redlock.js"),
    node_case("redis-semaphore", "redis-semaphore", "Semaphore, MultiSemaphore, also on three servers",
              "redis_semaphore_counted.js"),
    node_case("Bottleneck", "bottleneck", "concurrency, reservoirs, weights, groups; over ioredis",
              "bottleneck.js", "ioredis"),
    node_case("Bottleneck", "bottleneck", "the same over node-redis 3", "bottleneck.js", "redis"),
    node_case("@upstash/ratelimit", "@upstash/ratelimit", "all algorithms, deny list, regions; over HTTP",
              "upstash_ratelimit.js"),
    node_case("rate-limiter-flexible", "rate-limiter-flexible", "limits, blocks, bursts, unions, a queue",
              "rate_limiter_flexible.js"),
    node_case("ratelimiter", "ratelimiter", WINDOW, "rolling_limiters.js", "ratelimiter"),
    node_case("rolling-rate-limiter", "rolling-rate-limiter", WINDOW, "rolling_limiters.js",
              "rolling-rate-limiter"),
    node_case("redis-lock", "redis-lock", "lock: contention, expiry, 20 waiters", "redis_lock.js"),
    node_case("simple-redis-mutex", "simple-redis-mutex", LOCK, "simple_redis_mutex.js"),
    node_case("ioredis 4", "ioredis4", CLIENT, "ioredis.js", "ioredis4"),
    node_case("ioredis 5", "ioredis5", CLIENT, "ioredis.js", "ioredis5"),
    node_case("ioredis 6", "ioredis", CLIENT, "ioredis.js", "ioredis"),
    node_case("redis (node-redis) 4", "redis4", CLIENT, "node_redis.js", "redis4"),
    node_case("redis (node-redis) 5", "redis5", CLIENT, "node_redis.js", "redis5"),
    node_case("redis (node-redis) 6", "redis", CLIENT, "node_redis.js", "redis"),
]
