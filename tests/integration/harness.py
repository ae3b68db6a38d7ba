"""Shared by the scripts of this folder: the server as a process on a data folder, a connection to it, and
the selection, run and summary of tests. HOLDFAST_SERVER and REDIS_SERVER name the servers. No wait has a
fixed duration: each ends when its condition is true, or fails after LIMIT_S."""
import atexit
import contextlib
import ctypes
import functools
import glob
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

HOLDFAST = os.environ.get("HOLDFAST_SERVER", "build/asan/holdfast-server")
REDIS = os.environ.get("REDIS_SERVER", "build/redis-server")
LIMIT_S = 60        # timeout of one wait
TEST_LIMIT_S = 300  # timeout of one test
PIECE = 65536       # how many bytes a client sends within LIMIT_S
SHOWN = 8000        # how many characters of a failure run_tests() prints
SLOW_S = 2          # run_tests() prints the duration of a test that takes longer
TTL_MS = 50_000_000
POLL_S = 0.01
SANITIZED = "asan" in pathlib.Path(HOLDFAST).parts  # slow: less work is enough for a long load
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
TESTS = []
PORTS = range(11_000, 32_000)  # below those that the system gives to connections
RESERVED = []


def end_with_parent():
    """For preexec_fn: the process is killed with its parent, and obeys file permissions even as root."""
    pr_set_pdeathsig, pr_capbset_drop, cap_dac_override, cap_dac_read_search = 1, 24, 1, 2
    prctl = ctypes.CDLL(None).prctl
    prctl(pr_set_pdeathsig, signal.SIGKILL)
    prctl(pr_capbset_drop, cap_dac_override)
    prctl(pr_capbset_drop, cap_dac_read_search)


def test(function):
    TESTS.append(function)
    return function


def equal(got, wanted):
    if got != wanted:
        raise AssertionError(f"got {got!r:.600}, wanted {wanted!r:.600}")


def has(text, *parts):
    """`text` is bytes, or any object with a text: an error, too."""
    text = text if isinstance(text, bytes) else str(text)
    for part in parts:
        if part not in text:
            raise AssertionError(f"got {text!r:.6000}, wanted {part!r} in it")


def until(condition, limit_s=LIMIT_S):
    """Calls condition() repeatedly until its value is true, and returns the value."""
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"the condition is not true within {limit_s} s")
        time.sleep(POLL_S)
    return value


def part_of(cases, parts):
    """One of so many parts of the cases, for a long test. HOLDFAST_SEED selects it, so that many changes
    run all. With HOLDFAST_THOROUGH=1, as in `make test-all`, all cases."""
    if "HOLDFAST_THOROUGH" in os.environ:
        return cases
    return cases[int(os.environ.get("HOLDFAST_SEED", "1")) % parts::parts]


@functools.cache
def preloaded_clock():
    """LD_PRELOAD for libfaketime. While it starts, libfaketime looks for a `__ftime` that newer C libraries
    do not have, and the failed search allocates memory. In the allocator of clang's ASan, which reads the
    clock, this is a deadlock. So the process gets a `__ftime`."""
    folder = tempfile.TemporaryDirectory(prefix="holdfast-test-")
    atexit.register(folder.cleanup)
    library = os.path.join(folder.name, "ftime.so")
    subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", library], check=True, timeout=LIMIT_S,
                   input=b"int __ftime(void *to) { (void)to; return -1; }")
    return f"{FAKETIME}:{library}"


class Clock:
    """A wall clock with its offset in a file, for processes that start with its environment (libfaketime).
    The other clocks of these processes do not change."""

    def __init__(self, path):
        self.path = path
        self.set(0)

    def set(self, ahead):
        """Sets the clock `ahead` seconds ahead, for running and for future processes."""
        aside = self.path.with_suffix(".new")
        aside.write_text(f"{ahead:+d}\n", "utf-8")
        aside.replace(self.path)

    def environment(self):
        return {**os.environ, "LD_PRELOAD": preloaded_clock(), "FAKETIME_TIMESTAMP_FILE": str(self.path),
                "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1", "NO_FAKE_STAT": "1",
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def reserve(port):
    """Returns whether no process listens on the port and no other test has reserved it. The reservation, a
    name in the system's table of Unix sockets, ends with this process."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0holdfast-test-port-{port}")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        mark.close()
        return False
    RESERVED.append(mark)
    return True


def free_port():
    """A port on which no process listens. Other tests do not get it while this process runs, so a server
    can restart on it, and connections to it are refused until a server starts."""
    first = os.getpid() * 7 % len(PORTS)
    return next(port for port in (*PORTS[first:], *PORTS[:first]) if reserve(port))


class Client:
    """A connection in RESP2; an error is returned as a RuntimeError. `path` is that of a Unix socket, or
    (host, port)."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX if isinstance(path, str) else socket.AF_INET)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(path)
        self.replies = self.socket.makefile("rb")

    def ask(self, *args):
        return self.ask_all([args])[0]

    def ask_all(self, requests):
        """Sends all requests at once, and returns their replies."""
        self.send(*requests)
        return [self.reply() for _ in requests]

    def send(self, *requests):
        out = bytearray()
        for args in requests:
            out += b"*%d\r\n" % len(args)
            for arg in args:
                text = arg if isinstance(arg, bytes) else str(arg).encode()
                out += b"$%d\r\n%s\r\n" % (len(text), text)
        for at in range(0, len(out), PIECE):  # the timeout of sendall() is for all that it sends
            self.socket.sendall(out[at:at + PIECE])

    def reply(self):
        line = self.replies.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return RuntimeError(rest.decode())
        if kind == b"":
            raise EOFError("the server closed the connection")
        n = int(rest)
        if kind == b":" or n < 0:
            return n if kind == b":" else None
        if kind == b"*":
            return [self.reply() for _ in range(n)]
        return self.replies.read(n + 2)[:-2]

    def info(self, field, section="persistence"):
        text = self.ask("INFO", section).decode()
        return re.search(rf"^{field}:(.*)\r$", text, re.MULTILINE).group(1)

    def close(self):
        self.replies.close()
        self.socket.close()


def client_if_listening(path):
    """A client of the socket, or None as long as no server listens there."""
    try:
        return Client(str(path))
    except (FileNotFoundError, ConnectionRefusedError):
        return None


class Server(Client):
    """A server on a folder, and a connection to it. If `loaded`, the constructor waits until the server has
    read its folder and logs that it is ready. The server listens before that."""

    def __init__(self, folder, *options, command=HOLDFAST, loaded=True, status=0, env=None):
        self.status = status
        self.own = tempfile.TemporaryDirectory(prefix="holdfast-test-")  # the socket's folder
        self.path = os.path.join(self.own.name, "s")
        self.process = subprocess.Popen(
            [command, "--port", "0", "--unixsocket", self.path, "--dir", folder, "--save", "", *options],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=end_with_parent,
            env=env)
        self.log = ""
        while loaded and "ready to accept connections" not in self.log:
            line = self.process.stdout.readline()
            self.log += line
            if not line:
                self.process.wait(LIMIT_S)
                self.own.cleanup()
                raise AssertionError(f"the server did not start: {self.log}")
        until(self.connected)

    def connected(self):
        try:
            super().__init__(self.path)
        except (FileNotFoundError, ConnectionRefusedError):  # the server does not listen yet
            equal(self.process.poll(), None)
            return False
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.ended()
        equal(self.process.returncode, self.status)

    def ended(self):
        """Waits until the server has ended. After that, `log` has the whole log."""
        if not self.process.stdout.closed:
            self.log += self.process.communicate(timeout=LIMIT_S)[0]
            self.close()
            self.own.cleanup()
            equal("Sanitizer" in self.log, False)

    def kill(self):
        self.status = -signal.SIGKILL
        self.process.kill()
        self.ended()

    def lock(self, key, owner="alice", ttl=TTL_MS, *more):
        """Acquires a lock, which must be granted at once, and returns its token."""
        reply = self.ask("LOCK", key, owner, ttl, *more)
        if not isinstance(reply, list) or reply[0] != owner.encode():
            raise AssertionError(f"LOCK {key} {owner}: {reply!r}")
        return reply[1]


def peak_mib(server):
    """The peak memory of the server's process."""
    text = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", text).group(1)) // 1024


def refusal(folder, *options):
    """The output of a server that must fail to start on the folder."""
    done = subprocess.run([HOLDFAST, "--port", "auto", "--dir", folder, *options], check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                          preexec_fn=end_with_parent)
    equal((done.returncode, "Sanitizer" in done.stdout), (1, False))
    return done.stdout


def other_addresses():
    """The IPv4 addresses of this machine except loopback."""
    listed = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
    return [a for a in listed if ":" not in a]


def journals(folder):
    return sorted(folder.glob("journal.*"))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def edit_meta(folder, old, new):
    """Replaces the first match of `old` in the folder's meta, and corrects the checksum at its end."""
    path = folder / "meta"
    text = path.read_text().rpartition("crc ")[0]
    edited = re.sub(old, new, text, count=1, flags=re.MULTILINE)
    if edited == text:
        raise AssertionError(f"{old} is not in {text}")
    path.write_text(f"{edited}crc {crc32c(edited.encode()):08x}\n")


def left_behind(folder, number=50):
    """Makes the folder of a killed server with the holds key:0, key:1, ...; returns its only journal."""
    with Server(folder) as server:
        for i in range(number):
            server.lock(f"key:{i}")
        server.kill()
    equal(len(journals(folder)), 1)
    return journals(folder)[0]


@contextlib.contextmanager
def data_folder():
    """The path of a data folder that does not exist yet."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        yield pathlib.Path(folder, "data")


def over_time(*_):
    raise TimeoutError(f"the test took more than {TEST_LIMIT_S} s")


class Skipped(Exception):
    """A test cannot run on this machine. The text is the reason."""


def run_tests(around=data_folder):
    """Runs the tests, each with the value of around(), and ends the script. If the script has an argument,
    only the tests whose names contain it run."""
    failed = skipped = 0
    signal.signal(signal.SIGALRM, over_time)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and the programs would inherit that
    chosen = [function for function in TESTS if len(sys.argv) < 2 or sys.argv[1] in function.__name__]
    for function in chosen:
        signal.alarm(TEST_LIMIT_S)
        began = time.monotonic()
        try:
            with around() as argument:
                function(argument)
        except Skipped as reason:
            skipped += 1
            print(f"SKIPPED {function.__name__}: {reason}", flush=True)
        except Exception as failure:  # the other tests run even if one fails
            failed += 1
            text = f"FAILED {function.__name__}: {failure!r:.2000}\n{traceback.format_exc(limit=-3)}"
            half = SHOWN // 2
            print(text if len(text) < SHOWN else f"{text[:half]}\n...\n{text[-half:]}", flush=True)
        signal.alarm(0)
        if (took_s := time.monotonic() - began) > SLOW_S:
            print(f"slow: {function.__name__}: {took_s:.1f} s", flush=True)
    summary = f"{len(chosen) - failed - skipped} passed, {failed} failed"
    print(summary + f", {skipped} skipped" * (skipped > 0))
    sys.exit(1 if failed else 0)
