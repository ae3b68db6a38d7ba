"""Figures of a history (history.py) in which clients contend for one lock, and a cut begins at some moment:
how the grants go on. Bounds for them."""
import bisect
import statistics
from dataclasses import dataclass

TIMEOUT_S = 1.0  # after the cut, until the rate and the shares count: the ttl of the contenders
SECOND = 1_000_000_000


@dataclass
class Span:
    """Times in ns: grants before the cut count from `begin` on."""
    begin: int
    cut: int
    end: int


@dataclass
class Figures:
    before: float  # grants a second
    after: float
    gap_s: float   # the longest time without a grant after the cut
    wait_s: float  # the longest wait of a client that is no guest, also one that goes on at the end
    least: int     # grants of the least and of the most served client after the cut, without guests
    most: int
    share_s: float  # the fair wait: contenders x median time from grant to grant before the cut

    def ratio(self):
        return self.after / self.before if self.before else 0.0

    def evenness(self):
        return self.least / self.most if self.most else 0.0


@dataclass
class Bounds:
    """What a run must keep. `rate`: this part of the pattern's rate."""
    rate: float
    wait_s: float
    shares: float
    evenness: float


# What the quorum promises on a machine with time for all its processes.
PROMISED = Bounds(rate=1.0, wait_s=3.0, shares=3.0, evenness=1 / 3)
# On a busy machine. Clients that wait in one server's queue miss these by a factor of ten.
GENEROUS = Bounds(rate=0.4, wait_s=7.0, shares=7.0, evenness=0.1)


def client_of(op):
    """The node of the process: the name without the number of its start and of its thread."""
    return op.process.split("-")[0]


def figures(ops, span, judged):
    """`ops`: the operations of contenders, guests included. `judged`: the other clients' names."""
    locks = [op for op in ops if op.op == "lock"]
    grants = sorted(op.returned for op in locks if op.outcome == "ok")
    first, cut = bisect.bisect_left(grants, span.begin), bisect.bisect_left(grants, span.cut)
    counted_from = span.cut + int(TIMEOUT_S * SECOND)
    counted = [at for at in grants if counted_from <= at < span.end]
    marks = [span.cut, *(at for at in grants[cut:] if at < span.end), span.end]
    before = grants[first:cut]
    between = [after - earlier for earlier, after in zip(before, before[1:])]
    shares = {name: 0 for name in judged}
    longest = 0
    for op in locks:
        name = client_of(op)
        if name not in shares or op.returned < span.cut or op.invoked >= span.end:
            continue
        longest = max(longest, min(op.returned, span.end) - op.invoked)
        shares[name] += op.outcome == "ok" and counted_from <= op.returned < span.end
    return Figures(
        before=len(before) * SECOND / max(span.cut - span.begin, 1),
        after=len(counted) * SECOND / max(span.end - counted_from, 1),
        gap_s=max(after - earlier for earlier, after in zip(marks, marks[1:])) / SECOND,
        wait_s=longest / SECOND, least=min(shares.values()), most=max(shares.values()),
        share_s=len({client_of(op) for op in locks}) * statistics.median(between or [0]) / SECOND)


def misses(found, bounds, rate):
    """What the figures miss of the bounds, as texts. `rate`: of the pattern; 0: nothing is asked."""
    if rate == 0:
        return []
    texts = []
    if found.before == 0 or found.ratio() < bounds.rate * rate:
        texts.append(f"{found.after:.1f} grants/s, {found.ratio():.2f} of before; "
                     f"at least {bounds.rate * rate:.2f}")
    longest_s = max(bounds.wait_s, bounds.shares * found.share_s)
    if found.wait_s > longest_s:
        texts.append(f"a wait of {found.wait_s:.1f} s; at most {longest_s:.1f} s")
    if found.evenness() < bounds.evenness:
        texts.append(f"the least served client has {found.least} grants, the most served {found.most}; "
                     f"at least {bounds.evenness:.2f} of it")
    return texts
