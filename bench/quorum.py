"""Several Holdfast servers on free ports as one quorum, and the load on them (quorum.cc). All of them share
the machine's cores. QUORUM_LOAD and RELAY name the programs."""
import json
import os
import subprocess

from rivals import free_port
from servers import LIMIT_S, PROGRAMS, end_with_parent, until

LOAD = os.environ.get("QUORUM_LOAD", "build/bench/quorum")
RELAY = os.environ.get("RELAY", "build/bench/relay")


class Quorum:
    """`delay_ms`: how long the network takes in each direction, up to a millisecond more (relay.cc)."""

    def __init__(self, servers, delay_ms=0):
        self.ports = [free_port() for _ in range(servers)]
        self.delay_ms = delay_ms

    def __enter__(self):
        command = [PROGRAMS["Holdfast"], "--save", "", "--loglevel", "warning", "--port"]
        self.processes = [subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL,
                                           preexec_fn=end_with_parent) for port in self.ports]
        try:
            if self.delay_ms:
                self.relay()
            until(self.serves)
        except BaseException:
            self.__exit__()
            raise
        return self

    def relay(self):
        relay = subprocess.Popen([RELAY, str(self.delay_ms), *map(str, self.ports)], stdout=subprocess.PIPE,
                                 text=True, preexec_fn=end_with_parent)
        self.processes.append(relay)
        self.ports = [int(relay.stdout.readline()) for _ in self.ports]

    def serves(self):
        """Whether all servers, which have just started, grant locks."""
        if any(process.poll() is not None for process in self.processes):
            raise RuntimeError("a server ended")
        place = f"{self.place()}&wquorum={len(self.ports)}"
        done = subprocess.run([LOAD, "uncontended", "--servers", place, "--seconds", "0.1"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    def place(self):
        return "quorum://" + ",".join(f"127.0.0.1:{port}" for port in self.ports) + "?timeout=1000"

    def load(self, *args):
        done = subprocess.run([LOAD, *args, "--servers", self.place()], stdout=subprocess.PIPE, text=True,
                              check=False, timeout=LIMIT_S, preexec_fn=end_with_parent)
        if done.returncode != 0:
            raise RuntimeError("the load on a quorum failed")
        return json.loads(done.stdout)

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
