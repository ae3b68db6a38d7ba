#!/usr/bin/env python3
"""A server whose wall clock is set while it runs or does not run, and that is killed: its holds end when
they would have ended (libfaketime). Closes with "N passed, N failed". HOLDFAST_SERVER names the server."""
import pathlib
import time

from harness import LIMIT_S, Clock, Server, crc32c, edit_meta, equal, has, journals, run_tests, test, until

HOUR = 3600
TTL_MS = 4000
SLACK_MS = 1500  # from what is read of a clock to what is done


class Life(Server):
    """A server on the folder, by a clock that is `ahead` seconds ahead from its start on."""

    def __init__(self, folder, *options, ahead=0):
        self.clock = Clock(folder.with_suffix(".clock"))
        self.clock.set(ahead)
        super().__init__(folder, *options, env=self.clock.environment())
        self.sees(ahead)

    def set_clock(self, ahead):
        self.clock.set(ahead)
        self.sees(ahead)

    def sees(self, ahead):
        """The clock is set, but for a server that does not take it from us."""
        equal(abs(int(self.ask("TIME")[0]) - time.time() - ahead) < LIMIT_S, True)


def ends_in_time(server, began, key="k", ttl_ms=TTL_MS):
    """The hold, asked for at `began`, is there until its ttl is over, and no longer."""
    left = began + ttl_ms / 1000 - time.monotonic()
    equal(0 < server.ask("PTTL", key) / 1000 <= left + SLACK_MS / 1000, True)
    has(str(server.ask("LOCK", key, "bob", TTL_MS, "WAIT", LIMIT_S * 1000)), "bob")
    took_ms = (time.monotonic() - began) * 1000
    equal(ttl_ms <= took_ms < ttl_ms + SLACK_MS, True)


def set_and_killed(folder, before, after, *options):
    """Locked at `before` seconds ahead, killed and started again at `after`."""
    with Life(folder, *options, ahead=before) as server:
        began = time.monotonic()
        server.lock("k", "alice", TTL_MS)
        server.lock("shared", "alice", TTL_MS, "SHARED")
        server.set_clock(after)
        server.lock("later", "carol", 500 * TTL_MS)
        server.kill()
    with Life(folder, *options, ahead=after) as server:
        equal(server.ask("GET", "k"), b"alice")
        left = server.ask("PTTL", "later")
        equal(500 * TTL_MS - 2 * TTL_MS < left <= 500 * TTL_MS, True)
        equal(abs(int(server.info("wall_clock_moved_ms")) / 1000 - (after - before)) < 1, True)
        ends_in_time(server, began)
        has(str(server.ask("LOCK", "shared", "bob", TTL_MS, "WAIT", SLACK_MS)), "bob")
    has(server.log, "the wall clock was moved by")


@test
def a_clock_set_ahead_ends_no_hold_early(folder):
    set_and_killed(folder, 0, HOUR)


@test
def a_clock_set_back_keeps_no_hold_longer(folder):
    set_and_killed(folder, 0, -HOUR, "--appendfsync", "always")


@test
def a_clock_put_right_after_a_start_ahead_of_time_changes_nothing(folder):
    set_and_killed(folder, 72 * HOUR, 0)


@test
def a_snapshot_and_a_journal_by_different_clocks(folder):
    with Life(folder) as server:
        server.lock("saved", "alice", 500 * TTL_MS)
        server.set_clock(HOUR)
        equal(server.ask("SAVE"), "OK")
        server.set_clock(-HOUR)
        began = time.monotonic()
        server.lock("k", "alice", TTL_MS)
        server.kill()
    with Life(folder, ahead=9 * HOUR) as server:
        equal(500 * TTL_MS - 2 * TTL_MS < server.ask("PTTL", "saved") <= 500 * TTL_MS, True)
        ends_in_time(server, began)


@test
def a_clock_set_while_no_server_runs_and_again_after_many_starts(folder):
    began = None
    for ahead in (0, HOUR, -HOUR, 20 * HOUR):
        with Life(folder, ahead=ahead) as server:
            if began is None:
                began = time.monotonic()
                server.lock("k", "alice", 3 * TTL_MS)
            equal(server.ask("GET", "k"), b"alice")
            server.kill()
    with Life(folder) as server:
        ends_in_time(server, began, ttl_ms=3 * TTL_MS)


def of_another_start(folder):
    """Has meta and the only journal say that the machine was started anew since."""
    edit_meta(folder, "^clock-boot-id .*$", "clock-boot-id another")
    boot_id = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip().encode()
    path, head = journals(folder)[0], 39
    data = path.read_bytes()
    size = int.from_bytes(data[head + 8:head + 12], "little")
    frame = data[head + 8:head + 20 + size].replace(boot_id, b"x" * len(boot_id))
    equal(frame.count(b"x" * len(boot_id)), 1)
    crc = crc32c(frame).to_bytes(4, "little")
    path.write_bytes(data[:head + 4] + crc + frame + data[head + 20 + size:])


@test
def after_another_start_of_the_machine_the_wall_clock_decides_once(folder):
    with Life(folder) as server:
        server.lock("k", "alice", 2 * HOUR * 1000)
        server.kill()
    of_another_start(folder)
    for ahead in (HOUR, 0, -20 * HOUR, 72 * HOUR):
        with Life(folder, ahead=ahead) as server:
            equal(HOUR - LIMIT_S < server.ask("PTTL", "k") / 1000 <= HOUR, True)
            server.kill()


def recovering_ms(folder, ahead):
    with Life(folder, "--appendonly", "no", "--recovery-wait", "5000", ahead=ahead) as server:
        left_ms = int(server.info("recovering_ms"))
        server.kill()
    return left_ms


@test
def a_recovery_wait_neither_ends_early_nor_begins_anew_by_a_clock_that_is_set(folder):
    with Life(folder, "--appendonly", "no", "--recovery-wait", "5000") as server:
        server.lock("k", "alice", 60 * TTL_MS)
        server.kill()
    for ahead in (0, HOUR, -HOUR):
        equal(5000 - SLACK_MS < recovering_ms(folder, ahead) <= 5000, True)
    edit_meta(folder, "^horizon-boot-ms .*$", "horizon-boot-ms 1")
    for ahead in (0, HOUR, -HOUR):
        equal(recovering_ms(folder, ahead), 0)


@test
def a_folder_of_before_there_were_clocks_is_read(folder):
    with Life(folder) as server:
        server.lock("k", "alice", 60 * TTL_MS)
        server.kill()
    edit_meta(folder, "^clock-boot-id .*\n.*\n.*\n.*\n", "")
    edit_meta(folder, "^version 3$", "version 1")
    with Life(folder) as server:
        equal(server.ask("GET", "k"), b"alice")
        server.kill()
    has((folder / "meta").read_text("utf-8"), "version 3", "clock-boot-id ")


if __name__ == "__main__":
    run_tests()
