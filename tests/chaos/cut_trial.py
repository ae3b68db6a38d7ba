"""One run of cuts.py: real servers, and real clients that contend for one lock, on the nodes of a network.
The cut begins some time after each client has had the lock once. All processes start in the main thread,
because the system kills a process at the end of the thread that started it."""
import contextlib
import os
import signal
import threading
import time

from checker import judge
from cut_patterns import GROUPS, PATTERNS, Scene
from disk import Disk
from history import Recorder, load
from liveness import SECOND, Span, figures
from prober import run_delay
from processes import CLIENT, DURABILITY, LIMIT_S, Client, Crowd, Process, Server, until

KEY = "contended"
TICK_S = 0.005
TTL_MS = 1000      # of the contenders (client.cc)
LEFT_MS = 600_000  # the ttl of a hold that is left behind
END_S = 3600       # no client runs longer
FORGETFUL = ["--save", "", "--appendonly", "no", "--recovery-wait", str(2 * TTL_MS)]
MIXED_THREADS = 2
ASAN = "AddressSanitizer", "runtime error"


class PlainServer(Server):
    """Without a wall clock that jumps, and without slow syncs."""

    def environment(self):
        return dict(os.environ)


class Contender(Process):
    """A process of one client that waits for the lock, or (`key` is empty) of clients of other locks."""

    def __init__(self, network, node, folder, words):
        super().__init__(network, node, folder)
        self.folder, self.words, self.life = folder, words, 0

    def begin(self):
        name = f"{self.node}-{self.life}"
        where, threads, seed, *key = self.words
        self.launch([CLIENT, where, name, self.folder / f"{name}.history", threads, seed + self.life,
                     time.monotonic() + END_S, *key], clock=False)
        self.life += 1


class Trial:
    """`mixed`: a client of each group also uses other locks of all kinds, which are judged for safety."""

    def __init__(self, network, pattern, scene, folder, mixed):
        self.network, self.pattern, self.scene, self.folder = network, pattern, scene, folder
        self.mixed = {f"{client}m": client for client in scene.clients[:GROUPS]} if mixed else {}
        self.recorder = Recorder(folder / "faults.history", "faults")
        self.processes, self.ended, self.wrong = {}, {}, []
        self.killed = set()
        self.span = Span(0, 0, 0)
        self.slow_s = 0.0  # the longest time for which a process waited for a processor after the cut

    def run(self, before_s):
        """Returns the figures, and the violations by promise."""
        try:
            self.start()
            self.span.begin = time.monotonic_ns()
            time.sleep(before_s)
            self.play()
            self.finish()
        finally:
            self.kill_all()
        history = load(self.folder.glob("*.history"))
        found = {**judge(history), "processes": self.wrong}
        mine = [op for op in history.ops if op.key == KEY]
        return figures(mine, self.span, self.scene.clients), found

    def start(self):
        self.network.cut(set())
        options = FORGETFUL if self.pattern.forgets else DURABILITY["everysec"]
        for name in self.scene.servers:
            self.processes[name] = PlainServer(self.network, name, self.folder, options,
                                               Disk(self.folder / name, False))
            self.processes[name].start()
        where = "quorum://" + ",".join(f"{host}:{port}" for host, port in
                                       (self.processes[name].address() for name in self.scene.servers))
        for number, name in enumerate(self.scene.clients + self.scene.guests):
            self.processes[name] = Contender(self.network, name, self.folder, [
                where, 1, 100 * (self.scene.seed + number), KEY, self.pattern.readers])
        for number, (name, node) in enumerate(self.mixed.items()):
            self.processes[name] = Contender(self.network, name, self.folder, [
                where, MIXED_THREADS, 100 * (self.scene.seed + 50 + number)])
            self.processes[name].space = node
        for name, process in self.processes.items():
            if name not in self.scene.servers:
                process.begin()
        for name in self.scene.clients + self.scene.guests:
            until(lambda name=name: self.has_had_the_lock(name))

    def has_had_the_lock(self, name):
        path = self.folder / f"{name}-0.history"
        if self.processes[name].process.poll() is not None:
            raise AssertionError(f"{name} ended: {self.processes[name].text()[-900:]}")
        return path.exists() and '"outcome": "ok"' in path.read_text("utf-8")

    def play(self):
        """Cuts, and carries out the events, each at its time."""
        events = list(self.pattern.events(self.scene))
        mute = {"": (), "servers": self.scene.servers, "guests": self.scene.guests}[self.pattern.mute]
        begin, delays = time.monotonic(), self.delays()
        pairs = self.pattern.pairs(self.scene, 0)
        self.network.cut(pairs, mute, self.pattern.loss)
        self.span.cut = time.monotonic_ns()
        while (now := time.monotonic() - begin) < self.scene.seconds:
            if (wanted := self.pattern.pairs(self.scene, now)) != pairs:
                pairs = wanted
                self.network.cut(pairs, mute, self.pattern.loss)
            while events and events[0][0] <= now:
                _, what, *args = events.pop(0)
                getattr(self, what)(*args)
            time.sleep(TICK_S)
        self.span.end = time.monotonic_ns()
        self.slow_s = max(delay - delays.get(pid, 0) for pid, delay in self.delays().items()) / SECOND

    def delays(self):
        """For how long servers and clients, except guests, waited for a processor: by process, in ns."""
        names = self.scene.servers + self.scene.clients
        pids = [self.processes[name].process.pid for name in names]
        return {pid: run_delay(pid) for pid in pids}

    # Events.

    def end_server(self, name, how):
        why = "loses" if self.pattern.forgets else ""
        self.ended[name] = how, self.recorder.invoke(op=how, place=name, why=why)[0]
        self.processes[name].signal(signal.SIGTERM if how == "term" else signal.SIGKILL)

    def begin_server(self, name):
        process, (how, number) = self.processes[name], self.ended.pop(name)
        status = process.end(LIMIT_S)
        if status != (0 if how == "term" else -signal.SIGKILL):
            self.ended_badly(process, status)
        launched = time.monotonic_ns()
        process.begin()
        self.recorder.write(id=number, launched=launched, returned=launched, outcome="ok")

    def pause(self, name):
        self.processes[name].signal(signal.SIGSTOP)

    def pause_with_lock(self, name):
        self.processes[name].signal(signal.SIGUSR2)

    def resume(self, name):
        self.processes[name].signal(signal.SIGCONT)

    def kill(self, name):
        self.processes[name].signal(signal.SIGKILL)
        self.killed.add(name)

    def kill_with_lock(self, name):
        self.processes[name].signal(signal.SIGUSR1)
        self.killed.add(name)

    def replace(self, name):
        """Starts the client again, also if it has not vanished yet because it did not get the lock."""
        self.processes[name].kill()
        self.processes[name].begin()
        self.killed.discard(name)

    def leave_hold(self, name):
        """Makes the server grant the lock to an owner without a client, as soon as its turn comes."""
        def ask():
            with contextlib.suppress(OSError), \
                    contextlib.closing(Client(str(self.processes[name].socket))) as client:
                client.ask("LOCK", KEY, "left-behind", LEFT_MS, "WAIT", 0)

        threading.Thread(target=ask, daemon=True).start()

    # The end.

    def ended_badly(self, process, status):
        self.wrong.append(f"{process.node} ended with {status}: {process.text()[-900:]}")

    def finish(self):
        """Ends all processes: first the clients, which release their locks, then the servers."""
        self.network.cut(set())
        for name in list(self.ended):
            self.begin_server(name)
        clients = [name for name in self.processes if name not in self.scene.servers]
        for names in (clients, self.scene.servers):
            for name in names:
                self.processes[name].signal(signal.SIGTERM)
                self.processes[name].signal(signal.SIGCONT)
            for name in names:
                process = self.processes[name]
                status = process.end(LIMIT_S)
                if (status != 0 and name not in self.killed) or any(x in process.text() for x in ASAN):
                    self.ended_badly(process, status)

    def kill_all(self):
        for process in self.processes.values():
            if process.process is not None and process.process.poll() is None:
                process.kill()


def scene_of(pattern, servers, clients, seed, seconds):
    return Scene([f"s{i}" for i in range(servers)], [f"c{i}" for i in range(clients)],
                 [f"v{i}" for i in range(pattern.guests)], seed, seconds)


def nodes_of(servers, clients):
    """All nodes that a pattern may need."""
    guests = max(pattern.guests for pattern in PATTERNS)
    return [f"{letter}{i}" for letter, number in (("s", servers), ("c", clients), ("v", guests))
            for i in range(number)]
