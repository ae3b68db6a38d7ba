#!/usr/bin/env python3
"""The wall clock is set while the server runs or is stopped, and the server is killed. Its holds expire at
the same time as without the change (libfaketime). The last line is "N passed, N failed". HOLDFAST_SERVER
names the server."""
import pathlib
import time

from harness import LIMIT_S, Clock, Server, crc32c, edit_meta, equal, has, journals, run_tests, test, until

HOUR = 3600
TTL_MS = 40_000
SHORT_TTL_MS = 2500  # of holds whose end a test awaits
SLACK_MS = 1500  # the difference between two clocks


class Life(Server):
    """A server on the folder. From its start, its wall clock is `ahead` seconds ahead."""

    def __init__(self, folder, *options, ahead=0):
        self.clock = Clock(folder.with_suffix(".clock"))
        self.clock.set(ahead)
        super().__init__(folder, *options, env=self.clock.environment())
        self.sees(ahead)

    def set_clock(self, ahead):
        self.clock.set(ahead)
        self.sees(ahead)

    def sees(self, ahead):
        """Checks that the server uses the clock that the test has set."""
        equal(abs(int(self.ask("TIME")[0]) - time.time() - ahead) < LIMIT_S, True)


class Hold:
    """A hold of alice, and between which times the server granted it."""

    def __init__(self, server, key="k", ttl_ms=TTL_MS):
        self.key, self.ttl_ms = key, ttl_ms
        self.asked = time.monotonic()
        server.lock(key, "alice", ttl_ms)
        self.granted = time.monotonic()

    def keeps_its_deadline(self, server):
        """Checks that the hold has the rest of its TTL, however slow the machine is."""
        before = time.monotonic()
        left_ms = server.ask("PTTL", self.key)
        after = time.monotonic()
        least_ms = self.ttl_ms - (after - self.asked) * 1000 - SLACK_MS
        equal(max(least_ms, 0) < left_ms <= self.ttl_ms - (before - self.granted) * 1000 + SLACK_MS, True)

    def expires(self, server):
        """Waits for the end of the hold. It does not come early."""
        has(str(server.ask("LOCK", self.key, "bob", TTL_MS, "WAIT", LIMIT_S * 1000)), "bob")
        equal(self.ttl_ms <= (time.monotonic() - self.asked) * 1000, True)


def set_and_killed(folder, before, after, *options):
    """Locks with the clock `before` seconds ahead; sets it to `after`, kills and restarts the server."""
    with Life(folder, *options, ahead=before) as server:
        hold, short = Hold(server), Hold(server, "short", SHORT_TTL_MS)
        server.lock("shared", "alice", SHORT_TTL_MS, "SHARED")
        server.set_clock(after)
        server.lock("later", "carol", 500 * TTL_MS)
        server.kill()
    with Life(folder, *options, ahead=after) as server:
        equal(server.ask("GET", "k"), b"alice")
        left = server.ask("PTTL", "later")
        equal(500 * TTL_MS - 2 * TTL_MS < left <= 500 * TTL_MS, True)
        equal(abs(int(server.info("wall_clock_moved_ms")) / 1000 - (after - before)) < 1, True)
        hold.keeps_its_deadline(server)
        short.expires(server)
        has(str(server.ask("LOCK", "shared", "bob", TTL_MS, "WAIT", LIMIT_S * 1000)), "bob")
    has(server.log, "the wall clock was moved by")


@test
def a_clock_set_ahead_expires_no_hold_early(folder):
    set_and_killed(folder, 0, HOUR)


@test
def a_clock_set_back_extends_no_hold(folder):
    set_and_killed(folder, 0, -HOUR, "--appendfsync", "always")


@test
def a_clock_corrected_after_a_start_72_hours_ahead_changes_no_deadline(folder):
    set_and_killed(folder, 72 * HOUR, 0)


@test
def a_snapshot_and_a_journal_with_different_clocks_keep_their_deadlines(folder):
    with Life(folder) as server:
        server.lock("saved", "alice", 500 * TTL_MS)
        server.set_clock(HOUR)
        equal(server.ask("SAVE"), "OK")
        server.set_clock(-HOUR)
        hold = Hold(server)
        server.kill()
    with Life(folder, ahead=9 * HOUR) as server:
        equal(500 * TTL_MS - 2 * TTL_MS < server.ask("PTTL", "saved") <= 500 * TTL_MS, True)
        hold.keeps_its_deadline(server)


@test
def a_clock_set_at_each_of_several_restarts_changes_no_deadline(folder):
    hold = None
    for ahead in (0, HOUR, -HOUR, 20 * HOUR):
        with Life(folder, ahead=ahead) as server:
            hold = hold or Hold(server)
            equal(server.ask("GET", "k"), b"alice")
            hold.keeps_its_deadline(server)
            server.kill()
    with Life(folder) as server:
        hold.keeps_its_deadline(server)


def simulate_reboot(folder):
    """Edits meta and the only journal so that they are from an earlier boot of the machine."""
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
def after_a_reboot_the_wall_clock_decides_once(folder):
    with Life(folder) as server:
        server.lock("k", "alice", 2 * HOUR * 1000)
        server.kill()
    simulate_reboot(folder)
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
def setting_the_clock_neither_shortens_nor_restarts_a_recovery_wait(folder):
    with Life(folder, "--appendonly", "no", "--recovery-wait", "5000") as server:
        server.lock("k", "alice", 60 * TTL_MS)
        server.kill()
    for ahead in (0, HOUR, -HOUR):
        equal(5000 - SLACK_MS < recovering_ms(folder, ahead) <= 5000, True)
    edit_meta(folder, "^horizon-boot-ms .*$", "horizon-boot-ms 1")
    for ahead in (0, HOUR, -HOUR):
        equal(recovering_ms(folder, ahead), 0)


@test
def a_folder_of_a_version_without_clock_data_is_read(folder):
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
