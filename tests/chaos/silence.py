"""Checks a history (history.py) for PINGs that a running server did not answer in time. Spans in which the
test stopped the server do not count, nor do spans in which the machine was slow: the prober ran late, the
null server answered late, or the server waited for a processor."""
import bisect
import itertools
import operator
from dataclasses import dataclass

from history import NEVER

MS = 1_000_000
INVOKED = operator.attrgetter("invoked")
LIMIT_MS = 1000
SLOW_MS = 50    # an answer of the null server that takes longer shows that the machine is slow
START_MS = 3000  # from the start of the process until it listens, at most
# Syncs that a reply may wait for: one that runs and one of the journal, and four of `meta`: each of its
# writes syncs a file and the folder, and a write that runs may be followed by another one. With an
# `appendfsync` other than always, and without jumps of wall clocks, the server syncs beside its work.
SYNCS = 6
# A write of `meta` moves the token reserve by less than this, in microseconds, unless a reply waits for it
# because its token is above the reserve: as when a quorum raises the tokens after another server's crash.
RESERVE_US = 60_000_000
RESTARTS = ("kill", "term")
REJECTED = ("closed", "down", "full")


def union(spans):
    """The spans as disjoint ones in order."""
    joined = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((begin, end))
    return joined


def common(begin, end, spans):
    """The part of the time from begin to end that is in the spans (of union)."""
    first = max(bisect.bisect_right(spans, (begin, NEVER)) - 1, 0)
    total = 0
    for at, until in spans[first:]:
        if at >= end:
            break
        total += max(min(until, end) - max(at, begin), 0)
    return total


def next_of(times, begin):
    """The first of these times, which are in order, after `begin`."""
    return next(iter(times[bisect.bisect_right(times, begin):][:1]), NEVER)


def slow_spans(probes):
    """The spans in which the machine was slow."""
    return union((probe.invoked, probe.returned) for probe in probes
                 if probe.op == "late" or
                 probe.place == "null" and probe.returned - probe.invoked > SLOW_MS * MS)


def raises(place, history):
    """The spans in which a token of the server was above its reserve."""
    reserves = [probe for probe in history.probes if probe.place == place and probe.token]
    return [(before.invoked, after.returned) for before, after in itertools.pairwise(reserves)
            if after.token - before.token >= RESERVE_US]


@dataclass
class Silence:
    """The reasons for late answers of one server, as disjoint spans: `down`, in which no process listened;
    `held`, in which none listened, or the process was stopped, or the machine was slow; `saving`, in which
    any server may wait for syncs of `meta`: from a start to the first grant after it, when a token was
    above the reserve, and while the disk fails or the folder is another one. And its faults `fsync` and
    `disk`."""
    down: list
    held: list
    saving: list
    fsync: list
    disk: list

    @staticmethod
    def of(place, history, slow, pings):
        mine = [fault for fault in history.faults if fault.place == place]
        result = Silence([], [], [], [fault for fault in mine if fault.op == "fsync"],
                         [fault for fault in mine if fault.op == "disk"])
        grants = sorted(op.returned for op in history.ops
                        if op.place == place and op.op == "lock" and op.outcome == "ok")
        starts = [0, *(fault.launched for fault in mine if fault.op in RESTARTS)]
        result.saving = union([(at, next_of(grants, at)) for at in starts] + raises(place, history) +
                              [(fault.invoked, fault.returned) for fault in result.disk])
        connected = [ping.invoked for ping in pings if ping.outcome not in REJECTED]
        result.down = union(result.down_span(fault, slow, connected)
                            for fault in mine if fault.op in RESTARTS)
        stops = [(fault.invoked, fault.returned) for fault in mine if fault.op == "stop"]
        result.held = union([*result.down, *stops, *slow])
        return result

    def down_span(self, fault, slow, connected):
        """From the signal until the server that starts then listens. `connected` are the times of the PINGs
        that found a server."""
        begun = fault.launched + START_MS * MS
        begun += self.syncs(fault.launched, begun) + common(fault.launched, begun, slow)
        return fault.invoked, min(begun, next_of(connected, fault.launched))

    def syncs(self, begin, end):
        """The time for which slow syncs may delay an answer."""
        saving = common(begin, end, self.saving) > 0
        return SYNCS * MS * max((fault.delay for fault in self.fsync
                                 if fault.invoked < end and fault.returned + fault.delay * MS > begin and
                                 (saving or fault.why != "beside")), default=0)

    def waited(self, ping):
        """The time for which the server itself delayed the answer."""
        held = common(ping.invoked, ping.returned, self.held)
        return ping.returned - ping.invoked - held - ping.stalled

    def is_late(self, ping):
        if ping.outcome in REJECTED:
            return common(ping.invoked - 1, ping.returned + 1, self.down) == 0
        return self.waited(ping) > LIMIT_MS * MS + self.syncs(ping.invoked, ping.returned)

    def is_withheld(self, ping, later):
        """Whether the answer may be one of those that the server withholds because the disk failed in the
        loop iteration that granted a lock. Then the server must answer the next PINGs."""
        failing = any(fault.invoked < ping.returned and fault.returned > ping.invoked
                      for fault in self.disk)
        answered = any(other.outcome == "ok" and not self.is_late(other) for other in later)
        return failing and answered and ping.outcome not in REJECTED


def faults_of_silence(history):
    """Finds PINGs that a server did not answer within LIMIT_MS."""
    wrong = []
    slow = slow_spans(history.probes)
    for place in sorted({probe.place for probe in history.probes} - {"null", "prober"}):
        pings = [probe for probe in history.probes if probe.op == "ping" and probe.place == place]
        silence = Silence.of(place, history, slow, pings)
        for ping in pings:
            if not silence.is_late(ping):
                continue
            first = bisect.bisect_right(pings, ping.invoked, key=INVOKED)
            last = bisect.bisect_right(pings, ping.invoked + LIMIT_MS * MS, key=INVOKED)
            if not silence.is_withheld(ping, pings[first:last]):
                wrong.append(f"no answer in time: PING to {place}, {ping.invoked / 1e9:.6f} to "
                             f"{ping.returned / 1e9:.6f} {ping.outcome}; {silence.waited(ping) / 1e9:.3f} "
                             "s without the faults of the process and the stalls of the machine")
    return wrong


def slowest(history):
    """Figures: the number of PINGs that servers answered; the longest of these answers without the spans
    that do not count, in seconds, with fast and with slow syncs; the seconds in which the machine was
    slow."""
    slow = slow_spans(history.probes)
    waits = {False: [0], True: [0]}
    for place in {probe.place for probe in history.probes} - {"null", "prober"}:
        pings = [probe for probe in history.probes if probe.op == "ping" and probe.place == place]
        silence = Silence.of(place, history, slow, pings)
        for probe in pings:
            if probe.outcome == "ok":
                waits[silence.syncs(probe.invoked, probe.returned) > 0].append(silence.waited(probe) / 1e9)
    return (sum(map(len, waits.values())) - 2, max(waits[False]), max(waits[True]),
            sum(end - begin for begin, end in slow) / 1e9)
