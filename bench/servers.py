"""The compared servers and the load generator. Each measurement starts a new server on a Unix socket in a
temporary folder, or on a port. With two cores or more, the server and the generator have a core each.
HOLDFAST_SERVER, REDIS_SERVER, VALKEY_SERVER, NULL_SERVER and LOAD name the programs."""
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests/integration"))
from harness import Client, end_with_parent, until  # noqa: E402  pylint: disable=wrong-import-position

# Without a name in VALKEY_SERVER there are no lines of Valkey.
PROGRAMS = {
    "Holdfast": os.environ.get("HOLDFAST_SERVER", "build/holdfast-server"),
    "Redis": os.environ.get("REDIS_SERVER", "build/redis-server"),
    "Valkey": os.environ.get("VALKEY_SERVER", ""),
    "null server": os.environ.get("NULL_SERVER", "build/bench/null-server"),
}
LOAD = os.environ.get("LOAD", "build/bench/load")
LIMIT_S = 600
TWO_CORES = os.cpu_count() > 1
SERVER_CORE = ["taskset", "-c", "0"] if TWO_CORES else []
LOAD_CORE = ["taskset", "-c", "1"] if TWO_CORES else []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`kind`: a key of PROGRAMS. Without `folder` the server keeps no data. `pinned`: bind it to one core.
    A server with threads beside its loop needs all cores. `tcp`: the load uses a port."""

    def __init__(self, kind, *options, folder=None, pinned=True, tcp=False):
        self.kind, self.options, self.folder, self.pinned = kind, options, folder, pinned
        self.port = free_port() if tcp else 0

    def __enter__(self):
        self.own = tempfile.TemporaryDirectory(prefix="holdfast-bench-")
        self.socket = os.path.join(self.own.name, "s")
        command = [*(SERVER_CORE if self.pinned else []), PROGRAMS[self.kind]]
        if self.kind == "null server":
            command += [self.socket]
        else:
            command += ["--port", str(self.port), "--unixsocket", self.socket, "--save", "", *self.options]
            command += ["--loglevel", "warning"]
            keeps = self.folder is not None
            is_redis = self.kind in ("Redis", "Valkey")
            if is_redis or keeps:
                command += ["--dir", self.folder if keeps else self.own.name]
            if is_redis and not keeps:
                command += ["--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, preexec_fn=end_with_parent)
        until(self.serves)
        return self

    def serves(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.kind} ended with status {self.process.returncode}")
        try:
            client = Client(self.socket)
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        reply = client.ask("PING")
        client.close()
        return not isinstance(reply, RuntimeError)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.own.cleanup()

    def ask(self, *words):
        client = Client(self.socket)
        client.socket.settimeout(LIMIT_S)
        reply = client.ask(*words)
        client.close()
        if isinstance(reply, RuntimeError):
            raise reply
        return reply

    def cpu_s(self):
        """User and system time of all threads of the server, by Linux's id for its CPU clock."""
        return time.clock_gettime(~self.process.pid << 3 | 2)

    def memory_kib(self, peak=False):
        """The resident memory of the process in KiB, or its peak."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            facts = dict(line.split(":", 1) for line in status)
        return int(facts["VmHWM" if peak else "VmRSS"].split()[0])

    def load(self, mode, *cycle, **options):
        """Runs the generator to its end, and returns its results. `cycle`: pairs of a request and the begin
        of its reply."""
        done = self.begin_load(mode, *cycle, **options)
        out = done.communicate(timeout=LIMIT_S)[0]
        if done.returncode != 0:
            raise RuntimeError(f"the load on {self.kind} failed")
        return json.loads(out)

    def begin_load(self, mode, *cycle, core=None, **options):
        command = [*(LOAD_CORE if core is None else core), LOAD, mode]
        command += ["--port", str(self.port)] if self.port else ["--socket", self.socket]
        for request, expected in cycle:
            command += ["--request", request, "--expect", expected]
        for name, value in options.items():
            command += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
