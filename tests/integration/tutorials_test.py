#!/usr/bin/python3
"""Runs each command, program and file of docs/tutorials as a reader types it, and compares the output with
the page. The last line is "N passed, N failed".

A marker precedes each code block:
  <!-- run: shell NAME -->  lines `$ COMMAND`, each followed by its output. Each NAME is one terminal
                            with its own shell. A block without `$` at its start continues the
                            command that still runs there; `^C` as its first line presses Ctrl-C.
                            `(keeps running)` after the NAME: the last command does not end in this block.
  <!-- file: NAME -->       the content of a file in the folder of the tutorial. The commands of a file
                            `crontab` and the ExecStart of a file `*.service` are run, too.
  <!-- not run: REASON -->  neither run nor compared; this test counts and names these blocks.

The ports 7379, 7380 and 7381 of the pages become free ports of this machine, and folders of the system
become folders of the test. DIFFERS lists what may differ between a page and a run. HOLDFAST_SERVER names
the server; the command is in the same folder. Needs python3-redis and redis-tools; systemd-analyze is used
where it is installed."""
import contextlib
import fcntl
import os
import pathlib
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import traceback

from harness import end_with_parent, equal, free_port, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = (ROOT / os.environ.get("HOLDFAST_SERVER", "build/asan/holdfast-server")).resolve().parent
PAGES = ["cron-on-three-machines", "python-fencing-token", "quorum-of-three", "run-as-a-service",
         "who-holds-my-lock"]
PORTS = ["7379", "7380", "7381"]
LIMIT_S = 60        # timeout of one output
PAGE_LIMIT_S = 300  # timeout of one page

# Each token or owner of the page stands for one of the run: equal names stand for equal names.
NAMES = re.compile(r"\b(?:\d{16}|[0-9a-f]{32})\b")
# Other differences, and the texts that replace them before the comparison.
DIFFERS = [
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\.\d{3}Z?"), "TIME"),
    (re.compile(r"\(pid \d+\)"), "(pid PID)"),
    (re.compile(r"-?\d+(\.\d+)? m?s\b|\b\d+m\d+s\b"), "DURATION"),
    (re.compile(r"^id=\d+$", re.MULTILINE), "id=ID"),  # the id of a connection
    (re.compile(r"from 127\.0\.0\.1:\d+( [^\s(]\S*)?"), "from ADDRESS"),
    (re.compile(r"\b[\w.-]+@[\w.-]+\[\d+\]"), "USER@HOST[PID]"),  # in the notes of holdfast run
    (re.compile(r"^addr=127\.0\.0\.1:\d+$", re.MULTILINE), "addr=ADDRESS"),
    (re.compile(r", \[::1\]:\d+"), ""),  # only if the machine has IPv6
    (re.compile(r" {2,}"), "  "),  # the width of columns depends on their contents
]
BLOCK = re.compile(r"(?:^<!-- (run: shell|file:|not run:) ([^\n]+) -->\n)?^```[^\n]*\n(.*?)^```$",
                   re.DOTALL | re.MULTILINE)


def blocks_of(text):
    """All code blocks of a page: (kind, argument, text)."""
    found = [(m[1], m[2], m[3]) for m in BLOCK.finditer(text)]
    for kind, _, block in found:
        if kind is None:
            raise AssertionError(f"no marker precedes this block:\n{block}")
    equal(len(found) * 2, len(re.findall(r"^```", text, re.MULTILINE)))
    return found


def parts_of(block):
    """The pairs (command, output) of a block. The command is "" if an earlier command still runs."""
    parts = []
    for line in block.splitlines(keepends=True):
        if line.startswith("$ "):
            parts.append([line[2:], ""])
        elif parts and parts[-1][0].endswith("\\\n") and not parts[-1][1]:
            parts[-1][0] += line
        else:
            parts = parts or [["", ""]]
            parts[-1][1] += line
    return parts


class Names:
    """The ports, folders, tokens and owners of the run for those of the page."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.ports = dict(zip(PORTS, (str(free_port()) for _ in PORTS)))
        self.of_run = {}

    def for_run(self, text):
        text = re.sub(r"\b73(?:79|80|81)\b", lambda m: self.ports[m.group()], text)
        text = NAMES.sub(lambda m: self.of_run.get(m.group(), m.group()), text)
        for place in ("/etc/holdfast", "/var/lib/holdfast", "/var/backups"):
            text = text.replace(place, self.folder + place)
        return text.replace("/usr/local/bin", str(BINARIES))

    def for_page(self, text):
        for page, run in self.ports.items():
            text = re.sub(rf"\b{run}\b", page, text)
        return text.replace(str(BINARIES), "/usr/local/bin").replace(self.folder, "")

    def compare(self, shown, printed):
        """Both must be equal except for DIFFERS, and equal names in one must be equal in the other."""
        printed = self.for_page(printed)
        message = f"the page shows:\n{shown}\nbut this was printed:\n{printed}"
        assert plain(shown) == plain(printed), message
        for mine, theirs in zip(NAMES.findall(shown), NAMES.findall(printed)):
            assert self.of_run.setdefault(mine, theirs) == theirs, message
        assert len(set(self.of_run.values())) == len(self.of_run), message


def plain(text):
    text = NAMES.sub("NAME", text)
    for pattern, replacement in DIFFERS:
        text = pattern.sub(replacement, text)
    return text


class Shell:
    """A terminal that runs bash, without echo, and with a prompt that no command prints."""
    PROMPT = "--prompt--\n"

    def __init__(self, folder, environment):
        self.terminal, inside = pty.openpty()
        modes = termios.tcgetattr(inside)
        modes[1] &= ~termios.OPOST
        modes[3] &= ~termios.ECHO
        termios.tcsetattr(inside, termios.TCSANOW, modes)
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 200, 0, 0))

        def prepare():
            end_with_parent()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen(
            ["/bin/bash", "--norc", "--noprofile", "--noediting", "-i"], stdin=inside, stdout=inside,
            stderr=inside, cwd=folder, env=environment | {"PS1": self.PROMPT, "PS2": ""},
            start_new_session=True, preexec_fn=prepare)
        os.close(inside)
        self.unread = ""
        self.runs = False  # whether a command has not ended yet
        self.until_prompt()

    def write(self, text):
        os.write(self.terminal, text.encode())

    def read_until(self, done):
        """Reads until done(unread), which it returns."""
        deadline = time.monotonic() + LIMIT_S
        while not (value := done(self.unread)):
            if not select.select([self.terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                raise AssertionError(f"not found within {LIMIT_S} s, but this was printed:\n{self.unread}")
            self.unread += os.read(self.terminal, 65536).decode()
        return value

    def until_prompt(self):
        """Waits for the end of the command, and returns its output."""
        end = self.read_until(lambda text: text.find(self.PROMPT) + 1) - 1
        printed, self.unread = self.unread[:end], self.unread[end + len(self.PROMPT):]
        return printed

    def lines(self, number):
        """The next `number` lines of a command that still runs."""
        self.read_until(lambda text: text.count("\n") >= number or self.PROMPT in text)
        lines = self.unread.splitlines(keepends=True)
        self.unread = "".join(lines[number:])
        return "".join(lines[:number])

    def close(self):
        """Kills all processes of the terminal, also those that are in the background or stopped."""
        listed = subprocess.run(["ps", "-o", "pid=", "-s", str(self.process.pid)], capture_output=True,
                                text=True, check=False)
        for pid in map(int, listed.stdout.split()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(LIMIT_S)
        os.close(self.terminal)


class Tutorial:
    """A page, and its run in a temporary folder."""

    def __init__(self, name, text):
        self.name = name
        self.blocks = blocks_of(text)
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-test-")
        self.path = pathlib.Path(self.folder.name).resolve()
        self.names = Names(self.path)
        self.shells = {}
        self.commands = 0
        self.not_run = []
        for place in ("etc/holdfast", "var/lib/holdfast", "var/backups"):
            (self.path / place).mkdir(parents=True)
        self.environment = {
            "PATH": f"{BINARIES}:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(self.path),
            "LC_ALL": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "REDISCLI_RCFILE": "/dev/null",
            "HOLDFAST_SERVERS": f"holdfast://127.0.0.1:{self.names.ports['7379']}",  # like the default
            **{name: value for name, value in os.environ.items() if name.endswith("SAN_OPTIONS")}}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for shell in self.shells.values():
            shell.close()
        self.folder.cleanup()

    def total(self, field, section):
        """The sum of a field of INFO over all servers of the page; a missing field counts as 0."""
        number = 0
        for port in self.names.ports.values():
            with contextlib.suppress(ConnectionError), \
                    socket.create_connection(("127.0.0.1", int(port))) as s, s.makefile("rwb") as f:
                f.write(f"INFO {section}\r\n".encode())
                f.flush()
                text = f.read(int(f.readline()[1:]) + 2).decode()
                number += sum(map(int, re.findall(rf"\b{field}[:=](\d+)", text)))
        return number

    def waiters(self):
        return self.total("lock_waiters", "locks")

    def play(self):
        for i, (kind, argument, text) in enumerate(self.blocks):
            if kind == "not run:":
                self.not_run.append(argument)
            elif kind == "file:":
                self.write_file(argument, text)
            else:
                name = argument.split()[0]
                later = [b[2] for b in self.blocks[i + 1:] if b[0] == kind and b[1].split()[0] == name]
                keeps_running = bool(later) and not later[0].startswith("$ ")
                self.play_block(name, text, keeps_running or argument.endswith("(keeps running)"))
        for name, shell in self.shells.items():
            assert not shell.unread, f"terminal {name} has more output:\n{shell.unread}"

    def play_block(self, name, text, keeps_running):
        if name not in self.shells:
            self.shells[name] = Shell(self.path, self.environment)
        shell = self.shells[name]
        parts = parts_of(text)
        for i, (command, shown) in enumerate(parts):
            interrupts = False
            may_wait = keeps_running and i + 1 == len(parts) and not shown
            waiters = self.waiters() if may_wait else 0
            if command:
                self.commands += 1
                if shell.runs:  # another terminal has ended it meanwhile
                    self.names.compare("", shell.until_prompt())
                shell.write(self.names.for_run(command))
            elif interrupts := shown.startswith("^C\n"):
                shell.write("\x03")
            shell.runs = keeps_running and i + 1 == len(parts)
            if interrupts:  # bash ends the line of ^C if the signal has ended the command
                self.names.compare(shown.removeprefix("^C\n"), shell.until_prompt().removeprefix("\n"))
            elif not shell.runs:
                self.names.compare(shown, shell.until_prompt())
            elif shown:
                self.names.compare(shown, shell.lines(shown.count("\n")))
            else:  # the command waits for a lock
                until(lambda before=waiters: self.waiters() > before)

    def write_file(self, name, text):
        path = pathlib.Path(self.names.for_run(name) if name.startswith("/") else self.path / name)
        path.write_text(self.names.for_run(text), encoding="utf-8")
        path.chmod(0o755 if path.suffix == ".sh" else 0o644)
        if path.name == "crontab":
            self.run_crontab(path)
        elif path.suffix == ".service":
            self.run_unit(path)

    def run_crontab(self, path):
        """Runs the jobs like cron: by the shell, with the variables of the file."""
        variables = {}
        jobs = []
        for line in path.read_text(encoding="utf-8").splitlines():
            if match := re.fullmatch(r"([A-Z_]+)=(.*)", line):
                variables[match[1]] = match[2]
            elif line and not line.startswith("#"):
                jobs.append(line.split(None, 5)[5])
        assert jobs, "the crontab has no job"
        for job in jobs:
            self.commands += 1
            done = subprocess.run(["/bin/sh", "-c", job], cwd=self.path, env=self.environment | variables,
                                  capture_output=True, text=True, timeout=LIMIT_S, check=False)
            until(lambda: self.total("keys", "keyspace") == 0)  # until the time of --at-least ends
            assert done.returncode == 0, f"{job}: status {done.returncode}\n{done.stdout}{done.stderr}"

    def run_unit(self, path):
        """Verifies the unit, and starts and stops the server by its ExecStart."""
        text = path.read_text(encoding="utf-8")
        if shutil.which("systemd-analyze"):
            done = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True,
                                  check=False)
            equal((done.returncode, done.stdout + done.stderr), (0, ""))
        else:
            print("skipped: systemd-analyze verify (not installed)")
        self.commands += 1
        command = re.search(r"^ExecStart=(.*)$", text, re.MULTILINE)[1].split()
        with subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True,
                              stderr=subprocess.STDOUT, preexec_fn=end_with_parent) as server:
            log = ""
            for line in server.stdout:
                log += line
                if "ready to accept connections" in line:
                    server.terminate()
            assert server.wait(LIMIT_S) == 0 and "ready to accept" in log, f"{command}: {log}"


def test_page(name):
    path = ROOT / f"docs/tutorials/{name}.md"
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert 60 <= lines <= 150, f"the page has {lines} lines; 60 to 150 are allowed"
    for page in ("cli", "protocol", "safety", "operations", "clients"):
        assert f"(../{page}.md" in text, f"the page has no link to ../{page}.md"
    assert "\n## What happens when" in text
    with Tutorial(name, text) as tutorial:
        tutorial.play()
        print(f"{name}: {tutorial.commands} commands run, {len(tutorial.not_run)} blocks not run"
              + "".join(f"\n  not run: {reason}" for reason in tutorial.not_run))


def fails(text, wanted):
    try:
        with Tutorial("", text) as tutorial:
            tutorial.play()
    except AssertionError as failure:
        assert wanted in str(failure), f"{wanted!r} is not in {failure}"
        return
    raise AssertionError(f"this page must fail, but passes:\n{text}")


def test_differences(_):
    """A page fails if it shows more, less or other text than the output, or has a block without a
    marker."""
    def page(shown):
        return f"<!-- run: shell a -->\n```\n$ echo one; echo 1795236859406446\n{shown}```\n"
    with Tutorial("", page("one\n1795236859406447\n")) as tutorial:
        tutorial.play()
    for shown in ("two\n1795236859406446\n", "one\n", "one\n1795236859406446\nthree\n", "one\n179523\n"):
        fails(page(shown), "but this was printed")
    fails("```\n$ echo one\n```\n", "no marker")
    again = page("one\n1795236859406447\n")
    fails(again + again.replace("1795236859406447\n`", "1795236859406448\n`"), "but this was printed")


def over_time(*_):
    raise TimeoutError(f"the page took more than {PAGE_LIMIT_S} s")


def main():
    signal.signal(signal.SIGALRM, over_time)
    tests = [(test_differences, "differences"), *((test_page, name) for name in PAGES)]
    tests = [t for t in tests if len(sys.argv) < 2 or sys.argv[1] in t[1]]
    failed = 0
    for function, name in tests:
        signal.alarm(PAGE_LIMIT_S)
        try:
            function(name)
        except Exception:  # the other pages run even if one fails
            failed += 1
            print(f"FAILED: tutorials: {name}")
            traceback.print_exc(file=sys.stdout)
        signal.alarm(0)
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
