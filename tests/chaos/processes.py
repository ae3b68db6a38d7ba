"""The servers and clients of the chaos test: processes on the nodes of a network, with files in one folder.
Files control the jumps of their wall clocks (libfaketime). All processes end with the test."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "integration"))
from harness import FAKETIME, HOLDFAST, LIMIT_S, Clock, end_with_parent, free_port, until

CLIENT = os.environ.get("HOLDFAST_CHAOS_CLIENT", os.path.join(os.path.dirname(HOLDFAST), "chaos-client"))
PORT = 7379
RECOVERY_MS = 4000  # longer than any ttl of the clients
DURABILITY = {
    "always": ["--appendfsync", "always"],
    "everysec": ["--appendfsync", "everysec"],
    "no": ["--appendfsync", "no"],
    "waiting": ["--appendonly", "no", "--recovery-wait", str(RECOVERY_MS)],  # loses its locks, and waits
    "forgetful": ["--appendonly", "no", "--recovery-wait", "0"],             # loses its locks: a violation
}
LOSING = "waiting"


class Process:
    """The process of a node, which may start several times. Its log and clock are files with its name."""

    def __init__(self, network, node, folder):
        self.network, self.node = network, node
        self.log = folder / f"{node}.log"
        self.clock = Clock(folder / f"{node}.clock")
        self.process = None

    def launch(self, words, clock=True):
        env = self.clock.environment() if FAKETIME and clock else None
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [*self.network.inside(self.node), *(str(word) for word in words)], env=env, stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, preexec_fn=end_with_parent)

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
    def __init__(self, network, node, folder, options):
        super().__init__(network, node, folder)
        self.port = PORT if network.can else free_port()
        self.words = [HOLDFAST, "--port", self.port, "--bind", "0.0.0.0", "--protected-mode", "no", "--dir",
                      folder / node, "--save", "", *options]

    def address(self):
        return [self.network.address(self.node), self.port]

    def start(self):
        """Starts the server, and waits until it is ready."""
        before = self.text().count("ready to accept")
        self.launch(self.words)

        def ready():
            if self.process.poll() is not None:
                raise AssertionError(f"{self.node} did not start: {self.text()[-600:]}")
            return self.text().count("ready to accept") > before

        until(ready)

    def stop_still(self):
        """Stops the process by SIGSTOP, and waits until it is stopped."""
        self.signal(signal.SIGSTOP)
        until(lambda: pathlib.Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").split()[2] == "T")


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

    def finish(self):
        return self.end(max(self.part["until"] - time.monotonic(), 0) + LIMIT_S / 2)
