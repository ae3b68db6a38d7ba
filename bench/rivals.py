"""The common part of the rivals for hand-overs: a server on a free port and in a temporary folder, and the
load on it (hand_overs.py). `bench/rivals.sh` puts the programs into build/bench/rivals."""
import json
import pathlib
import subprocess
import sys
import tempfile

from servers import LIMIT_S, LOAD_CORE, ROOT, SERVER_CORE, end_with_parent, free_port, until

FETCHED = ROOT / "build/bench/rivals"


class Rival:
    """A subclass has `name`, `command(folder, port)`, which starts the server, and `answers(port)`: whether
    the server is ready."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-bench-")
        self.port = free_port()
        self.process = subprocess.Popen([*SERVER_CORE, *self.command(self.folder.name, self.port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        preexec_fn=end_with_parent)
        try:
            until(self.serves)
        except BaseException:
            self.__exit__()
            raise
        return self

    def serves(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} ended with status {self.process.returncode}")
        return self.answers(self.port)

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def hand_overs(self, clients, seconds):
        command = [*LOAD_CORE, sys.executable, pathlib.Path(__file__).with_name("hand_overs.py"), self.name,
                   str(self.port), str(clients), str(seconds)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=LIMIT_S,
                              preexec_fn=end_with_parent)
        if done.returncode != 0:
            raise RuntimeError(f"the load on {self.name} failed")
        return json.loads(done.stdout)


def hand_overs(rival, clients, seconds):
    """The hand-overs a second, and the fewest and the most grants of a client."""
    with rival() as server:
        return server.hand_overs(clients, seconds)
