"""Checks a history (history.py): each function takes one, and returns its violations as texts. A history
has only the observations of the clients. An operation of unknown outcome may have taken effect at any later
time. So it never counts as a hold, and never excuses a violation."""
import bisect
import collections
import operator

from history import NEVER
from silence import common, faults_of_silence, slow_spans

MS = 1_000_000
INVOKED = operator.attrgetter("invoked")
SLACK_MS = 2000     # time for a server to grant a free lock to a waiter, and for the reply to arrive
LATEST_MS = 30000   # a request that has not arrived after this time never arrives
RESTARTS = ("kill", "term")


class Hold:
    """A grant, and the time in which its client could rely on it: from the reply until the client sent the
    release, or until the end of its validity."""

    def __init__(self, lock):
        self.lock = lock
        self.begin = lock.returned
        self.end = lock.valid
        self.released = NEVER
        self.events = []

    def follow(self, op):
        """`op` is a later operation of the owner, in order of invocation."""
        self.events.append(op)
        if op.op == "unlock":
            self.released = min(self.released, op.invoked)
        elif op.outcome == "ok":
            self.end = max(self.end, op.valid)

    def certain(self):
        return self.begin, min(self.end, self.released)

    def overlaps(self, other):
        (begin, end), (begin2, end2) = self.certain(), other.certain()
        return max(begin, begin2) < min(end, end2)


def holds_of(history):
    """All holds. Each acquisition has its own owner, so an owner has at most one hold."""
    holds = {}
    for op in history.ops:
        if op.op == "lock" and op.outcome == "ok":
            holds[op.place, op.key, op.owner] = Hold(op)
    for op in history.ops:
        hold = holds.get((op.place, op.key, op.owner))
        if hold is not None and op.op != "lock":
            hold.follow(op)
    return list(holds.values())


def by_key(things, op_of=lambda thing: thing):
    groups = collections.defaultdict(list)
    for thing in things:
        groups[op_of(thing).place, op_of(thing).key].append(thing)
    return groups.values()


def allowed(holds):
    return min((hold.lock.capacity or NEVER for hold in holds), default=NEVER)


def faults_of_exclusion(history):
    """Finds moments at which more clients could rely on a lock than the smallest of their capacities."""
    wrong = []
    for group in by_key(holds_of(history), lambda hold: hold.lock):
        active = []
        for hold in sorted(group, key=lambda hold: hold.begin):
            begin, end = hold.certain()
            if end <= begin:
                continue
            active = [other for other in active if other.certain()[1] > begin] + [hold]
            if len(active) > allowed(active):
                wrong.append("held at one moment: " + "; ".join(str(other.lock) for other in active))
    return wrong


def faults_of_tokens(history):
    """Finds grants whose token is not larger than that of an earlier grant. A grant is earlier if its reply
    came before the request. Also finds two exclusive grants with the same token. A quorum does not order
    readers among themselves, as their holds overlap on each server."""
    wrong = []
    for group in by_key([op for op in history.ops if op.op == "lock" and op.outcome == "ok"]):
        answered = collections.deque(sorted(group, key=lambda op: op.returned))
        largest = {True: None, False: None}  # True: of the exclusive grants; False: of all grants
        seen = {}
        for op in group:  # in order of invocation
            while answered and answered[0].returned < op.invoked:
                done = answered.popleft()
                for only in (True, False) if done.capacity == 1 else (False,):
                    if largest[only] is None or done.token > largest[only].token:
                        largest[only] = done
            before = largest[op.place == "quorum" and op.capacity != 1]
            if before is not None and op.token <= before.token:
                wrong.append(f"token not larger: {op}; after {before}")
            if op.capacity == 1 and seen.setdefault(op.token, op) is not op:
                wrong.append(f"token twice: {op}; {seen[op.token]}")
    return wrong


def lost_between(history, place, begin, end):
    """Whether the server of this place, or any server of a quorum, may have lost data in this time."""
    return any(fault.why == "loses" and place in (fault.place, "quorum") and
               fault.invoked < end and fault.returned > begin for fault in history.faults)


def faults_of_durability(history):
    """Finds lost holds: a server denied the hold while its client could rely on it; or another client got
    the lock after a restart, while the hold from before the restart was still valid. A stop that may lose
    data by the promises of the server's settings excuses a lost hold, but not a second grant: that is a
    violation of the exclusion."""
    wrong = []
    holds = holds_of(history)
    for hold in holds:
        valid, released = hold.lock.valid, False
        for op in hold.events:
            denied = op.outcome == "refused" and op.op != "valid"
            if denied and op.returned < valid and not released and \
                    not lost_between(history, op.place, hold.lock.invoked, op.returned):
                wrong.append(f"lost: {hold.lock}; then {op}")
                break
            released = released or op.op == "unlock"
            valid = max(valid, op.valid if op.outcome == "ok" else 0)
    for stop in (fault for fault in history.faults if fault.op in RESTARTS and fault.why != "loses"):
        before = [hold for hold in holds if hold.lock.place == stop.place and
                  hold.begin < stop.invoked < hold.certain()[1]]
        after = [hold for hold in holds if hold.lock.place == stop.place and hold.begin > stop.invoked]
        wrong += [f"lost, and granted again: {hold.lock}; {other.lock}"
                  for hold in before for other in after
                  if hold.lock.key == other.lock.key and hold.overlaps(other) and
                  allowed([hold, other]) == 1]
    return wrong


def carried_over(history):
    """The number of holds from before a restart of their server that the server confirmed after it."""
    number = 0
    for hold in holds_of(history):
        confirmed = [op.invoked for op in hold.events if op.outcome == "ok" and op.op != "valid"]
        number += any(stop.op in RESTARTS and stop.place == hold.lock.place and
                      hold.begin < stop.invoked and any(at > stop.returned for at in confirmed)
                      for stop in history.faults)
    return number


def touched(op, faults, kinds):
    """The faults of these kinds at the operation's place that may have happened during the operation."""
    return [fault for fault in faults if fault.op in kinds and fault.place == op.place and
            fault.invoked < op.returned and fault.returned > op.invoked]


def asked_within(group, begin, end):
    """The operations invoked after `begin` and before `end`. `group` is in order of invocation."""
    return group[bisect.bisect_right(group, begin, key=INVOKED):bisect.bisect_left(group, end, key=INVOKED)]


def faults_of_fairness(history):
    """Finds waiters that a later request has overtaken on one server: the waiter was in the queue before
    the request began. The tokens of a key show the order of its grants. A stop of the server ends its
    queues."""
    wrong = []
    for group in by_key([op for op in history.ops if op.op == "lock" and op.place != "quorum"]):
        grants = [op for op in group if op.outcome == "ok"]
        for first in group:
            if first.queued is None or touched(first, history.faults, RESTARTS):
                continue
            wrong += [f"overtaken: {first}; by {later}"
                      for later in asked_within(grants, first.queued, first.returned)
                      if overtook(first, later)]
    return wrong


def overtook(first, later):
    """Whether `later` was granted before the wait of `first` had ended. `first` was in the queue before
    `later` was invoked."""
    if first.outcome == "ok":
        return later.token < first.token
    if first.outcome != "refused" or first.why != "busy":
        return False  # the end of the wait and its cause are unknown
    end = first.returned if first.wait < 0 else min(first.returned, first.invoked + first.wait * MS)
    return later.returned < end - MS  # the server counts whole milliseconds


def faults_of_starvation(history):
    """Finds waits on a server that ended without a grant although the lock was free: in a span of the wait
    there is no sign of a holder. The span must be longer than the ttls of all requests that the server may
    have granted first, plus the time in which the server was stopped or the machine was slow. While its
    disk fails, a server grants nothing to waiters."""
    wrong = []
    slow = slow_spans(history.probes)
    for group in by_key([op for op in history.ops if op.place != "quorum"]):
        longest = max(op.ttl for op in group) * MS
        signs = sorted(at for op in group if op.outcome == "ok" for at in (op.invoked, op.returned))
        unknown = [op for op in group if op.op in ("lock", "renew") and op.outcome == "unknown"]
        for waiter in group:
            vain = waiter.queued is not None and waiter.outcome == "refused" and waiter.why == "busy"
            if not vain or touched(waiter, history.faults, (*RESTARTS, "disk", "fsync")):
                continue
            begin, end = waiter.queued, waiter.returned
            marks = [begin, *signs[bisect.bisect_right(signs, begin):bisect.bisect_left(signs, end)], end]
            gap = max(after - before for before, after in zip(marks, marks[1:]))
            before = 1 + len(asked_within(unknown, begin - LATEST_MS * MS, end))
            stops = touched(waiter, history.faults, ("stop",))
            stopped = sum(stop.returned - stop.invoked for stop in stops) + common(begin, end, slow)
            if gap > before * longest + stopped + SLACK_MS * MS:
                wrong.append(f"starved: {waiter}, and for {gap / 1e9:.3f} s no client had the lock")
    return wrong


def judge(history):
    """The violations of each promise, as texts."""
    return {"mutual exclusion": faults_of_exclusion(history),
            "order of tokens": faults_of_tokens(history),
            "durability": faults_of_durability(history),
            "fairness": faults_of_fairness(history),
            "starvation": faults_of_starvation(history),
            "answers": faults_of_silence(history)}
