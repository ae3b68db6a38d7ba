"""redis-py's Lock, as an application uses it. Arguments: two ports of proxies, and `sync` or `async`."""
import asyncio
import sys

import redis
import redis.asyncio


def say(what, value):
    print(what, str(bool(value)).lower(), flush=True)


def wait_for_the_test():
    print("ready", flush=True)
    sys.stdin.readline()


def run():
    one, two = (redis.Redis(port=int(port)).lock("job", timeout=30) for port in sys.argv[1:3])
    say("held", one.acquire(blocking=False))
    say("other", two.acquire(blocking=True, blocking_timeout=0.2))
    wait_for_the_test()
    say("extended", one.extend(10) and one.reacquire())
    say("other", two.acquire(blocking=False))
    one.release()
    say("released", True)
    wait_for_the_test()
    say("other", two.acquire(blocking_timeout=5))
    two.release()
    say("released", True)


async def run_async():
    one, two = (redis.asyncio.Redis(port=int(port)).lock("job", timeout=30) for port in sys.argv[1:3])
    say("held", await one.acquire(blocking=False))
    say("other", await two.acquire(blocking=True, blocking_timeout=0.2))
    wait_for_the_test()
    say("extended", await one.extend(10) and await one.reacquire())
    say("other", await two.acquire(blocking=False))
    await one.release()
    say("released", True)
    wait_for_the_test()
    say("other", await two.acquire(blocking_timeout=5))
    await two.release()
    say("released", True)


if sys.argv[3] == "sync":
    run()
else:
    asyncio.run(run_async())
