#!/usr/bin/env python3
"""Tests the checker of the chaos test on correct histories, and on histories with one violation, which it
must find. The last line is "N passed, N failed"."""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from checker import carried_over, judge
from harness import equal, run_tests, test
from history import NEVER, History, Op, Recorder, load

MS = 1_000_000


def op(name, owner, invoked, returned, outcome="ok", **more):
    """An operation. All times are in ms."""
    for at in ("valid", "queued"):
        if at in more:
            more[at] *= MS
    more = {"place": "s0", "key": "k", "ttl": 100, **more}
    end = NEVER if returned is None else returned * MS
    return Op(process=owner, id=0, op=name, owner=owner, invoked=invoked * MS, returned=end,
              outcome=outcome, **more)


def lock(owner, invoked, returned, token, valid, **more):
    return op("lock", owner, invoked, returned, token=token, valid=valid, **more)


def waits(owner, invoked, queued, returned, outcome="refused", why="busy", **more):
    return op("lock", owner, invoked, returned, outcome, why=why, queued=queued, **{"wait": 1000, **more})


def fault(kind, invoked, returned, place="s0", **more):
    return op(kind, "", invoked, returned, place=place, **more)


def restart(kind, invoked, launched, returned, **more):
    return fault(kind, invoked, returned, launched=launched * MS, **more)


def ping(invoked, returned, outcome="ok", place="s0", stalled=0):
    return op("ping", "", invoked, returned, outcome, place=place, stalled=stalled * MS)


def late(invoked, returned):
    return op("late", "", invoked, returned, place="prober")


def found(*ops):
    """The names of the promises that a history violates."""
    return [name for name, texts in judge(History.of(ops)).items() if texts]


A = lock("a", 0, 10, 1, 100)


@test
def a_correct_history_has_no_violation(_):
    equal(found(), [])
    equal(found(A, op("unlock", "a", 50, 60), lock("b", 51, 55, 2, 151)), [])
    equal(found(A, lock("b", 20, 100, 2, 120)), [])  # a's hold has expired
    equal(found(A, lock("b", 20, 30, 2, 120, key="other"), lock("c", 20, 30, 2, 120, place="s1")), [])
    equal(found(A, op("renew", "a", 50, 60, valid=150), lock("b", 60, 151, 2, 200)), [])
    equal(found(lock("a", 0, 200, 1, 100), lock("b", 120, 150, 2, 220)), [])  # a never had a valid hold


@test
def two_holds_at_the_same_time_are_found(_):
    equal(found(A, lock("b", 20, 99, 2, 120)), ["mutual exclusion"])
    equal(found(A, lock("b", 20, 30, 2, 120, place="s0")), ["mutual exclusion"])
    equal(found(A, op("unlock", "a", 50, 60), lock("b", 20, 49, 2, 120)), ["mutual exclusion"])
    equal(found(A, op("renew", "a", 50, 60, valid=150), lock("b", 60, 149, 2, 200)), ["mutual exclusion"])
    equal(found(lock("a", 0, 10, 1, 100, place="quorum"), lock("b", 20, 99, 2, 120, place="quorum")),
          ["mutual exclusion"])
    equal(found(lock("a", 0, 10, 1, 100, place="quorum"),
                op("valid", "a", 90, 90, valid=130, place="quorum"),
                lock("b", 20, 129, 2, 190, place="quorum")), ["mutual exclusion"])


@test
def an_operation_of_unknown_outcome_may_end_a_hold_but_is_not_one(_):
    equal(found(A, op("lock", "b", 20, 30, "unknown")), [])
    equal(found(A, op("lock", "b", 20, None, "unknown")), [])
    equal(found(A, op("renew", "a", 50, None, "unknown"), lock("b", 60, 101, 2, 160)), [])
    equal(found(A, op("unlock", "a", 50, None, "unknown"), lock("b", 20, 51, 2, 120)), [])
    equal(found(A, op("unlock", "a", 50, None, "unknown"), lock("b", 20, 49, 2, 120)), ["mutual exclusion"])


@test
def readers_and_semaphore_holders_may_not_exceed_the_capacity(_):
    shared = [lock(name, 0, 10, number, 100, capacity=0) for number, name in enumerate("abc")]
    equal(found(*shared), [])
    equal(found(*shared, lock("w", 20, 30, 9, 120)), ["mutual exclusion"])
    equal(found(lock("w", 0, 10, 1, 100), lock("r", 20, 30, 2, 120, capacity=0)), ["mutual exclusion"])
    counted = [lock(name, 0, 10, number, 100, capacity=3) for number, name in enumerate("abc")]
    equal(found(*counted), [])
    equal(found(*counted, lock("d", 20, 30, 9, 120, capacity=3)), ["mutual exclusion"])
    equal(found(*counted, lock("d", 20, 30, 9, 120, capacity=0)), ["mutual exclusion"])


@test
def tokens_out_of_order_and_duplicate_tokens_are_found(_):
    freed = (lock("a", 0, 10, 5, 100), op("unlock", "a", 20, 30))
    equal(found(*freed, lock("b", 15, 40, 6, 115)), [])
    equal(found(*freed, lock("b", 15, 40, 5, 115)), ["order of tokens"])
    equal(found(*freed, lock("b", 15, 40, 4, 115)), ["order of tokens"])
    equal(found(*freed, lock("b", 5, 40, 4, 115)), [])  # b's request began before a's reply
    equal(found(*freed, lock("b", 5, 40, 5, 115)), ["order of tokens"])
    equal(found(*freed, lock("b", 15, 40, 4, 115, key="other")), [])
    later = lock("c", 300, 310, 6, 400)  # 6 is larger than a's 5, but smaller than b's 7
    equal(found(*freed, lock("b", 15, 40, 7, 115), later), ["order of tokens"])


@test
def a_quorum_does_not_order_readers_among_themselves(_):
    def at(place):
        reader = {"place": place, "capacity": 0}
        return [lock("a", 0, 10, 5, 100, **reader), lock("b", 20, 30, 5, 100, **reader)]

    equal(found(*at("quorum")), [])
    equal(found(*at("s0")), ["order of tokens"])
    equal(found(*at("quorum"), lock("w", 200, 210, 5, 300, place="quorum")), ["order of tokens"])
    equal(found(*at("quorum"), lock("w", 200, 210, 6, 300, place="quorum"),
                lock("c", 400, 410, 6, 500, place="quorum", capacity=0)), ["order of tokens"])


@test
def a_valid_hold_that_a_server_denies_is_lost(_):
    for name in ("renew", "check", "unlock"):
        equal(found(A, op(name, "a", 50, 99, "refused")), ["durability"])
        equal(found(A, op(name, "a", 50, 100, "refused")), [])
        equal(found(A, op(name, "a", 50, 99, "unknown")), [])
    renewed = op("renew", "a", 50, 60, valid=150)
    equal(found(A, renewed, op("check", "a", 120, 130, "refused")), ["durability"])
    equal(found(A, op("unlock", "a", 50, 60, "unknown"), op("unlock", "a", 70, 80, "refused")), [])
    equal(found(A, op("valid", "a", 50, 50, "refused")), [])  # the client itself no longer relies on it


@test
def only_a_stop_that_may_lose_data_excuses_a_lost_hold(_):
    denied = op("check", "a", 50, 99, "refused")
    for kind in ("kill", "term"):
        equal(found(A, denied, fault(kind, 20, 30, why="loses")), [])
        equal(found(A, denied, fault(kind, 20, 30)), ["durability"])
        equal(found(A, denied, fault(kind, 20, 30, "s1", why="loses")), ["durability"])
        equal(found(denied, fault(kind, 20, 30, why="loses"), lock("a", 31, 40, 1, 131)), ["durability"])
        equal(found(A, denied, fault(kind, 100, 110, why="loses")), ["durability"])
        # After the loss the server must wait until the lost hold has expired.
        equal(found(A, fault(kind, 20, 30, why="loses"), lock("b", 40, 50, 2, 140)), ["mutual exclusion"])
    for kind in ("stop", "disk", "fsync"):
        equal(found(A, denied, fault(kind, 20, 30)), ["durability"])
    by_quorum = (lock("a", 0, 10, 1, 100, place="quorum"),
                 op("unlock", "a", 50, 60, "refused", place="quorum"))
    equal(found(*by_quorum), ["durability"])
    equal(found(*by_quorum, fault("kill", 20, 30, "s1", why="loses")), [])


@test
def a_hold_is_lost_if_another_owner_gets_the_lock_after_a_kill(_):
    kill = fault("kill", 20, 30)
    equal(found(A, kill, lock("b", 40, 50, 2, 140)), ["mutual exclusion", "durability"])
    equal(found(A, kill, lock("b", 40, 101, 2, 140)), [])
    equal(found(A, fault("kill", 20, 30, "s1"), lock("b", 40, 50, 2, 140)), ["mutual exclusion"])
    equal(found(A, kill, lock("b", 40, 50, 1, 140)), ["mutual exclusion", "order of tokens", "durability"])
    equal(found(A, fault("term", 20, 30), lock("b", 40, 50, 2, 140)), ["mutual exclusion", "durability"])


@test
def holds_that_survive_a_kill_are_counted(_):
    kill = fault("kill", 20, 30)
    equal(carried_over(History.of([A, kill, op("renew", "a", 40, 50, valid=150)])), 1)
    equal(carried_over(History.of([A, kill, op("renew", "a", 40, 50, "refused")])), 0)
    equal(carried_over(History.of([A, kill])), 0)
    equal(carried_over(History.of([A, op("renew", "a", 40, 50, valid=150), fault("kill", 60, 70)])), 0)


@test
def a_request_that_overtakes_a_waiter_is_found(_):
    first = waits("b", 20, 25, 120, "ok", token=7, valid=220)
    equal(found(A, first, lock("c", 26, 240, 8, 340)), [])
    equal(found(A, first, lock("c", 26, 240, 6, 340)), ["fairness"])
    equal(found(A, first, lock("c", 24, 240, 6, 340)), [])  # c may have been in the queue before b
    equal(found(A, first, lock("c", 26, 240, 6, 340), fault("kill", 110, 115)), [])
    equal(found(A, first, lock("c", 26, 240, 6, 340), fault("kill", 110, 115, "s1")), ["fairness"])
    reader = waits("r", 30, 35, 120, "ok", token=6, valid=130, capacity=0)
    equal(found(A, waits("w", 20, 25, 240, "ok", token=7, valid=300), reader), ["fairness"])


@test
def an_overtaken_waiter_without_a_grant_is_found(_):
    first = waits("b", 20, 25, 1025)
    equal(found(A, first, lock("c", 30, 130, 2, 230)), ["fairness"])
    equal(found(A, first, lock("c", 30, 1020, 2, 1100)), [])  # b's wait may have ended before
    equal(found(A, waits("b", 20, 25, 1025, "unknown", ""), lock("c", 30, 130, 2, 230)), [])
    equal(found(A, waits("b", 20, 25, 1025, wait=-1), lock("c", 30, 1020, 2, 1100)), ["fairness"])


@test
def a_waiter_for_a_free_lock_is_found(_):
    long = waits("b", 20, 25, 3025, wait=3000)
    equal(found(A, long), ["starvation"])
    equal(found(A, waits("b", 20, 25, 2025, wait=2000)), [])
    equal(found(A, op("renew", "a", 1500, 1510, valid=1600), long), [])
    equal(found(A, op("renew", "b", 10, None, "unknown", ttl=2000), long), [])
    equal(found(A, long, fault("stop", 30, 2000)), [])
    equal(found(A, long, fault("stop", 30, 130)), ["starvation"])
    equal(found(A, long, late(30, 2000)), [])
    equal(found(A, long, late(30, 130)), ["starvation"])
    for kind in ("kill", "term", "disk", "fsync"):
        equal(found(A, long, fault(kind, 30, 130)), [])
        equal(found(A, long, fault(kind, 30, 130, "s1")), ["starvation"])
    equal(found(A, waits("b", 20, 25, 3025, why="RECOVERING")), [])


@test
def a_late_answer_is_found(_):
    equal(found(ping(0, 1000)), [])
    equal(found(ping(0, 1001)), ["answers"])
    equal(found(ping(0, 1001, "sent")), ["answers"])
    equal(found(ping(0, 900, "sent")), [])  # the run ended
    equal(found(ping(0, 100), ping(100, 1101), ping(200, 300)), ["answers"])  # the server forgot one client


@test
def a_server_that_does_not_listen_is_found(_):
    for outcome in ("down", "closed", "full"):
        equal(found(ping(50, 50, outcome)), ["answers"])
        for kind in ("kill", "term"):
            equal(found(ping(50, 51, outcome), restart(kind, 20, 60, 90)), [])
            equal(found(ping(10, 21, outcome), restart(kind, 20, 60, 90)), [])
            equal(found(ping(10, 18, outcome), restart(kind, 20, 60, 90)), ["answers"])
            equal(found(ping(3050, 3050, outcome), restart(kind, 20, 60, 90)), [])
            end = ping(3050, 3050, outcome)
            equal(found(end, restart(kind, 20, 60, 90), ping(3051, 3060)), [])
            equal(found(end, restart(kind, 20, 60, 90), ping(3040, 3045)), ["answers"])
            equal(found(ping(3070, 3070, outcome), restart(kind, 20, 60, 9000)), ["answers"])
            equal(found(ping(50, 51, outcome), fault(kind, 20, 60, "s1", launched=50 * MS)), ["answers"])
        for kind in ("stop", "disk", "fsync"):
            equal(found(ping(50, 51, outcome), fault(kind, 20, 90)), ["answers"])


@test
def a_server_that_loads_its_data_too_long_without_an_answer_is_found(_):
    equal(found(ping(100, 1100), restart("kill", 20, 60, 9000)), [])
    equal(found(ping(100, 1101), restart("kill", 20, 60, 9000)), ["answers"])
    equal(found(ping(50, 1061), restart("kill", 20, 60, 9000)), [])  # sent before the start
    equal(found(ping(100, 110), ping(200, 1201), restart("kill", 20, 60, 9000)), ["answers"])
    slow = fault("fsync", 0, 50, delay=100)
    equal(found(ping(3600, 3600, "down"), restart("kill", 20, 60, 90), slow), [])
    equal(found(ping(3800, 3800, "down"), restart("kill", 20, 60, 90), slow), ["answers"])


@test
def a_stopped_server_need_not_answer_until_a_second_after_it_continues(_):
    stop = fault("stop", 500, 3000)
    equal(found(ping(400, 3900), stop), [])
    equal(found(ping(400, 3901), stop), ["answers"])
    equal(found(ping(3000, 4001), stop), ["answers"])
    equal(found(ping(400, 3900), fault("stop", 500, 3000, "s1")), ["answers"])
    equal(found(ping(400, 3900), fault("stop", 500, 2000), fault("stop", 1500, 3000)), [])
    equal(found(ping(400, 3900), fault("stop", 500, 1500), fault("stop", 2000, 3000)), ["answers"])


@test
def the_time_in_which_the_machine_is_slow_does_not_count(_):
    slow = ping(0, 1500)
    equal(found(slow, ping(100, 600, place="null")), [])
    equal(found(slow, ping(100, 599, place="null")), ["answers"])
    equal(found(slow, ping(100, 400, place="null"), ping(200, 500, place="null")), ["answers"])
    equal(found(slow, *(ping(at, at + 49, place="null") for at in range(0, 1500, 50))), ["answers"])
    equal(found(slow, ping(1500, 2500, place="null")), ["answers"])
    equal(found(slow, late(100, 600)), [])
    equal(found(slow, late(100, 599)), ["answers"])
    equal(found(slow, late(100, 400), ping(300, 600, place="null")), [])
    equal(found(ping(0, 1500, place="null")), [])
    equal(found(ping(0, 1500, stalled=500)), [])
    equal(found(ping(0, 1500, stalled=499)), ["answers"])
    equal(found(ping(0, 1500, stalled=400), late(1400, 1500)), [])


@test
def slow_syncs_delay_an_answer_by_no_more_than_six_of_them(_):
    equal(found(ping(0, 1600), fault("fsync", 0, 2000, delay=100)), [])
    equal(found(ping(0, 1601), fault("fsync", 0, 2000, delay=100)), ["answers"])
    equal(found(ping(100, 1600), fault("fsync", 0, 50, delay=100)), [])  # a sync of before
    equal(found(ping(200, 1600), fault("fsync", 0, 50, delay=100)), ["answers"])
    equal(found(ping(0, 1600), fault("fsync", 0, 2000, "s1", delay=100)), ["answers"])


@test
def syncs_beside_the_work_delay_no_answer_except_after_a_start(_):
    def beside(delay=1000):
        return fault("fsync", 0, 30000, delay=delay, why="beside")

    grant = lock("a", 0, 10, 1, 100)
    equal(found(beside(), grant, ping(20, 1020)), [])
    equal(found(beside(), grant, ping(20, 1021)), ["answers"])
    equal(found(beside(), ping(20, 7020)), [])  # no lock was granted since the start
    equal(found(beside(), ping(20, 7021)), ["answers"])
    start = restart("term", 20, 60, 90)
    equal(found(beside(), grant, start, ping(70, 7070)), [])
    equal(found(beside(), grant, start, lock("b", 70, 200, 2, 300), ping(199, 7000)), [])
    equal(found(beside(), grant, start, lock("b", 110, 200, 2, 300), ping(201, 1202)), ["answers"])
    equal(found(beside(), grant, fault("disk", 50, 500), ping(400, 7400)), [])
    equal(found(beside(), grant, fault("disk", 50, 500), ping(501, 1502)), ["answers"])


@test
def a_reply_with_a_token_above_the_reserve_may_wait_for_the_write_of_meta(_):
    def reserve(at, end, us):
        return op("reserve", "", at, end, token=(1 << 50) + us)

    beside, grant = fault("fsync", 0, 30000, delay=1000, why="beside"), lock("a", 0, 10, 1, 100)
    for raised, wrong in ((60_000_000, []), (59_999_999, ["answers"])):
        equal(found(beside, grant, reserve(15, 16, 0), ping(20, 4000), reserve(30, 4000, raised)), wrong)
    early = (reserve(15, 16, 0), reserve(17, 18, 60_000_000), reserve(30, 4000, 60_000_001))
    equal(found(beside, grant, ping(20, 4000), *early), ["answers"])


@test
def a_server_may_withhold_an_answer_when_the_disk_fails_but_must_answer_the_next_one(_):
    disk = fault("disk", 50, 3000)
    equal(found(disk, ping(0, 3500), ping(100, 110)), [])
    equal(found(disk, ping(0, 3500), ping(100, 1200), ping(200, 210)), [])
    equal(found(disk, ping(0, 3500)), ["answers"])
    equal(found(disk, ping(0, 3500), ping(1001, 1010)), ["answers"])
    equal(found(disk, ping(0, 3500), ping(100, 1200)), ["answers"])
    equal(found(fault("disk", 50, 3000, "s1"), ping(0, 3500), ping(100, 110)), ["answers"])
    equal(found(fault("disk", 3600, 4000), ping(0, 3500), ping(100, 110)), ["answers"])


@test
def a_history_is_written_and_read_back(_):
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        path = pathlib.Path(folder, "h")
        recorder = Recorder(path, "c")
        number, begun = recorder.invoke(op="lock", place="s0", key="k", owner="o", ttl=7, wait=5)
        recorder.write(id=number, queued=begun + 1)
        recorder.returned(number, "ok", token=3, valid=begun + 9)
        recorder.invoke(op="unlock", place="s0", key="k", owner="o")
        recorder.invoke(op="kill", place="s0")
        recorder.write(id=3, why="loses")
        recorder.write(id=4, op="ping", place="s0", invoked=5, returned=6, outcome="ok")
        cut_off = json.dumps({"process": "c", "id": 2, "returned": 1})
        path.write_text(path.read_text("utf-8") + cut_off, "utf-8")
        history = load([path])
    taken, given = history.ops
    equal((taken.op, taken.token, taken.ttl), ("lock", 3, 7))
    equal((taken.queued, taken.valid), (begun + 1, begun + 9))
    equal(taken.returned >= taken.invoked == begun, True)
    equal((given.outcome, given.returned), ("unknown", NEVER))  # the line of its end was cut
    equal([(kill.op, kill.why) for kill in history.faults], [("kill", "loses")])
    equal([(probe.op, probe.returned) for probe in history.probes], [("ping", 6)])


if __name__ == "__main__":
    run_tests()
