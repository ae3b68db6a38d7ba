"""Starts a server in a folder of its own, on a Unix socket, and stops it again."""
import ctypes
import os
import re
import signal
import subprocess
import tempfile
import threading

LIMIT_S = 30
READY = re.compile("ready to accept connections", re.IGNORECASE)
REDIS_OPTIONS = ["--port", "0", "--save", "", "--appendonly", "no"]
HOLDFAST_OPTIONS = ["--port", "0"]


def end_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Server:
    """A running server. `name` is its name in reports; `address` is the path of its socket."""

    def __init__(self, name, program, options):
        self.name, self.program, self.options = name, program, options
        self.log, self.last_words = [], ""
        self.start()

    def start(self):
        self.folder = tempfile.TemporaryDirectory(prefix="differential-")
        self.address = os.path.join(self.folder.name, "s")
        self.process = subprocess.Popen(
            [os.path.abspath(self.program), *self.options, "--unixsocket", self.address],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            cwd=self.folder.name, preexec_fn=end_with_parent)
        self.log.clear()
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read_log, args=[self.process.stdout], daemon=True)
        self.reader.start()
        if not self.ready.wait(LIMIT_S) or self.process.poll() is not None:
            raise RuntimeError(f"{self.program} did not start:\n" + "".join(self.log[-20:]))

    def read_log(self, stream):
        """Keeps the end of the log. A full pipe would block the server."""
        for line in stream:
            self.log.append(line)
            del self.log[:-400]
            if READY.search(line):
                self.ready.set()
        self.ready.set()

    def restart_if_dead(self):
        """Starts the server again if it has ended, and keeps the log of its end. True if it had ended."""
        try:
            self.process.wait(0.2)
        except subprocess.TimeoutExpired:
            return False
        self.reader.join(LIMIT_S)
        self.last_words = f"{self.name} ended with status {self.process.returncode}:\n" + "".join(self.log)
        self.folder.cleanup()
        self.start()
        return True

    def stop(self):
        """Ends the server. False if its exit status is not 0."""
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join(LIMIT_S)
        self.folder.cleanup()
        return self.process.returncode == 0


def redis(name="redis"):
    return Server(name, os.environ.get("REDIS_SERVER", "build/redis-server"), REDIS_OPTIONS)


def holdfast():
    return Server("holdfast", os.environ.get("HOLDFAST_SERVER", "build/holdfast-server"), HOLDFAST_OPTIONS)
