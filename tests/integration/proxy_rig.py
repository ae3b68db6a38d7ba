"""Three servers and proxies for them, for the tests of `holdfast proxy`. HOLDFAST_SERVER names the server;
the command is in the same folder."""
import contextlib
import re
import signal
import subprocess
import time

from harness import LIMIT_S, Client, Server, data_folder, end_with_parent, equal, free_port
from job import COMMAND


class Proxy(Client):
    """A proxy for servers on these ports, or with these addresses, and a connection to it."""

    def __init__(self, ports, *options):
        self.process = subprocess.Popen(
            [COMMAND, "proxy", "--port", "auto", "--servers",
             ",".join(p if ":" in str(p) else f"127.0.0.1:{p}" for p in ports), *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=end_with_parent)
        self.log = ""
        while "ready to accept connections" not in self.log:
            line = self.process.stdout.readline()
            self.log += line
            if not line:
                raise AssertionError(f"the proxy did not start: {self.log}")
        self.port = int(re.search(r"connections on 127\.0\.0\.1:(\d+)", self.log).group(1))
        super().__init__(("127.0.0.1", self.port))

    def stop(self):
        self.close()
        if self.process.poll() is None:
            self.process.terminate()
        self.log += self.process.communicate(timeout=LIMIT_S)[0]
        equal((self.process.returncode in (0, -signal.SIGKILL), "Sanitizer" in self.log), (True, False))

    def another(self):
        return Client(("127.0.0.1", self.port))

    def timed(self, *request):
        """The reply, and how many seconds it took."""
        begun = time.monotonic()
        return self.ask(*request), time.monotonic() - begun


class Rig:
    """Three servers, and proxies for them."""

    def __init__(self, stack):
        self.stack = stack
        self.ports = [free_port() for _ in range(3)]
        self.folders = [stack.enter_context(data_folder()) for _ in self.ports]
        self.servers = [None] * 3
        for i in range(3):
            self.start(i)

    def start(self, i):
        """Starts a server, again with the data that it had."""
        server = Server(self.folders[i], "--port", str(self.ports[i]))
        self.servers[i] = self.stack.enter_context(server)

    @contextlib.contextmanager
    def stopped(self, *numbers):
        """These servers do not answer, and keep their connections."""
        for i in numbers:
            self.servers[i].process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for i in numbers:
                self.servers[i].process.send_signal(signal.SIGCONT)

    def proxy(self, *options):
        """A proxy that waits longer for its servers than by default: the machine may be busy."""
        patient = [] if "--server-timeout" in options else ["--server-timeout", "5000"]
        proxy = Proxy(self.ports, *options, *patient)
        self.stack.callback(proxy.stop)
        return proxy

    def holders(self, key):
        """The owners that the servers show."""
        return [server.ask("GET", key) for server in self.servers if server.process.poll() is None]


@contextlib.contextmanager
def rig():
    with contextlib.ExitStack() as stack:
        yield Rig(stack)
