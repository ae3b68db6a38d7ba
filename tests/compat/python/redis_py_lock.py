"""redis-py's Lock: every method, contention of several clients, and use beside LOCK."""
import time

import redis
from redis.exceptions import LockError
from redis.lock import Lock

from steps import HOLDFAST, HOST, PORT, Background, error_of, fight, native, step, until

NOT_OWNED = "LockNotOwnedError: Cannot {} a lock{} that's no longer owned"


def acquisition(r, other):
    lock = r.lock("res", timeout=30)
    step("handshake", r.ping(), True)
    step("acquire", lock.acquire(), True)
    step("ttl", 29_000 < r.pttl("res") <= 30_000, True)
    step("locked, owned", [lock.locked(), lock.owned(), other.lock("res").locked(),
                           other.lock("res").owned()],
         [True, True, True, False])
    step("a second client is refused", other.lock("res", timeout=30).acquire(blocking=False), False)
    begun = time.monotonic()
    step("and after waiting", other.lock("res", sleep=0.01).acquire(blocking_timeout=0.1), False)
    step("it did wait", 0.05 < time.monotonic() - begun < 10, True)
    waiter = Background(other.lock("res", timeout=30, sleep=0.01, thread_local=False).acquire)
    step("release", lock.release(), None)
    step("the waiter gets it", waiter.result(), True)
    step("release twice", error_of(lock.release), "LockError: Cannot release an unlocked lock")
    step("clean", r.delete("res"), 1)
    step("not blocking", Lock(r, "res", blocking=False, timeout=5).acquire(), True)
    step("a token of one's own", [r.delete("res"), lock.acquire(token="tök\x00en"), r.get("res"),
                                  lock.release()],
         [1, True, "tök\x00en".encode(), None])
    binary = bytes(range(256))
    step("a binary token and name", [r.lock(binary, timeout=9).acquire(token=binary),
                                     r.get(binary) == binary,
                                     r.delete(binary)], [True, True, 1])
    forever = r.lock("res")
    step("without timeout", [forever.acquire(), r.ttl("res"), forever.release(), r.exists("res")],
         [True, -1, None, 0])
    step("half a second", [r.lock("res", timeout=0.5).acquire(), 0 < r.pttl("res") <= 500, r.delete("res")],
         [True, True, 1])


def extension(r):
    lock = r.lock("res", timeout=10)
    lock.acquire()
    step("extend adds", [lock.extend(10), 19_000 < r.pttl("res") <= 20_000], [True, True])
    step("extend replaces", [lock.extend(5, replace_ttl=True), 4_000 < r.pttl("res") <= 5_000],
         [True, True])
    step("extend by a fraction", [lock.extend(0.25), 4_000 < r.pttl("res") <= 5_250], [True, True])
    step("reacquire", [lock.reacquire(), 9_000 < r.pttl("res") <= 10_000], [True, True])
    step("extend a lock without ttl", [r.persist("res"), error_of(lock.extend, 10), lock.reacquire()],
         [True, NOT_OWNED.format("extend", ""), True])
    lock.release()
    step("extend, unlocked", error_of(lock.extend, 1), "LockError: Cannot extend an unlocked lock")
    step("reacquire, unlocked", error_of(lock.reacquire), "LockError: Cannot reacquire an unlocked lock")
    forever = r.lock("res")
    forever.acquire()
    step("extend, no timeout", error_of(forever.extend, 1),
         "LockError: Cannot extend a lock with no timeout")
    step("reacquire, no timeout", error_of(forever.reacquire),
         "LockError: Cannot reacquire a lock with no timeout")
    forever.release()


def loss(r, other):
    lock = r.lock("res", timeout=30)
    lock.acquire()
    r.set("res", "another owner")
    step("lost: owned", [lock.owned(), lock.locked()], [False, True])
    step("lost: extend", error_of(lock.extend, 1), NOT_OWNED.format("extend", ""))
    step("lost: reacquire", error_of(lock.reacquire), NOT_OWNED.format("reacquire", ""))
    step("lost: release", error_of(lock.release), NOT_OWNED.format("release", ""))
    step("the other owner's lock stays", [r.get("res"), r.delete("res")], [b"another owner", 1])
    short = r.lock("res", timeout=0.05)
    short.acquire()
    late = other.lock("res", timeout=30, sleep=0.005)
    step("expiry lets the next in", [late.acquire(blocking_timeout=10), short.owned()], [True, False])
    step("expired: extend", error_of(short.extend, 1), NOT_OWNED.format("extend", ""))
    step("expired: release", error_of(short.release), NOT_OWNED.format("release", ""))
    step("the next has it still", [late.owned(), late.release()], [True, None])


def no_script(r):
    lock = r.lock("res", timeout=10)
    for name, call in (("extend", lambda: lock.extend(5)), ("reacquire", lock.reacquire),
                       ("release", lock.release)):
        if not lock.local.token:
            lock.acquire()
        step(f"{name} after script flush", [r.script_flush(), r.script_exists(lock.lua_release.sha),
                                            call()],
             [True, [False], None if name == "release" else True])


def context(r, other):
    with r.lock("res", timeout=10) as lock:
        step("with", [lock.owned(), other.lock("res").acquire(blocking=False)], [True, False])
    step("after with", r.exists("res"), 0)

    def enter():
        with other.lock("res", blocking_timeout=0.05, sleep=0.01):
            pass

    r.lock("res", timeout=10).acquire()
    step("with, held", error_of(enter), "LockError: Unable to acquire lock within the time specified")
    local = r.lock("res", timeout=10, thread_local=True)
    r.delete("res")
    local.acquire()
    step("another thread has no token", Background(local.release).result(),
         "AttributeError: '_thread._local' object has no attribute 'token'")
    local.release()


def fights(r):
    pool = redis.ConnectionPool(host=HOST, port=PORT)

    def enter(_):
        lock = redis.Redis(connection_pool=pool).lock("fought", timeout=60, sleep=0.002)
        if not lock.acquire():
            raise LockError("not acquired")
        return lock

    step("50 clients, one at a time", fight(50, 4, enter, lambda lock: lock.release()), (200, 1))
    step("the key is free", r.exists("fought"), 0)


def blocked(r):
    return r.info("clients")["blocked_clients"] == 1


def mixing(r, other):
    lock = r.lock("mix", timeout=30)
    lock.acquire(token="lib")
    native("LOCK is refused", other.execute_command("LOCK", "mix", "me", 10_000), None)
    waiter = Background(other.execute_command, "LOCK", "mix", "me", 10_000, "WAIT", 15_000)
    until("a waiter", lambda: blocked(r))
    begun = time.monotonic()
    lock.release()
    got = waiter.result()
    native("release wakes the LOCK that waits", [got[0], type(got[1])], [b"me", int])
    native("at once", time.monotonic() - begun < 5, True)
    native("the library is refused", [lock.acquire(blocking=False), r.lock("mix").locked()], [False, True])
    taker = Background(r.lock("mix", timeout=30, sleep=0.01).acquire, token="lib")
    native("UNLOCK lets the library in", [other.execute_command("UNLOCK", "mix", "me"), taker.result()],
           [1, True])
    native("RENEW and UNLOCK by the library's token",
           [other.execute_command("RENEW", "mix", "lib", 20_000), 19_000 < r.pttl("mix") <= 20_000,
            other.execute_command("UNLOCK", "mix", "stranger"), other.execute_command("UNLOCK", "mix",
                                                                                      "lib")],
           [1, True, -1, 1])
    short = r.lock("mix", timeout=0.2)
    short.acquire(token="short")
    got = other.execute_command("LOCK", "mix", "me", 10_000, "WAIT", 15_000)
    native("the library's expiry wakes it too", [got[0], error_of(short.release)],
           [b"me", NOT_OWNED.format("release", "")])


def main():
    r, other = redis.Redis(HOST, PORT), redis.Redis(HOST, PORT)
    acquisition(r, other)
    extension(r)
    loss(r, other)
    no_script(r)
    context(r, other)
    fights(r)
    if HOLDFAST:
        mixing(r, other)


main()
