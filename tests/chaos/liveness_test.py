#!/usr/bin/env python3
"""Tests the figures of cuts.py and their bounds on histories, and its patterns. The last line is "N passed,
N failed"."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from cut_patterns import GROUPS, PATTERNS
from cut_trial import scene_of
from harness import equal, has, run_tests, test
from history import NEVER, Op
from liveness import PROMISED, SECOND, Span, figures, misses

MS = 1_000_000
CLIENTS = ["c0", "c1", "c2", "c3"]
SPAN = Span(begin=0, cut=5 * SECOND, end=15 * SECOND)


def lock(client, invoked_ms, returned_ms):
    """returned_ms None: the wait goes on."""
    granted = returned_ms is not None
    return Op(process=f"{client}-0.0", id=0, op="lock", place="quorum", invoked=int(invoked_ms * MS),
              returned=int(returned_ms * MS) if granted else NEVER, outcome="ok" if granted else "unknown")


def turns(begin_ms, end_ms, step_ms=10, clients=tuple(CLIENTS)):
    """The clients have the lock in turn. Each waits from its grant to its next one."""
    return [lock(clients[i % len(clients)], at - step_ms * len(clients), at)
            for i, at in enumerate(range(begin_ms, end_ms, step_ms))]


def missed(ops, rate=0.5, clients=tuple(CLIENTS)):
    return misses(figures(ops, SPAN, clients), PROMISED, rate)


@test
def even_turns_miss_no_bound(_):
    found = figures(turns(0, 15_000), SPAN, CLIENTS)
    equal((found.before, found.after), (100.0, 100.0))
    equal((found.gap_s, found.wait_s, found.share_s), (0.01, 0.04, 0.04))
    equal((found.least, found.most), (225, 225))
    equal(missed(turns(0, 15_000)), [])


@test
def the_rate_counts_one_timeout_after_the_cut(_):
    equal(figures(turns(0, 5000) + turns(6000, 15_000), SPAN, CLIENTS).after, 100.0)
    slow = turns(0, 5000) + turns(5000, 15_000, step_ms=20)
    equal(missed(slow), [])
    has(missed(turns(0, 5000) + turns(5000, 15_000, step_ms=21))[0], "0.48 of before; at least 0.50")
    equal(missed(turns(0, 5000) + turns(5000, 15_000, step_ms=21), rate=1 / 3), [])


@test
def no_grants_after_the_cut_miss_all_bounds(_):
    waits = [lock(client, 5000, None) for client in CLIENTS]
    texts = missed(turns(0, 5000) + waits)
    equal(len(texts), 3)
    has(texts[1], "a wait of 10.0 s; at most 3.0 s")
    equal(figures(turns(0, 5000) + waits, SPAN, CLIENTS).gap_s, 10.0)
    equal(missed(turns(0, 5000) + waits, rate=0), [])
    equal(len(missed(waits)), 3)


@test
def a_wait_counts_from_its_begin_and_also_without_an_end(_):
    others = turns(0, 15_000, clients=("c0", "c1", "c2")) + turns(5000, 10_000, 100, clients=("c3",))
    equal(figures(others + [lock("c3", 4000, 7000)], SPAN, CLIENTS).wait_s, 3.0)
    equal(figures(others + [lock("c3", 12_500, None)], SPAN, CLIENTS).wait_s, 2.5)
    equal(figures(others + [lock("c3", 1000, 4900)], SPAN, CLIENTS).wait_s, 0.1)  # ended before the cut
    has(missed(others + [lock("c3", 10_000, None)])[0], "a wait of 5.0 s; at most 3.0 s")


@test
def a_client_that_is_served_less_is_found(_):
    uneven = turns(0, 15_000, clients=("c0", "c1", "c2")) + turns(0, 15_000, 100, clients=("c3",))
    has(missed(uneven)[0], "the least served client has 90 grants, the most served 300")
    equal(missed(uneven, clients=("c0", "c1", "c2")), [])  # c3 is a guest


@test
def many_contenders_may_wait_for_three_fair_shares(_):
    names = [f"c{i}" for i in range(100)]
    ops = turns(0, 15_000, step_ms=50, clients=tuple(names))
    equal(round(figures(ops, SPAN, names).share_s, 3), 5.0)
    equal(missed(ops, clients=names), [])


@test
def all_but_guests_always_reach_a_majority(_):
    for servers in (3, 5):
        for pattern in PATTERNS:
            scene = scene_of(pattern, servers, 6, 7, 20)
            for step in range(60):
                lost = pattern.pairs(scene, step * 0.13)
                for client in scene.clients:
                    cut = [s for s in scene.servers if (client, s) in lost or (s, client) in lost]
                    equal((pattern.name, len(cut) <= scene.minority()), (pattern.name, True))


@test
def each_group_misses_another_minority(_):
    pattern = next(pattern for pattern in PATTERNS if pattern.name == "each")
    for servers, number in ((3, 1), (5, 2)):
        scene = scene_of(pattern, servers, 6, 7, 20)
        lost = pattern.pairs(scene, 1.0)
        missing = [{s for s in scene.servers if (client, s) in lost and (s, client) in lost}
                   for client in scene.clients[:GROUPS]]
        equal([len(some) for some in missing], [number] * GROUPS)
        equal(len(set(map(frozenset, missing))), GROUPS)


@test
def one_way_cuts_lose_packets_of_one_way(_):
    for name, way in (("requests", "c"), ("answers", "s")):
        pattern = next(pattern for pattern in PATTERNS if pattern.name == name)
        lost = pattern.pairs(scene_of(pattern, 3, 6, 7, 20), 1.0)
        equal(({sender[0] for sender, _ in lost}, len(lost)), ({way}, 6))


@test
def a_seed_determines_the_cuts_and_the_events(_):
    for pattern in PATTERNS:
        one, same, other = (scene_of(pattern, 5, 6, seed, 20) for seed in (7, 7, 8))
        equal(pattern.events(one), pattern.events(same))
        times = [step * 0.31 for step in range(30)]
        equal([pattern.pairs(one, t) for t in times], [pattern.pairs(same, t) for t in times])
        if pattern.name.startswith("flap"):
            equal([pattern.pairs(one, t) for t in times] == [pattern.pairs(other, t) for t in times], False)


if __name__ == "__main__":
    run_tests()
