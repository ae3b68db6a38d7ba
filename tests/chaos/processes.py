"""The servers and clients of the chaos test: processes on the nodes of a network, with files in one folder.
Files control the jumps of their wall clocks (libfaketime). All processes end with the test."""
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import FAKETIME, HOLDFAST, LIMIT_S, Client, Clock, end_with_parent, free_port, until
from network import Loopback

FOLDER = os.path.dirname(HOLDFAST)
CLIENT = os.environ.get("HOLDFAST_CHAOS_CLIENT", os.path.join(FOLDER, "chaos-client"))
SLOW_FSYNC = os.path.abspath(os.environ.get("HOLDFAST_SLOW_FSYNC", os.path.join(FOLDER, "slow-fsync.so")))
PORT = 7379
STARTS = "starts with the data folder"
READY = "ready to accept"
RECOVERY_MS = 4000  # longer than any ttl of the clients
WAIT = ["--recovery-wait", str(RECOVERY_MS)]
DURABILITY = {
    "always": [*WAIT, "--save", "", "--appendfsync", "always"],
    "everysec": [*WAIT, "--save", "", "--appendfsync", "everysec"],
    "no": [*WAIT, "--save", "", "--appendfsync", "no"],
    "snapshots": [*WAIT, "--save", "1 1", "--appendonly", "no"],  # a kill loses locks, SIGTERM does not
    "waiting": [*WAIT, "--save", "", "--appendonly", "no"],  # each stop loses locks; the next start waits
    "forgetful": ["--save", "", "--appendonly", "no", "--recovery-wait", "0"],  # the same without a wait:
}                                                                               # a violation
LOSING = {"snapshots": ("kill", "failed"), "waiting": ("kill", "term", "failed")}  # stops that lose locks
FILL_S = 0.7  # for the values that make a load take long


def prepare():
    end_with_parent()
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write over the limit of the size of files fails


class Process:
    """The process of a node, which may start several times. Its log and clock are files with its name.
    `space`: the node of the network, if that has another name."""

    def __init__(self, network, node, folder):
        self.network, self.node, self.space = network, node, node
        self.log = folder / f"{node}.log"
        self.clock = Clock(folder / f"{node}.clock")
        self.process = None

    def launch(self, words, clock=True):
        env = self.environment() if clock else None
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.network.inside(self.space), *(str(word) for word in words)], env=env, stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=prepare)

    def environment(self):
        return self.clock.environment() if FAKETIME else dict(os.environ)

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait(LIMIT_S)

    def end(self, patience):
        """The exit status; None: the test had to kill the process."""
        try:
            return self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            return None

    def text(self):
        return self.log.read_text("utf-8", "replace") if self.log.exists() else ""


class Server(Process):
    def __init__(self, network, node, folder, options, disk):
        super().__init__(network, node, folder)
        self.disk = disk
        disk.server = self
        self.socket = folder / f"{node}.socket"
        self.port = PORT if network.can else free_port()
        self.words = [HOLDFAST, "--port", self.port, "--bind", "0.0.0.0", "--protected-mode", "no",
                      "--unixsocket", self.socket, "--dir", disk.path, *options]
        self.ready = self.old_log = self.begun = 0

    def address(self):
        return [self.network.address(self.node), self.port]

    def environment(self):
        env = super().environment()
        if pathlib.Path(SLOW_FSYNC).exists():
            before = [env["LD_PRELOAD"]] if FAKETIME else []
            env |= {"LD_PRELOAD": ":".join([*before, SLOW_FSYNC]),
                    "HOLDFAST_FSYNC_DELAY": str(self.disk.delay),
                    "ASAN_OPTIONS": env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        return env

    def begin(self):
        """Starts the server. Does not wait until it is ready."""
        text = self.text()
        self.ready, self.old_log, self.begun = text.count(READY), len(text), time.monotonic()
        self.launch(self.words)

    def has_opened(self):
        """Whether the server runs, and has opened its folder."""
        return self.process.poll() is None and STARTS in self.text()[self.old_log:]

    def took_signals(self):
        """Whether the server has got far enough to end by itself at SIGTERM."""
        return any(text in self.text()[self.old_log:] for text in (READY, "stopping after"))

    def is_ready(self):
        """Whether the server is ready. Returns None if it has ended."""
        if self.text().count(READY) > self.ready:
            return True
        return None if self.process.poll() is not None else False

    def is_recovering(self):
        """Whether a recovery wait runs."""
        wait = re.search(r"no new locks are granted for (\d+) ms", self.text()[self.old_log:])
        return wait is not None and time.monotonic() < self.begun + int(wait[1]) / 1000

    def start(self):
        """Starts the server, and waits until it is ready."""
        self.begin()
        if until(lambda: self.is_ready() is not False) and not self.is_ready():
            raise AssertionError(f"{self.node} did not start: {self.text()[-600:]}")

    def stop_still(self):
        """Stops the process by SIGSTOP, and waits until it is stopped."""
        self.signal(signal.SIGSTOP)
        until(lambda: pathlib.Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").split()[2] == "T")

    def fill(self):
        """Sets values until some time has passed, and saves them, so that the next starts take longer."""
        with contextlib.closing(Client(str(self.socket))) as client:
            value, number, end = "v" * 60, 0, time.monotonic() + FILL_S
            while time.monotonic() < end:
                client.ask_all([("SET", f"fill:{number + i}", value, "PX", 86400000) for i in range(1000)])
                number += 1000
            client.ask("SAVE")


class Crowd(Process):
    """A process of clients. Each start gives it another name."""

    def __init__(self, network, node, folder, part):
        super().__init__(network, node, folder)
        self.folder = folder
        self.part = part  # seed, threads, until; and where or servers
        self.life = 0

    def start(self):
        name = f"{self.node}-{self.life}"
        self.life += 1
        part, history = self.part, self.folder / f"{name}.history"
        seed = part["seed"] * 100 + self.life
        if "where" in part:
            words = [CLIENT, part["where"], name, history, part["threads"], seed, part["until"]]
        else:
            words = [sys.executable, HERE / "direct.py",
                     json.dumps({**part, "seed": seed, "name": name, "history": str(history)})]
        # Python's sleep does not work with libfaketime, and direct.py needs no wall clock.
        self.launch(words, clock="where" in part)


class Helper(Process):
    """prober.py as the prober, or as the null server: on no node of the network."""

    def __init__(self, node, folder, words):
        super().__init__(Loopback(), node, folder)
        self.words = [word if isinstance(word, str) else json.dumps(word) for word in words]

    def start(self):
        self.launch([sys.executable, HERE / "prober.py", *self.words], clock=False)

    def until_listening(self, path):
        def listens():
            with contextlib.suppress(OSError), contextlib.closing(Client(path)):
                return True
            return False

        until(listens)
