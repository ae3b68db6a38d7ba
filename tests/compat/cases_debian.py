"""The cases whose libraries come as Debian packages: Python, Ruby, PHP, Perl, Go, C and redis-cli.

Each case needs the package in its row; Debian pins the version. Compiled programs are in build/compat.
"""
import os
import pathlib
import subprocess

from cases import Case

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build"
PYTHON = ["/usr/bin/python3", "-B"]  # Debian's Python, as only that one finds Debian's modules
GO_PROGRAM = BUILD / "compat/redigo"
C_PROGRAM = BUILD / "compat/hiredis"


def version_of(package):
    return ["dpkg-query", "--show", "--showformat=${Version}", package]


def compile_go():
    """Compiles the program with Debian's Go packages (/usr/share/gocode). Go's cache saves later builds."""
    environment = {"GO111MODULE": "off", "GOPATH": "/usr/share/gocode", "CGO_ENABLED": "0",
                   "GOCACHE": str(BUILD / "go-cache")}
    subprocess.run(["go", "build", "-o", GO_PROGRAM, "."], cwd=HERE / "go", env=os.environ | environment,
                   check=True)


def compile_c():
    sources = sorted((HERE / "c").glob("*.cc"))
    newest = max(path.stat().st_mtime for path in (HERE / "c").iterdir())
    if C_PROGRAM.exists() and C_PROGRAM.stat().st_mtime > newest:
        return
    C_PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"]
    subprocess.run(["g++", *flags, "-o", C_PROGRAM, *sources, "-lhiredis", "-luv"], check=True)


def row(library, package, how, language, *command, prepare=None):
    return Case(library, version_of(package), how, [str(word) for word in command], str(HERE / language),
                prepare=prepare)


CASES = [
    row("redis-py", "python3-redis", "client: types, pipelines, WATCH, scripts, pub/sub, tracking",
        "python",
        *PYTHON, "redis_py.py"),
    row("redis-py Lock", "python3-redis", "lock: all methods, contention, mixing with LOCK", "python",
        *PYTHON, "redis_py_lock.py"),
    row("tooz", "python3-tooz", "redis driver: locks, heartbeat, groups, members, leaders", "python",
        *PYTHON, "tooz_driver.py"),
    row("limits", "python3-limits", "moving and fixed windows, 8 clients", "python",
        *PYTHON, "limits_storage.py"),
    row("portalocker", "python3-portalocker", "RedisLock by pub/sub: contention, a holder that is killed",
        "python",
        *PYTHON, "portalocker_redis.py"),
    row("kombu (Celery)", "python3-kombu", "queues, lost consumers, priorities, fan-out, 4 consumers",
        "python",
        *PYTHON, "kombu_queue.py"),
    row("redis-cli", "redis-tools", "not under a terminal: -x, --pipe, -3, --eval, --scan, ...", "python",
        *PYTHON, "redis_cli.py"),
    row("ruby-redis", "ruby-redis", "client: types, pipelines, WATCH, scripts, pub/sub, locks", "ruby",
        "ruby", "ruby_redis.rb"),
    row("Sidekiq", "ruby-sidekiq", "queues, blocked fetches, scheduled, retried and dead jobs", "ruby",
        "ruby", "sidekiq.rb"),
    row("phpredis", "php-redis", "client: types, pipelines, WATCH, scripts, pub/sub, locks", "php",
        "php", "phpredis.php"),
    row("predis", "php-predis", "client: types, pipelines, WATCH, scripts, pub/sub, locks", "php",
        "php", "predis.php"),
    row("Laravel RedisLock, phpredis", "php-illuminate-cache", "lock, store, limiters, mixing with LOCK",
        "php", "php", "illuminate_lock.php", "phpredis"),
    row("Laravel RedisLock, predis", "php-illuminate-cache", "lock, store, limiters, mixing with LOCK",
        "php", "php", "illuminate_lock.php", "predis"),
    row("symfony/lock, phpredis", "php-symfony-lock", "exclusive and shared locks, expiry, 3 servers",
        "php", "php", "symfony_lock.php", "phpredis"),
    row("symfony/lock, predis", "php-symfony-lock", "exclusive and shared locks, expiry, 3 servers",
        "php", "php", "symfony_lock.php", "predis"),
    row("symfony/semaphore, phpredis", "php-symfony-semaphore", "permits, weights; symfony/rate-limiter",
        "php", "php", "symfony_semaphore.php", "phpredis"),
    row("symfony/semaphore, predis", "php-symfony-semaphore", "permits, weights; symfony/rate-limiter",
        "php", "php", "symfony_semaphore.php", "predis"),
    row("redigo", "golang-github-gomodule-redigo-dev", "client: types, pipelines, WATCH, scripts, pub/sub, "
        "locks", "go", GO_PROGRAM, prepare=compile_go),
    row("Redis.pm", "libredis-perl", "client: types, pipelines, WATCH, scripts, pub/sub, locks", "perl",
        "perl", "redis_pm.pl"),
    row("hiredis", "libhiredis-dev", "C client: formats, pipelines, MULTI, pub/sub, libuv callbacks", "c",
        C_PROGRAM, prepare=compile_c),
]
