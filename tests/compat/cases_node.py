"""The cases from npm. Their packages are pinned in node/package-lock.json and live in build/compat/node."""
import json
import pathlib
import re
import shutil
import subprocess

from cases import Case

HERE = pathlib.Path(__file__).resolve().parent / "node"
BUILD = HERE.parents[2] / "build/compat/node"
LIMIT_S = 300  # time limit of the download
UNREACHABLE = ("ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH"
               "|ERR_SOCKET_TIMEOUT")


class RegistryUnreachable(Exception):
    """npm could not download its packages. The suite skips the cases that need them, for this reason."""


def install():
    """Runs npm, unless the installed packages are those of this lock file."""
    lock = (HERE / "package-lock.json").read_bytes()
    installed = BUILD / "installed.json"
    if installed.exists() and installed.read_bytes() == lock:
        return
    BUILD.mkdir(parents=True, exist_ok=True)
    installed.unlink(missing_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, BUILD / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1"]
    try:
        run = subprocess.run(command, cwd=BUILD, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired as slow:
        raise RegistryUnreachable(f"npm ci did not end within {LIMIT_S} s") from slow
    if run.returncode != 0:
        # npm prints warnings about engines (EBADENGINE) before the errors. They would hide the cause.
        errors = [line for line in run.stdout.splitlines() if re.match(r"npm (ERR!|error)", line)]
        cause = "\n".join(errors[:6]) or run.stdout
        if re.search(UNREACHABLE, cause):
            why = next((line for line in errors if "request to" in line), errors[0])
            raise RegistryUnreachable(f"npm cannot reach its registry: {why}")
        raise RuntimeError(f"npm ci failed:\n{cause}")
    installed.write_bytes(lock)


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
