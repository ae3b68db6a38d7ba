#!/usr/bin/python3
"""The server as a service: messages to its service manager, and sockets that the manager passes to it. The
test plays the manager, with a socket of its own; no systemd is needed. The last line is "N passed, N
failed"."""
import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from harness import HOLDFAST, LIMIT_S, Client, end_with_parent, equal, has, run_tests, test

# Starts a server as systemd does: the sockets are the descriptors from 3 up, and LISTEN_PID is its own pid.
LAUNCHER = """import os, sys
fds = [int(n) for n in sys.argv[1].split(",")] if sys.argv[1] else []
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
for name in ("LISTEN_PID", "WATCHDOG_PID"):
    if os.environ.get(name) == "self":
        os.environ[name] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Manager:
    """A service manager: the socket of NOTIFY_SOCKET, and the messages that arrived there."""

    def __init__(self, folder, abstract=False):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.settimeout(LIMIT_S)
        path = os.path.join(folder, "notify")
        self.name = "@holdfast-test" + path if abstract else path
        self.socket.bind("\0" + self.name[1:] if abstract else path)
        self.lines = []

    def take(self):
        """The lines of the next message."""
        lines = self.socket.recv(8192).decode().splitlines()
        self.lines += lines
        return lines

    def take_until(self, wanted):
        """Reads messages until one has a line that begins with `wanted`, and returns this line."""
        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            for line in self.take():
                if line.startswith(wanted):
                    return line
        raise AssertionError(f"no {wanted} in {self.lines}")

    def drain(self):
        """Reads all messages that are there."""
        self.socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                self.take()
        self.socket.settimeout(LIMIT_S)


class Service:
    """A server that a manager started, with variables of its protocol."""

    def __init__(self, folder, *options, sockets=(), **variables):
        self.path = os.path.join(folder, "s")
        fds = [s.fileno() for s in sockets]
        if sockets:
            variables = {"LISTEN_FDS": str(len(fds)), "LISTEN_PID": "self", **variables}
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, ",".join(map(str, fds)), os.path.abspath(HOLDFAST),
             "--port", "0", "--unixsocket", self.path, *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, pass_fds=fds,
            preexec_fn=end_with_parent, env={**os.environ, **variables})
        self.log = ""
        self.stopping = False

    def ready(self):
        while "ready to accept connections" not in self.log:
            line = self.process.stdout.readline()
            self.log += line
            equal(bool(line), True)
        return self

    def stop(self):
        """Sends SIGTERM, but once: a second one ends a server that is stopping at once."""
        if not self.stopping and self.process.poll() is None:
            self.process.terminate()
        self.stopping = True

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop()
        self.log += self.process.communicate(timeout=LIMIT_S)[0]
        equal("Sanitizer" in self.log, False)
        if kind is None:
            equal(self.process.returncode, 0)


def listener(family=socket.AF_INET, address=("127.0.0.1", 0)):
    found = socket.socket(family)
    found.bind(address)
    found.listen(16)
    return found


def ask(address, *request):
    """One request over TCP, as a line. Returns the reply's bytes."""
    with socket.create_connection(address, timeout=LIMIT_S) as client:
        client.sendall(" ".join(request).encode() + b"\r\n")
        return client.recv(4096)


@test
def start_and_stop_are_reported(folder):
    manager = Manager(folder)
    with Service(folder, NOTIFY_SOCKET=manager.name) as service:
        manager.take_until("READY=1")
        manager.drain()
        has("\n".join(manager.lines).encode(), b"STATUS=ready to accept connections on ",
            f"(pid {service.process.pid})".encode())
        equal("STOPPING=1" in manager.lines, False)
        service.stop()
        manager.take_until("STOPPING=1")
    manager.drain()
    has("\n".join(manager.lines).encode(), b"STATUS=stopping after SIGTERM", b"EXTEND_TIMEOUT_USEC=")


@test
def an_abstract_socket_gets_the_messages(folder):
    manager = Manager(folder, abstract=True)
    with Service(folder, NOTIFY_SOCKET=manager.name):
        manager.take_until("READY=1")


@test
def a_reload_is_reported_with_its_time_and_ends(folder):
    manager = Manager(folder)
    with Service(folder, NOTIFY_SOCKET=manager.name) as service:
        manager.take_until("READY=1")
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        service.process.send_signal(signal.SIGHUP)
        manager.take_until("RELOADING=1")
        at = int(next(line for line in manager.lines if line.startswith("MONOTONIC_USEC=")).split("=")[1])
        equal(before <= at <= time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, True)
        manager.take_until("READY=1")


@test
def ready_follows_the_load_and_progress_extends_the_time_limit(folder):
    data = os.path.join(folder, "data")
    with Service(folder, "--dir", data, "--save", "") as service:
        client = Client(service.ready().path)
        equal(client.ask_all([("SET", f"k{i}", "x" * 1000) for i in range(30_000)])[-1], "OK")
        client.close()
    manager = Manager(folder)
    with Service(folder, "--dir", data, NOTIFY_SOCKET=manager.name) as service:
        manager.take_until("READY=1")
        equal(manager.lines[0].startswith("EXTEND_TIMEOUT_USEC="), True)
        has("\n".join(manager.lines[:manager.lines.index("READY=1")]).encode(), b"STATUS=loading: ")
        client = Client(service.path)
        equal(client.ask("GET", "k29999"), b"x" * 1000)
        client.close()


@test
def the_recovery_wait_is_the_status_of_a_ready_server(folder):
    data = os.path.join(folder, "data")
    with Service(folder, "--dir", data) as service:
        client = Client(service.ready().path)
        equal(client.ask("LOCK", "k", "alice", "50000000")[0], b"alice")
        client.close()
        service.process.kill()
        service.process.wait()
        service.process.returncode = 0
    for journal in pathlib.Path(data).glob("journal.*"):
        journal.unlink()
    manager = Manager(folder)
    with Service(folder, "--dir", data, NOTIFY_SOCKET=manager.name):
        manager.take_until("READY=1")
        manager.drain()
        status = [line for line in manager.lines if line.startswith("STATUS=recovery wait: ")]
        equal(bool(status) and bool(re.search(r"granted for [1-9]\d? s$", status[0])), True)


@test
def a_stuck_loop_sends_no_sign_of_life(folder):
    manager = Manager(folder)
    with Service(folder, "--enable-debug-command", "yes", NOTIFY_SOCKET=manager.name,
                 WATCHDOG_USEC="100000", WATCHDOG_PID="self") as service:
        manager.take_until("READY=1")
        for _ in range(3):
            manager.take_until("WATCHDOG=1")
        client = Client(service.path)
        equal(client.ask("PING"), "PONG")
        manager.drain()
        before = manager.lines.count("WATCHDOG=1")
        equal(client.ask("DEBUG", "SLEEP", "2"), "OK")
        manager.drain()
        # 2 s are 40 times the half of the watchdog's time. The loop sends at most a few before and after.
        equal(manager.lines.count("WATCHDOG=1") - before < 20, True)
        manager.take_until("WATCHDOG=1")
        client.close()


@test
def a_watchdog_for_another_process_is_ignored(folder):
    manager = Manager(folder)
    with Service(folder, NOTIFY_SOCKET=manager.name, WATCHDOG_USEC="2000", WATCHDOG_PID="1"):
        manager.take_until("READY=1")
    manager.drain()
    equal("WATCHDOG=1" in manager.lines, False)


@test
def a_wrong_socket_is_a_warning_and_the_server_serves(folder):
    for name in ("relative", "@", "/" + "x" * 200):
        with Service(folder, NOTIFY_SOCKET=name) as service:
            service.ready()
            has(service.log.encode(), b"cannot send messages to the service manager", b"expected a path")
    with Service(folder, NOTIFY_SOCKET=os.path.join(folder, "missing")) as service:
        service.ready()


@test
def a_restart_behind_a_kept_socket_refuses_no_client(folder):
    kept = listener()
    address = kept.getsockname()
    data = os.path.join(folder, "data")
    with Service(folder, "--dir", data, sockets=[kept]) as service:
        service.ready()
        has(service.log.encode(), b"127.0.0.1:%d" % address[1])
        has(ask(address, "SET", "k", "v"), b"+OK")
    early = socket.create_connection(address, timeout=LIMIT_S)  # no server runs: not refused
    early.sendall(b"GET k\r\n")
    with Service(folder, "--dir", data, sockets=[kept]) as service:
        service.ready()
        equal(early.recv(100), b"$1\r\nv\r\n")
        early.close()
        has(ask(address, "INFO", "server"), b"tcp_port:%d\r\n" % address[1])


@test
def a_passed_tcp_socket_replaces_the_port_of_the_options(folder):
    kept = listener()
    with Service(folder, "--port", str(kept.getsockname()[1]), sockets=[kept]) as service:
        service.ready()
        equal(ask(kept.getsockname(), "PING"), b"+PONG\r\n")
        client = Client(service.path)  # no Unix socket was passed: that of the options is open
        equal(client.ask("PING"), "PONG")
        client.close()


@test
def a_passed_unix_socket_replaces_the_path_and_its_file_stays(folder):
    path = os.path.join(folder, "kept")
    with Service(folder, sockets=[listener(socket.AF_UNIX, path)]) as service:
        service.ready()
        client = Client(path)
        equal(client.ask("PING"), "PONG")
        has(client.ask("CLIENT", "INFO"), f" addr={path}:0".encode())
        client.close()
        equal(os.path.exists(service.path), False)
    equal(os.path.exists(path), True)


@test
def sockets_for_another_process_are_left_alone(folder):
    kept = listener()
    with Service(folder, sockets=[kept], LISTEN_PID="1") as service:
        service.ready()
        equal(str(kept.getsockname()[1]) in service.log, False)


@test
def a_descriptor_that_is_no_listening_socket_is_an_error(folder):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, socket.socket() as unbound:
        for wrong in (datagrams, unbound):
            service = Service(folder, sockets=[wrong])
            said = service.process.communicate(timeout=LIMIT_S)[0]
            equal(service.process.returncode, 1)
            equal(said, "holdfast-server: descriptor 3 of LISTEN_FDS is not a listening stream socket; use "
                        "ListenStream= and Accept=no in the socket unit\n")


@test
def a_socket_for_tls_needs_tls(folder):
    service = Service(folder, sockets=[listener()], LISTEN_FDNAMES="tls")
    said = service.process.communicate(timeout=LIMIT_S)[0]
    equal((service.process.returncode, "set --tls-port" in said), (1, True))


@test
def a_count_of_sockets_that_is_no_number_is_an_error(folder):
    for count in ("x", "65", "-1", "3x"):
        service = Service(folder, LISTEN_FDS=count, LISTEN_PID="self")
        said = service.process.communicate(timeout=LIMIT_S)[0]
        equal((service.process.returncode, f"from 0 to 64, got '{count}'" in said), (1, True))


@contextlib.contextmanager
def short_folder():
    with tempfile.TemporaryDirectory(prefix="hf-") as folder:
        yield folder


run_tests(short_folder)
