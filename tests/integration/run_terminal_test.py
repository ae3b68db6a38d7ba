#!/usr/bin/env python3
"""`holdfast run` on a terminal, as a job of a shell with job control and without any shell: the owner of
the terminal, Ctrl-C, Ctrl-Z and fg. The last line is "N passed, N failed". HOLDFAST_SERVER names the
server; the command is in the same folder."""
import fcntl
import os
import pty
import re
import select
import subprocess
import sys
import termios

from harness import LIMIT_S, end_with_parent, equal, run_tests, test, until
from job import COMMAND, info, service

RUN = f"{COMMAND} run job --"
# Prints whether it owns the terminal, and how many SIGINTs it has received when it reads a line.
COUNTS = ("import os, signal as s, sys; s.pthread_sigmask(s.SIG_BLOCK, [s.SIGINT]);"
          " print('now mine' if os.tcgetpgrp(0) == os.getpgrp() else 'not mine', flush=True);"
          " s.sigwait([s.SIGINT]); print('got', flush=True);"
          " sys.stdin.readline(); print('count', 2 if s.sigpending() else 1)")


class Screen:
    """A new terminal, and a program as the leader of its session."""

    def __init__(self, *words):
        def prepare():
            end_with_parent()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.master, slave = pty.openpty()
        self.shown = b""
        variables = {**os.environ, "PS1": "$ ", "TERM": "dumb"}
        self.process = subprocess.Popen(words, stdin=slave, stdout=slave, stderr=slave, env=variables,
                                        start_new_session=True, preexec_fn=prepare)
        os.close(slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(LIMIT_S)
        os.close(self.master)

    def type(self, text):
        os.write(self.master, text.encode())

    def wait_for(self, pattern):
        """Waits for the pattern in the output after the previous match, and returns its match."""
        while not (match := re.search(pattern.encode(), self.shown)):
            if not select.select([self.master], [], [], LIMIT_S)[0]:
                raise AssertionError(f"no {pattern!r} in {self.shown!r}")
            try:
                self.shown += os.read(self.master, 4096)
            except OSError as closed:
                raise AssertionError(f"the program ended without {pattern!r}: {self.shown!r}") from closed
        self.shown = self.shown[match.end():]
        return match

    def wait_until_it_runs(self):
        """Waits until the command's job is in the foreground and runs. A Ctrl-Z between the shell's `fg`
        and its SIGCONT is lost, for any job."""
        def runs():
            group = os.tcgetpgrp(self.master)
            with open(f"/proc/{group}/stat", encoding="ascii") as stat:
                name, state = re.search(r"\((.*)\) (.)", stat.read()).groups()
            return name == "sh" and state != "T"
        until(runs)

    def ended(self, status):
        equal(self.process.wait(LIMIT_S), status)


def shell():
    return Screen("bash", "--norc", "--noprofile", "--noediting", "-i")


@test
def the_command_has_the_terminal_and_ctrl_c_reaches_it_once(server):
    with shell() as screen:
        screen.type(f"""{RUN} {sys.executable} -c "{COUNTS}"; echo status=$?\n""")
        screen.wait_for(r"now mine\r\n")
        screen.type("\x03")
        screen.wait_for(r"got\r\n")
        screen.type("a line\n")
        screen.wait_for(r"count 1\r\nstatus=0")
        equal(info(server), None)


@test
def ctrl_c_ends_a_command_that_does_not_handle_it(server):
    with shell() as screen:
        screen.type(f"{RUN} sh -c 'echo u''p; exec cat'; echo status=$?\n")
        screen.wait_for(r"up\r\n")
        screen.type("\x03")
        screen.wait_for("status=130")
        equal(info(server), None)


@test
def ctrl_z_stops_the_job_and_fg_resumes_it(_):
    with shell() as screen:
        screen.type(f"{RUN} sh -c 'echo u''p; read x; echo read-$x'\n")
        screen.wait_for(r"up\r\n")
        for _ in range(3):
            screen.type("\x1a")
            screen.wait_for(r"Stopped")
            screen.type("echo the she''ll\n")
            screen.wait_for("the shell")
            screen.type("fg\n")
            screen.wait_for(r"run job")
            screen.wait_until_it_runs()
        screen.type("hello\n")
        screen.wait_for("read-hello")
        screen.type("echo status=$?\n")
        screen.wait_for("status=0")


def stop_until_the_guardian_has_ended_the_command(screen):
    """Ctrl-Z, and a wait until the command is a zombie: its lock is about to expire."""
    pid = screen.wait_for(r"up-(\d+)\r\n")[1].decode()
    screen.type("\x1a")
    screen.wait_for("Stopped")

    def ended():
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return ") Z " in stat.read()
    until(ended)


@test
def after_a_stop_during_which_the_guardian_ended_the_command_run_reports_the_loss(_):
    with shell() as screen:
        screen.type(f"{COMMAND} run --ttl 3s --grace 1s --end-before-expiry job --"
                    " sh -c 'echo u''p-$$; exec sleep 1000'\n")
        stop_until_the_guardian_has_ended_the_command(screen)
        screen.type("fg; echo status=$?\n")
        screen.wait_for("the lock was lost")
        screen.wait_for("status=76")


@test
def after_a_stop_during_which_the_guardian_ended_the_command_elect_campaigns_again(_):
    with shell() as screen:
        screen.type(f"{COMMAND} elect --ttl 3s --grace 1s job -- sh -c 'echo u''p-$$; exec sleep 1000'\n")
        screen.wait_for("leader")
        stop_until_the_guardian_has_ended_the_command(screen)
        screen.type("fg\n")
        screen.wait_for("job: lost")
        screen.wait_for("job: leader")


@test
def bg_resumes_the_command_without_the_terminal(_):
    with shell() as screen:
        command = "echo u''p; kill -TSTP 0; echo go''ne-on; read x; echo read-$x"
        screen.type(f"set -b; {RUN} sh -c '{command}'\n")
        screen.wait_for(r"up\r\n")
        screen.wait_for("Stopped")
        screen.type("bg\n")
        screen.wait_for(r"gone-on")
        screen.wait_for(r"Stopped")  # because it reads; only after that, `fg` resumes it
        screen.type("fg\n")
        screen.wait_for(r"run job.*\n")
        screen.type("hello\n")
        screen.wait_for("read-hello")


@test
def a_job_in_the_background_that_reads_stops_until_fg(_):
    with shell() as screen:
        screen.type(f"set -b; {RUN} sh -c 'read x; echo read-$x' &\n")
        screen.wait_for(r"Stopped")
        screen.type("fg\n")
        screen.wait_for(r"\n.*run job.*\n")
        screen.type("hello\n")
        screen.wait_for("read-hello")


@test
def in_a_pipe_the_reader_keeps_the_terminal(_):
    reader = "sh -c 'cat; read x < /dev/tty; echo read-$x'"
    with shell() as screen:
        screen.type(f"{RUN} echo fr''om | {reader}; echo status=$?\n")
        screen.wait_for(r"from\r\n")
        screen.type("hello\n")
        screen.wait_for(r"read-hello\r\nstatus=0")


@test
def in_a_pipe_the_command_gets_the_terminal_when_it_asks_for_it(_):
    with shell() as screen:
        screen.type(f"{RUN} sh -c 'echo u''p >&2; read x; echo read-$x' | cat; echo status=$?\n")
        screen.wait_for(r"up\r\n")
        screen.type("hello\n")
        screen.wait_for(r"read-hello\r\nstatus=0")


@test
def ctrl_c_in_a_pipe_reaches_the_command_once(_):
    with shell() as screen:
        again = "s.sigtimedwait([s.SIGINT], 0.3) and s.raise_signal(s.SIGINT)"
        counts = COUNTS.replace("sys.stdin.readline()", again)
        screen.type(f"""{RUN} {sys.executable} -c "{counts}" | (trap "" INT; cat); echo status=$?\n""")
        screen.wait_for(r"not mine\r\n")
        screen.type("\x03")
        screen.wait_for(r"count 1\r\nstatus=0")


@test
def run_takes_the_terminal_back_after_its_command(_):
    for command, status in (("true", 0), ("sh -c 'kill -KILL $$'", 137), ("no-such-command", 127)):
        with Screen("sh", "-c", f"{RUN} {command}; echo up-$?; read x; echo read-$x") as screen:
            screen.wait_for(rf"up-{status}\r\n")
            screen.type("hello\n")
            screen.wait_for("read-hello")
            screen.ended(0)


@test
def the_modes_of_the_terminal_are_restored_after_a_command_that_was_killed(_):
    script = "stty -echo raw; stty -a; kill -KILL $$"
    with Screen("sh", "-c", f"{RUN} sh -c '{script}'; stty -a; echo up") as screen:
        screen.wait_for(r" -icanon (.|\n)* -echo (.|\n)* icanon (.|\n)* echo (.|\n)*up\r\n")


@test
def ctrl_z_does_not_stop_a_job_that_no_shell_can_resume(_):
    with Screen(COMMAND, "run", "job", "--", "sh", "-c", "echo up; read x; echo read-$x") as screen:
        screen.wait_for(r"up\r\n")
        screen.type("\x1a")
        screen.wait_for(r"\^Z")
        screen.type("hello\n")
        screen.wait_for(r"read-")
        screen.ended(0)


@test
def a_command_that_would_wait_for_the_terminal_for_ever_gets_a_hangup(server):
    inner = f"set -m; (exec 3<&0; {RUN} sh -c 'read x <&3' & :); read x"
    with Screen("bash", "-c", inner) as screen:
        until(lambda: server.info("lock_grants", "locks") == "1")
        until(lambda: info(server) is None)
        equal(screen.process.poll(), None)


@test
def a_terminal_that_closes_ends_the_command(server):
    with Screen(COMMAND, "run", "job", "--", "sh", "-c", "echo up; exec sleep 1000") as screen:
        screen.wait_for(r"up\r\n")
        master = screen.master
        screen.master = os.open("/dev/null", os.O_RDONLY)
        os.close(master)
        screen.ended(128 + 1)
        equal(info(server), None)


if __name__ == "__main__":
    run_tests(service)
