"""tooz over Redis as OpenStack's services use it: locks, heartbeats, groups, members, leaders."""
import logging
import time

import redis
from tooz import coordination

from steps import HOLDFAST, HOST, PORT, Background, error_of, fight, native, step, until

GROUP = b"group"


def start(name, **options):
    text = "".join(f"&{key}={value}" for key, value in options.items())
    coordinator = coordination.get_coordinator(f"redis://{HOST}:{PORT}?db=0{text}", name)
    coordinator.start()
    return coordinator


def locks(r, one, two):
    mine, theirs = one.get_lock(b"res"), two.get_lock(b"res")
    key = mine.name
    step("acquire", [mine.acquire(), mine.acquired, mine.is_still_owner()], [True, True, True])
    step("ttl", 29_000 < r.pttl(key) <= 30_000, True)
    step("a second member is refused", [theirs.acquire(blocking=False), theirs.acquired], [False, False])
    begun = time.monotonic()
    step("and after waiting", [theirs.acquire(blocking=0.2), 0.05 < time.monotonic() - begun < 10],
         [False, True])
    waiter = Background(theirs.acquire)
    step("release", [mine.release(), mine.acquired, mine.is_still_owner()], [True, False, False])
    step("the waiter gets it", [waiter.result(), theirs.is_still_owner()], [True, True])
    step("release a lock of another owner", mine.release(), False)
    step("break", [mine.break_(), mine.break_(), theirs.is_still_owner()], [True, False, False])
    step("release a lock that was broken", theirs.release(), False)
    with one.get_lock(b"res") as held:
        step("with", [held.acquired, theirs.acquire(blocking=False)], [True, False])
    step("after with", r.exists(key), 0)
    mine.acquire()
    step("with, held", error_of(lambda: two.get_lock(b"res").__enter__(False)),
         "LockAcquireFailed: Acquiring lock b'_tooz'_b'res'_lock failed")
    mine.release()


def heartbeats(r, one):
    step("start left a heartbeat", r.get("_tooz_beats:one"), b"Not dead!")
    lock = one.get_lock(b"beat")
    lock.acquire()
    r.pexpire(lock.name, 5_000)
    step("heartbeat renews the locks", [one.heartbeat(), 29_000 < r.pttl(lock.name) <= 30_000], [30, True])
    r.script_flush()
    step("after script flush", [one.heartbeat(), lock.is_still_owner(), lock.release()], [30, True, True])


def expiry(r):
    brief = start(b"brief", lock_timeout=1, membership_timeout=0.2)
    lock = brief.get_lock(b"brief")
    lock.acquire()
    patient = start(b"patient")
    next_one = patient.get_lock(b"brief")
    step("expiry lets the next in", [next_one.acquire(blocking=15), lock.is_still_owner(), lock.release()],
         [True, False, False])
    step("its heartbeat is removed too", until("an end", lambda: not r.exists("_tooz_beats:brief")), True)
    step("stop releases", [patient.stop(), r.exists(next_one.name), r.exists("_tooz_beats:patient")],
         [None, 0, 0])
    brief.stop()


def members(r, one, two):
    step("join a group that does not exist", error_of(one.join_group(GROUP).get),
         "GroupNotCreated: Group b'group' does not exist")
    step("create it", [one.create_group(GROUP).get(), r.type(b"_tooz_group:" + GROUP)], [None, b"hash"])
    step("join", [one.join_group(GROUP, b"able").get(), two.join_group(GROUP).get()], [None, None])
    step("members", sorted(two.get_members(GROUP).get()), [b"one", b"two"])
    step("capabilities", two.get_member_capabilities(GROUP, b"one").get(), b"able")
    step("join twice", error_of(one.join_group(GROUP).get),
         "MemberAlreadyExist: Member b'one' has already joined b'group'")
    step("update them, by a script", [one.update_capabilities(GROUP, {"cpu": [1, 2]}).get(),
                                      two.get_member_capabilities(GROUP, b"one").get()],
         [None, {"cpu": [1, 2]}])
    dead = start(b"dead", membership_timeout=0.05)
    dead.join_group(GROUP).get()
    step("a member without heartbeat is removed",
         until("its end", lambda: b"dead" not in one.get_members(GROUP).get()), True)
    step("leave", [two.leave_group(GROUP).get(), one.get_members(GROUP).get()], [None, {b"one"}])
    step("leave twice", error_of(two.leave_group(GROUP).get),
         "MemberNotJoined: Member b'two' has not joined b'group'")
    dead.stop()


def groups(r, one, two):
    """The groups are the members of a set."""
    step("groups", [two.get_groups().get(), r.type("_tooz_groups")], [[GROUP], b"set"])
    step("create a group twice", error_of(two.create_group(GROUP).get),
         "GroupAlreadyExist: Group b'group' already exists")
    two.create_group(b"empty").get()
    step("two groups", sorted(one.get_groups().get()), [b"empty", GROUP])
    step("delete a group with a member", error_of(two.delete_group(GROUP).get),
         "GroupNotEmpty: Group b'group' is not empty")
    step("delete the empty group", [one.delete_group(b"empty").get(), two.get_groups().get()],
         [None, [GROUP]])
    step("delete it again", error_of(one.delete_group(b"empty").get),
         "GroupNotCreated: Group b'empty' does not exist")
    joined = []
    one.watch_join_group(GROUP, joined.append)
    one.run_watchers()
    two.join_group(GROUP).get()
    one.run_watchers()
    step("a watcher sees who joins", [event.member_id for event in joined], [b"two"])
    two.leave_group(GROUP).get()


def leaders(one, two):
    elected = []
    for coordinator in (one, two):
        coordinator.watch_elected_as_leader(GROUP, lambda event: elected.append(event.member_id))
    one.run_elect_coordinator()
    two.run_elect_coordinator()
    step("one is elected", elected, [b"one"])
    one._get_leader_lock(GROUP).break_()
    two.run_elect_coordinator()
    step("then the second", elected, [b"one", b"two"])


def fights(crowd):
    def enter(number):
        lock = crowd[number % len(crowd)].get_lock(b"fought")
        lock._lock.sleep = 0.005
        if not lock.acquire():
            raise RuntimeError("not acquired")
        return lock

    step("20 threads, one at a time", fight(20, 5, enter, lambda lock: lock.release()), (100, 1))


def mixing(r, one):
    lock = one.get_lock(b"mix")
    lock.acquire()
    native("LOCK is refused", r.execute_command("LOCK", lock.name, "me", 10_000), None)
    waiter = Background(r.execute_command, "LOCK", lock.name, "me", 10_000, "WAIT", 15_000)
    until("a waiter", lambda: r.info("clients")["blocked_clients"] == 1)
    begun = time.monotonic()
    lock.release()
    native("release wakes the LOCK that waits", waiter.result()[0], b"me")
    native("at once", time.monotonic() - begun < 5, True)
    native("the library is refused", lock.acquire(blocking=False), False)
    taker = Background(lock.acquire)
    native("UNLOCK lets it in", [r.execute_command("UNLOCK", lock.name, "me"), taker.result()], [1, True])
    native("broken by LOCKS BREAK", [r.execute_command("LOCKS", "BREAK", lock.name), lock.is_still_owner()],
           [1, False])


def main():
    logging.disable()  # tooz logs failed releases, and this test causes them
    r = redis.Redis(HOST, PORT)
    one, two = start(b"one"), start(b"two")
    locks(r, one, two)
    heartbeats(r, one)
    expiry(r)
    members(r, one, two)
    groups(r, one, two)
    leaders(one, two)
    fights([one, two])
    if HOLDFAST:
        mixing(r, one)
    one.stop()
    two.stop()


main()
