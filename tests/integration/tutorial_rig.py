"""Plays the marked code blocks of a page as a reader types them, and compares their output with the page.

A marker precedes each code block:
  <!-- run: shell NAME -->  lines `$ COMMAND`, each followed by its output. Each NAME is one terminal
                            with its own shell. A block without `$` at its start continues the
                            command that still runs there; `^C` as its first line presses Ctrl-C.
                            `(keeps running)` after the NAME: the last command does not end in this block.
  <!-- file: NAME -->       the content of a file in the folder of the tutorial. The commands of a file
                            `crontab` and the ExecStart of a file `*.service` are run, too.
  <!-- not run: REASON -->  neither run nor compared; the tests count and name these blocks.

The PORTS of the pages become free ports of this machine, and folders of the system become folders of the
test. DIFFERS lists what may differ between a page and a run. HOLDFAST_SERVER names the server; the command
is in the same folder."""
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
import tempfile
import termios
import time

from harness import end_with_parent, equal, free_port, until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = (ROOT / os.environ.get("HOLDFAST_SERVER", "build/asan/holdfast-server")).resolve().parent
PORTS = ["7379", "7380", "7381", "9090"]
PORT = re.compile(rf"\b(?:{'|'.join(PORTS)})\b")
LIMIT_S = 60  # timeout of one output

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
    (re.compile(r"\b\d+(\.\d+)?m?s\b"), "DURATION"),
    (re.compile(r"\b\d+(\.\d+)?[KMG]\b"), "SIZE"),  # in the table of holdfast top
    # The fields of an event, as redis-cli shows them in a terminal and in a pipe.
    (re.compile(r'("(?:at|waited|held|serial)" => \(integer\)) \d+'), r"\1 N"),
    (re.compile(r"^(at|waited|held|serial) \d+$", re.MULTILINE), r"\1 N"),
    (re.compile(r'"addr" => "[\d.]+:\d+"'), '"addr" => "ADDRESS"'),
    (re.compile(r"(_seconds\{.*\} => )[\d.]+"), r"\1N"),  # of promtool
    (re.compile(r"@\[[\d.]+\]$", re.MULTILINE), "@TIME"),
    (re.compile(r'("[a-z]+_ms":)\d+'), r"\1N"),
    (re.compile(r" {2,}"), " "),  # the width of columns depends on their contents
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
        text = PORT.sub(lambda m: self.ports[m.group()], text)
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

    def play(self, blocks=None):
        """Plays these blocks, by default all. All output of their commands must be in the page."""
        blocks = self.blocks if blocks is None else blocks
        for i, (kind, argument, text) in enumerate(blocks):
            if kind == "not run:":
                self.not_run.append(argument)
            elif kind == "file:":
                self.write_file(argument, text)
            else:
                name = argument.split()[0]
                later = [b[2] for b in blocks[i + 1:] if b[0] == kind and b[1].split()[0] == name]
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
