"""portalocker's RedisLock: the holder subscribes to a channel and answers questions there. A client asks
how many subscribe, and asks the holder: PUBSUB NUMSUB, CLIENT SETNAME, CLIENT LIST and CLIENT KILL."""
import portalocker.exceptions
import redis
from portalocker import RedisLock

from steps import HOST, PORT, Background, step, until

CHANNEL = "job"


def lock(**options):
    """A lock with a connection of its own."""
    return RedisLock(CHANNEL, redis.Redis(HOST, PORT), check_interval=0.02, thread_sleep_time=0.01,
                     **options)


def refused(other, **options):
    try:
        other.acquire(**options)
    except portalocker.exceptions.AlreadyLocked:
        return True
    other.release()
    return False


def main():
    r = redis.Redis(HOST, PORT)
    one, two = lock(), lock()
    subscribers = lambda: r.pubsub_numsub(CHANNEL)[0][1]  # noqa: E731
    step("acquire", [one.acquire() is one, subscribers()], [True, 1])
    step("contention", [refused(two, timeout=0.1), subscribers()], [True, 1])
    one.release()
    until("no subscriber", lambda: subscribers() == 0)
    step("the next acquires", [two.acquire() is two, subscribers()], [True, 1])
    waiting = Background(lambda: one.acquire(timeout=20) is one)
    two.release()
    step("a waiter gets it after the release", waiting.result(), True)
    one.release()
    until("no subscriber", lambda: subscribers() == 0)
    with lock() as held:
        step("with", [held.pubsub is not None, refused(two, timeout=0.05)], [True, True])
    until("no subscriber", lambda: subscribers() == 0)
    lost = redis.Redis(HOST, PORT, client_name="job-lock").pubsub()
    lost.subscribe(CHANNEL)
    until("another holder", lambda: subscribers() == 1)
    step("a holder of which nothing is known", refused(two, timeout=0.05), True)
    killed = [r.client_kill_filter(_id=client["id"]) for client in r.client_list("pubsub")
              if client["name"] == "job-lock"]
    step("the lock ends with its connection", [killed, two.acquire(timeout=20) is two], [[1], True])
    two.release()



main()
