#!/usr/bin/env python3
"""The command `holdfast run` against the real server: its exit statuses, and the signals, files and
environment of the command that it runs. No process of that command may outlive its lock. The last line is
"N passed, N failed". HOLDFAST_SERVER names the server; the command is in the same folder.
run_terminal_test.py tests terminals."""
import contextlib
import ctypes
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import LIMIT_S, TTL_MS, equal, has, run_tests, test, until
from job import (COMMAND, NAME, RECORDS, RECORDS_AND_IGNORES_TERM, Run, alive, call, info, recorded, run,
                 service, start)

FORWARDED = ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2"]
# Prints "up", then waits until its input ends.
UNTIL_EOF = ["sh", "-c", "echo up; cat >&2; echo down"]


def waits(server):
    return (now := info(server)) and now["waiters"]


def children(pid):
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if path.read_text().rpartition(")")[2].split()[1] == str(pid):
                found.append(int(path.parent.name))
    return found


@test
def run_exits_with_the_status_of_its_command(server):
    run(0, [], ["true"])
    run(3, [], ["sh", "-c", "exit 3"])
    run(128 + 15, [], ["sh", "-c", "kill -TERM $$"])
    equal(info(server), None)


@test
def the_lock_is_held_while_the_command_runs_and_then_released(server):
    held = Run([], UNTIL_EOF)
    equal(held.line(), "up")
    equal(len(info(server)["holders"]), 1)
    held.ended(0)
    equal(info(server), None)


@test
def run_reaps_the_processes_that_it_adopts(_):
    """As process 1 of a container, or as a subreaper, which needs no privilege."""
    pr_set_child_subreaper = 36
    libc = ctypes.CDLL(None)
    script = "for i in 1 2 3; do (sleep 0.1 & sleep 0.2 &); done; echo up; cat"
    held = Run([], ["sh", "-c", script], before=lambda: libc.prctl(pr_set_child_subreaper, 1))
    equal(held.line(), "up")
    equal(len(children(held.process.pid)) > 2, True)
    until(lambda: len(children(held.process.pid)) == 2)  # the command and the guardian
    held.ended(0)


# Leaves a process in the group, which reads the same pipe.
LEFT_BEHIND = "exec 3<&0; { echo up; cat <&3; } & exit 3"


def left_behind():
    held = Run([], ["sh", "-c", LEFT_BEHIND])
    equal(held.line(), "up")
    equal(held.process.stderr.readline(), f"holdfast: {NAME}: the command ended; the lock lasts until the "
          "processes that it left behind end\n")
    return held


@test
def the_lock_lasts_until_the_processes_that_the_command_left_behind_end(server):
    held = left_behind()
    equal(len(info(server)["holders"]), 1)
    held.ended(3)  # closes the input
    equal(info(server), None)


@test
def with_leader_only_the_lock_ends_with_the_command_and_a_process_that_left_the_group_never_counts(server):
    held = Run(["--leader-only"], ["sh", "-c", LEFT_BEHIND])
    until(lambda: held.process.poll() is not None)
    equal(held.process.returncode, 3)
    equal(info(server), None)
    _, err = run(0, [], ["sh", "-c", "setsid sleep 5 </dev/null >/dev/null 2>&1 & exit 0"])
    equal("left behind" in err, False)
    equal(info(server), None)


@test
def a_signal_and_a_loss_end_the_processes_that_were_left_behind(server):
    held = left_behind()
    held.process.send_signal(signal.SIGTERM)
    held.process.wait(LIMIT_S)
    held.ended(3)
    equal(info(server), None)
    held = left_behind()
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    held.process.wait(LIMIT_S)
    held.ended(76)


@test
def a_busy_lock_exits_with_75_or_the_busy_status_and_starts_nothing(server):
    server.lock(NAME)
    for status, options in ((75, ["-n"]), (75, ["-w", "0"]), (75, ["--wait", "50ms"]), (9, ["-n", "-E", 9]),
                            (0, ["-w", "0.05", "--busy-status", 0]), (75, ["-n", "--shared"])):
        out, err = run(status, options, ["echo", "started"])
        equal(out, "")
        has(err, NAME)
    equal(len(info(server)["holders"]), 1)
    equal(waits(server), [])


@test
def a_wait_ends_with_the_grant(server):
    server.lock(NAME)
    waiting = Run(["--wait", "1h"], ["echo", "started"])
    until(lambda: waits(server))
    equal(server.ask("UNLOCK", NAME, "alice"), 1)
    equal(waiting.ended(0)[0], "started\n")


@test
def a_grant_that_is_seen_too_late_starts_nothing_and_is_released(server):
    server.lock(NAME)
    late = Run(["--wait", "1s"], ["echo", "started"])
    until(lambda: waits(server))
    over = time.monotonic() + 1.1
    late.process.send_signal(signal.SIGSTOP)
    equal(server.ask("UNLOCK", NAME, "alice"), 1)
    until(lambda: time.monotonic() > over)
    late.process.send_signal(signal.SIGCONT)
    # 69 on a busy machine: the time for the server's answer was over, too.
    equal(late.ended((75, 69))[0], "")
    equal(info(server), None)


@test
def verbose_sums_up_waits_holds_renewals_and_losses(server):
    _, err = run(0, ["--verbose"], ["true"])
    has(err, f"holdfast: {NAME}: summary: waited ", ", held ", ", renewals ", " (failed 0), losses 0")
    equal(run(0, [], ["true"])[1], "")
    before = int(server.info("lock_renewals", "locks"))
    running = Run(["--verbose", "--ttl", "200ms"], UNTIL_EOF)
    equal(running.line(), "up")
    until(lambda: int(server.info("lock_renewals", "locks")) >= before + 3)
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    err = running.ended(76)[1]
    has(err, "losses 1")
    equal("renewals 0" in err, False)
    server.lock(NAME)
    _, err = run(75, ["--verbose", "-n", "-q"], ["true"])
    has(err, "summary: waited ", "not acquired, attempts 1")


@test
def the_connections_of_run_have_its_name(server):
    running = Run([], UNTIL_EOF)
    equal(running.line(), "up")
    has(server.ask("CLIENT", "LIST"), b" name=holdfast-run ", b" lib-name=holdfast ")
    running.process.send_signal(signal.SIGTERM)
    running.process.wait(LIMIT_S)  # ended() closes the input, which would end the command, too
    running.ended(128 + signal.SIGTERM)


@test
def a_signal_ends_the_wait(server):
    server.lock(NAME)
    for name in FORWARDED:
        number = getattr(signal, "SIG" + name)
        waiting = Run([], ["echo", "started"])
        until(lambda: waits(server))
        waiting.process.send_signal(number)
        equal(waiting.ended(128 + number)[0], "")
        until(lambda: not waits(server))


@test
def shared_holders_and_semaphore_holders_run_together(server):
    for options in (["--shared"], ["--limit", 2]):
        first = Run(["-n", *options], UNTIL_EOF)
        equal(first.line(), "up")
        run(0, ["-n", *options], ["true"])
        run(75, ["-n"], ["true"])
        first.ended(0)


@test
def the_lock_is_renewed_past_its_ttl(server):
    held = Run(["--ttl", "300ms"], UNTIL_EOF)
    equal(held.line(), "up")
    until(lambda: info(server)["holders"][0]["held"] > 1000)
    equal(held.ended(0)[0], "down\n")


def breaks(server, held):
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    return held.ended(76)


@test
def a_lost_lock_ends_the_command_by_term(server):
    script = "trap 'echo told; exit 0' TERM; echo up; sleep 1000 & wait"
    held = Run(["--ttl", "300ms"], ["sh", "-c", script])
    equal(held.line(), "up")
    out, err = breaks(server, held)
    equal(out, "told\n")
    has(err, NAME, "lost")


@test
def after_a_loss_processes_that_ignore_term_are_killed(server):
    script = "trap '' TERM; sleep 1000 & echo $$ $!; while :; do sleep 1000; done"
    held = Run(["--ttl", "300ms", "--grace", "0.2"], ["sh", "-c", script])
    pids = held.line().split()
    breaks(server, held)
    until(lambda: not any(map(alive, pids)))


@test
def after_a_loss_the_rest_of_the_process_group_is_killed(server):
    script = "(trap '' TERM; echo up >&2; exec sleep 1000) & echo $!; wait"
    held = Run(["--ttl", "300ms", "--grace", "0.2"], ["sh", "-c", script])
    left = int(held.line())
    equal(held.process.stderr.readline(), "up\n")
    breaks(server, held)
    until(lambda: not alive(left))


@test
def after_a_loss_the_whole_process_group_has_the_grace(server):
    cleans = ("import signal as s, sys; s.pthread_sigmask(s.SIG_BLOCK, [s.SIGTERM]); print(1, flush=True);"
              " s.sigwait([s.SIGTERM]); print(2, file=sys.stderr, flush=True); open(sys.argv[1]).read();"
              " print(3, flush=True)")
    script = f"{sys.executable} -c '{cleans}' $0 & wait"
    gate = pathlib.Path(os.path.dirname(server.path), "gate")
    os.mkfifo(gate)
    held = Run(["--ttl", "300ms", "--grace", "1h"], ["sh", "-c", script, str(gate)])
    equal(held.line(), "1")
    equal(server.ask("LOCKS", "BREAK", NAME), 1)
    equal(held.process.stderr.readline(), "2\n")  # the first process has ended by now, or will
    gate.write_text("go\n")
    equal(held.ended(76)[0], "3\n")


@test
def a_lost_lock_ends_a_stopped_command(server):
    held = Run(["--ttl", "300ms"], ["sh", "-c", "echo $$; exec cat"])
    os.kill(int(held.line()), signal.SIGSTOP)
    breaks(server, held)


@test
def with_end_before_expiry_the_command_of_a_stopped_run_ends_before_the_lock(server):
    for script in (RECORDS, RECORDS_AND_IGNORES_TERM):
        with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
            record = pathlib.Path(folder, "record")
            command = ["sh", "-c", script, str(record)]
            first = Run(["--ttl", "2s", "--end-before-expiry"], command)
            until(lambda: recorded(record))
            second = Run(["--ttl", "2s"], command)
            until(lambda: waits(server))
            first.process.send_signal(signal.SIGSTOP)
            until(lambda: [line[0] for line in recorded(record)].count("start") == 2)
            equal([line for line in recorded(record) if line == ["overlap"]], [])
            first.process.send_signal(signal.SIGCONT)
            has(first.ended(76)[1], NAME, "lost")
            second.process.kill()
            second.ended(-signal.SIGKILL)
            until(lambda: info(server) is None)


@test
def with_end_before_expiry_the_command_runs_while_the_lock_is_renewed(server):
    held = Run(["--ttl", "1s", "--end-before-expiry"], UNTIL_EOF)
    equal(held.line(), "up")
    until(lambda: info(server)["holders"][0]["held"] > 2500)
    equal(held.ended(0)[0], "down\n")


@test
def with_end_before_expiry_a_lock_that_cannot_be_renewed_ends_the_command_in_time(server):
    script = "trap 'echo told; exit 0' TERM; echo up; sleep 1000 & wait"
    held = Run(["--ttl", "4s", "--grace", "2s", "--end-before-expiry"], ["sh", "-c", script])
    equal(held.line(), "up")
    server.process.send_signal(signal.SIGSTOP)
    equal(held.line(), "told")
    has(held.ended(76)[1], "lost")
    server.process.send_signal(signal.SIGCONT)


@test
def at_least_keeps_the_lock_after_the_command_ended(server):
    run(3, ["--at-least", "1h"], ["sh", "-c", "exit 3"])
    equal(3_500_000 < server.ask("PTTL", NAME) < 3_700_000, True)
    run(75, ["-n"], ["true"])
    equal(server.info("lock_releases", "locks"), "0")


@test
def at_least_makes_a_long_ttl_shorter_and_the_lock_expires_by_itself(server):
    run(0, ["--ttl", "1h", "--at-least", "1s"], ["true"])
    until(lambda: info(server) is None)
    equal(server.info("lock_releases", "locks"), "0")


@test
def at_least_counts_from_the_grant_and_a_longer_command_releases_at_once(server):
    run(0, ["--ttl", "1h", "--at-least", "100ms"], ["sleep", "0.2"])
    equal((info(server), server.info("lock_releases", "locks")), (None, "1"))


@test
def at_least_is_ignored_if_the_command_could_not_be_started(server):
    run(127, ["--at-least", "1h"], ["no-such-command"])
    equal(info(server), None)


@test
def at_least_without_a_server_leaves_the_lock_to_its_ttl(server):
    pid = server.process.pid
    err = run(0, ["--ttl", "1h", "--at-least", "10m"], ["kill", "-STOP", str(pid)])[1]
    has(err, NAME, "not released, it expires by itself")
    server.process.send_signal(signal.SIGCONT)
    equal(len(info(server)["holders"]), 1)


@test
def a_loss_while_run_is_stopped_is_seen_when_run_resumes(server):
    script = "trap 'exit 0' TERM; echo up; sleep 1000 & wait"
    held = Run(["--ttl", "300ms", "--grace", "1h"], ["sh", "-c", script])
    equal(held.line(), "up")
    held.process.send_signal(signal.SIGSTOP)
    until(lambda: info(server) is None)
    held.process.send_signal(signal.SIGCONT)
    held.ended(76)


@test
def without_a_server_run_exits_with_69(_):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # no process listens
        where = f"holdfast://127.0.0.1:{unused.getsockname()[1]}"
        for options in (["-n"], ["-w", "0.1"]):
            out, err = run(69, ["--servers", where, *options], ["echo", "started"])
            equal(out, "")
            has(err, NAME)


@test
def a_wait_for_a_stopped_server_ends_in_time(server):
    server.process.send_signal(signal.SIGSTOP)
    for options in (["-w", "0.5"], ["-n"]):
        begun = time.monotonic()
        equal(run(69, options, ["echo", "started"])[0], "")
        equal(time.monotonic() - begun < LIMIT_S, True)  # not for ever
    server.process.send_signal(signal.SIGCONT)
    server.lock(NAME, "alice", TTL_MS, "WAIT", LIMIT_S * 1000)  # behind what the ended runs have sent
    waiting = Run(["-w", "2s"], ["echo", "started"])
    until(lambda: waits(server))
    begun = time.monotonic()
    server.process.send_signal(signal.SIGSTOP)
    equal(waiting.ended(69)[0], "")
    equal(time.monotonic() - begun < LIMIT_S, True)
    server.process.send_signal(signal.SIGCONT)
    until(lambda: not waits(server))
    equal(len(info(server)["holders"]), 1)


@test
def wrong_usage_exits_with_64_and_one_line(server):
    wrong = (["-n", "-w", "1"], ["--shared", "--limit", "2"], ["-E", "256"], ["-E", "-1"], ["--limit", "0"],
             ["-w", "1x"], ["-w", "-1"], ["-w", "inf"], ["-w", ""], ["--ttl", "9ms"], ["--grace", "11y"],
             ["--frob"], ["--wai", "1"], ["another"], ["--servers", "ftp://x"], ["--wait"],
             ["--servers", "embedded:"], ["--servers", ""], ["--at-least", "-1"], ["--at-least", "100000h"],
             ["--ttl", "9s", "--grace", "4501ms", "--end-before-expiry"],
             ["--ttl", "9s", "--grace", "4501ms", "--end-before-lock"])  # the old name
    for options in wrong:
        out, err = run(64, options, ["echo", "started"])
        equal((out, err.count("\n")), ("", 1))
        has(err, "holdfast run --help")
    for words in ([], ["job"], ["job", "--"], ["--", "true"], ["", "--", "true"]):
        done = subprocess.run([COMMAND, "run", *words], check=False, capture_output=True, timeout=LIMIT_S)
        equal((done.returncode, done.stderr.count(b"\n")), (64, 1))
    equal(info(server), None)


@test
def errors_say_what_is_wrong_with_which_value(_):
    has(call(64, "run", "", "--", "true")[1], "NAME is empty")
    has(call(64, "elect", "", "--", "true")[1], "NAME is empty")
    for option, most in (("ttl", 2501999792), ("wait", 2501999792), ("grace", 87600), ("at-least", 87600)):
        for value in (f"{most + 1}h", "1" + "0" * 30 + "h"):
            has(run(64, [f"--{option}", value], ["true"])[1], f"--{option} must be at most {most}h", value)
    has(run(64, ["--ttl", "9007199254740992ms"], ["true"])[1], "9007199254740991 ms")
    has(run(64, ["--ttl", "9ms"], ["true"])[1], "at least 10 ms, not 9 ms")


@test
def the_longest_times_are_accepted(server):
    for options in (["--ttl", "100000h"], ["--ttl", "9007199254740991ms"], ["-w", "9007199254740991ms"],
                    ["--grace", "87600h"]):
        run(0, options, ["true"])
    server.lock(NAME)
    waiting = start("run", "-w", "9007199254740991ms", "--ttl", "9007199254740991ms", NAME, "--", "true")
    until(lambda: waits(server))
    equal(server.ask("UNLOCK", NAME, "alice"), 1)
    equal(waiting.wait(LIMIT_S), 0)
    waiting.communicate()


@test
def option_values_at_their_limits_are_accepted(server):
    server.lock(NAME)
    # 69 on a busy machine: the server did not answer within so short a time.
    for status, options in (((255, 69), ["-n", "-E", 255, "--ttl", "10ms"]),
                            ((255, 69), ["-w", ".05", "-E", 255, "--limit", 2147483647]),
                            (255, ["-n", "--ttl", "0.5h", "--grace", "0", "-E", 255])):
        run(status, options, ["true"])
    has(subprocess.run([COMMAND, "run", "--help"], check=True, capture_output=True).stdout, b"cron", b"CI",
        b"elect")


@test
def a_command_that_cannot_be_run_gets_the_status_and_message_of_a_shell(server):
    has(run(127, [], ["no-such-command"])[1], "no-such-command: command not found")
    has(run(127, [], ["./no/such"])[1], "./no/such: No such file")
    has(run(126, [], ["/etc/passwd"])[1], "/etc/passwd: Permission denied")
    has(run(126, [], ["/etc"])[1], "/etc: Permission denied")
    equal(info(server), None)


# Waits for one signal. Its status is 5 if no other signal comes before its input ends.
TAKES = """
import signal, sys
numbers = {int(n) for n in sys.argv[1:]}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
print("up", flush=True)
print(int(signal.sigwait(numbers)), flush=True)
sys.stdin.read()
sys.exit(1 if signal.sigpending() else 5)
"""


@test
def each_signal_is_forwarded_once(_):
    numbers = [int(getattr(signal, "SIG" + name)) for name in [*FORWARDED, "WINCH"]]
    for number in numbers:
        held = Run([], [sys.executable, "-c", TAKES, *map(str, numbers)])
        equal(held.line(), "up")
        held.process.send_signal(number)
        equal(held.line(), str(number))
        equal(held.ended(5)[0], "")


@test
def a_forwarded_signal_that_ends_the_command_gives_its_status(server):
    for name in FORWARDED:
        number = getattr(signal, "SIG" + name)
        held = Run([], ["sh", "-c", "echo up; exec sleep 1000"])
        equal(held.line(), "up")
        held.process.send_signal(number)
        held.ended(128 + number)
        equal(info(server), None)


@test
def the_command_finds_the_lock_in_its_environment(server):
    held = Run(["--ttl", "20s"], ["sh", "-c", "env | grep ^HOLDFAST_; echo .; cat"])
    lines = [line for line in iter(held.line, ".")]
    equal(len(lines), len(set(line.split("=")[0] for line in lines)))
    found = dict(line.split("=", 1) for line in lines)
    equal((found["HOLDFAST_KEY"], found["HOLDFAST_TTL_MS"]), (NAME, "20000"))
    equal(found["HOLDFAST_SERVERS"], os.environ["HOLDFAST_SERVERS"])
    equal(server.ask("GET", NAME), found["HOLDFAST_OWNER"].encode())
    equal(server.ask("LOCKS", "CHECK", NAME, found["HOLDFAST_TOKEN"]), 1)
    held.ended(0)


@test
def input_and_outputs_belong_to_the_command(_):
    held = Run([], ["sh", "-c", "tr a-z A-Z; echo wrong >&2"])
    held.process.stdin.write("some text\n")
    equal(held.ended(0), ("SOME TEXT\n", "wrong\n"))


@test
def the_command_inherits_no_files_and_no_signal_settings_of_run(_):
    script = "import os\nfor fd in range(3, 256):\n try: os.fstat(fd); print(fd)\n except OSError: pass"
    equal(run(0, [], [sys.executable, "-c", script])[0], "")
    out = run(0, [], ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"])[0]
    c_librarys_own = 3 << 31  # signals 32 and 33: make ignores them, and no program may change that
    equal([int(line.split()[1], 16) & ~c_librarys_own for line in out.splitlines()], [0, 0])


@test
def a_hangup_that_nohup_ignores_is_ignored(_):
    held = Run([], UNTIL_EOF, lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    equal(held.line(), "up")
    held.process.send_signal(signal.SIGHUP)
    equal(held.ended(0)[0], "down\n")


@test
def an_inherited_ignored_sigchld_does_no_harm(_):
    ignored = Run([], ["sh", "-c", "exit 3"], lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    ignored.ended(3)


@test
def no_process_outlives_a_killed_run(server):
    script = "trap '' TERM HUP INT; sleep 1000 & (sleep 1000 & echo $!; sleep 1000) & echo $! $$; wait"
    held = Run(["--ttl", "500ms"], ["sh", "-c", script])
    pids = [int(pid) for line in (held.line(), held.line()) for pid in line.split()]
    ours = children(held.process.pid)
    equal(len(ours), 2)  # the command and the guardian
    held.process.kill()
    held.ended(-signal.SIGKILL)
    until(lambda: not any(map(alive, pids + ours)))
    until(lambda: info(server) is None)


@test
def the_guardian_survives_other_signals_and_keeps_nothing_open(_):
    held = Run([], ["sh", "-c", "echo $$; exec cat"])
    child = int(held.line())
    [guardian] = set(children(held.process.pid)) - {child}
    for name in ("TERM", "INT", "HUP", "QUIT", "PIPE", "USR1"):
        os.kill(guardian, getattr(signal, "SIG" + name))
    until(lambda: len(os.listdir(f"/proc/{guardian}/fd")) == 1)
    equal((os.getsid(guardian), os.readlink(f"/proc/{guardian}/cwd")), (guardian, "/"))
    held.process.kill()
    held.ended(-signal.SIGKILL)
    until(lambda: not alive(child) and not alive(guardian))


@test
def a_run_killed_at_any_moment_leaves_no_process(server):
    mark = f"{time.monotonic()}"  # to find the processes that are left by their command line
    for step in range(40):
        started = Run(["--ttl", "100ms"], ["sh", "-c", "sleep 1000; :", mark])
        begun = time.monotonic()
        until(lambda: time.monotonic() > begun + step / 200)  # kills between its start and after exec
        started.process.kill()
        started.ended(-signal.SIGKILL)
    marked = re.compile(re.escape(mark).encode())

    def left():
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += [path] if marked.search(path.read_bytes()) else []
        return found
    until(lambda: not left())
    until(lambda: info(server) is None)


@test
def with_leader_only_processes_that_a_command_leaves_running_are_not_killed(server):
    held = Run(["--leader-only"], ["sh", "-c", "sleep 1000 & echo $!"])
    left = int(held.line())
    held.process.wait(LIMIT_S)
    equal((held.process.returncode, alive(left), info(server)), (0, True, None))
    os.kill(left, signal.SIGKILL)
    held.ended(0)


if __name__ == "__main__":
    run_tests(service)
