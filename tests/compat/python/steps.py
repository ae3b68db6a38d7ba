"""Helpers of the Python cases: steps that print and check their outcome, waits, contention for a lock."""
import os
import sys
import threading
import time

HOST = os.environ["HOST"]
PORT = int(os.environ["PORT"])
HOLDFAST = os.environ.get("HOLDFAST") == "1"
EVENT_LIMIT_S = 20
COMPARE_AND_DELETE = ("if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end "
                      "return 0")


def step(name, got, expected):
    """Prints `name: outcome`, the same on every run. Ends the program if it is not the expected one."""
    print(f"{name}: {got!r}", flush=True)
    if type(got) is not type(expected) or got != expected:
        sys.exit(f"{name}: expected {expected!r}, got {got!r}")


def native(name, got, expected):
    """A step with commands of Holdfast, which only its side of the comparison runs."""
    step(f"native: {name}", got, expected)


def error_of(call, *args, **named):
    """The error of a call, as text."""
    try:
        return f"no error but {call(*args, **named)!r}"
    except Exception as error:  # the step compares its text
        return f"{type(error).__name__}: {error}"


def until(what, condition):
    """Polls until the condition is true; returns its value."""
    end = time.monotonic() + EVENT_LIMIT_S
    while time.monotonic() < end:
        if got := condition():
            return got
        time.sleep(0.005)
    sys.exit(f"{what}: has not come in {EVENT_LIMIT_S} s")


class Background(threading.Thread):
    """Runs a call in a new thread; result() waits for it, and returns its value or its error."""

    def __init__(self, call, *args, **named):
        super().__init__(daemon=True)
        self.call, self.args, self.named = call, args, named
        self.start()

    def run(self):
        try:
            self.value = self.call(*self.args, **self.named)
        except Exception as error:  # result() returns its text
            self.value = f"{type(error).__name__}: {error}"

    def result(self):
        self.join(EVENT_LIMIT_S)
        return "has not returned" if self.is_alive() else self.value


def fight(threads, rounds, enter, leave):
    """Threads enter and leave a critical section in turns; enter(thread) returns the argument of leave().
    Returns the number of entries, and the largest number of threads inside at one time."""
    guard = threading.Lock()
    inside, most, entered = 0, 0, 0

    def run(number):
        nonlocal inside, most, entered
        for _ in range(rounds):
            key = enter(number)
            with guard:
                inside += 1
                entered += 1
                most = max(most, inside)
            time.sleep(0.001)  # so that the test sees a second holder
            with guard:
                inside -= 1
            leave(key)

    fighters = [Background(run, number) for number in range(threads)]
    failures = [told for told in (f.result() for f in fighters) if told is not None]
    return (entered, most) if not failures else failures[0]
