"""The thread of one server: starts its process, and carries out the faults of it, one after the other. All
starts of a server are in one thread, because the system kills a process at the end of the thread that
started it."""
import collections
import queue
import signal
import threading
import time
import traceback

from processes import LIMIT_S, LOSING

SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM}
RETRY_S = 0.2  # between two starts while the disk is full


class Ended(Exception):
    """The run ends: no more faults."""


class Keeper(threading.Thread):
    def __init__(self, server, durability, recorder):
        super().__init__(daemon=True, name=server.node)
        self.server, self.disk, self.recorder = server, server.disk, recorder
        self.loses = LOSING.get(durability, ())
        self.tasks = queue.Queue()
        self.stopping = threading.Event()
        self.counts = collections.Counter()
        self.wrong = []
        self.start()

    def do(self, task, *args):
        """Carries out a task after the ones before it. Returns an event that is set at the task's end."""
        done = threading.Event()
        self.tasks.put((task, args, done))
        return done

    def run(self):
        while not self.stopping.is_set():
            try:
                task, args, done = self.tasks.get(timeout=0.1)
            except queue.Empty:
                continue
            try:
                task(*args)
            except Ended:
                pass
            except Exception:  # the report names it
                self.wrong.append(f"{self.server.node}: {traceback.format_exc(limit=-3)}")
            done.set()

    def close(self):
        """Ends the thread, and its server."""
        self.stopping.set()
        self.join(LIMIT_S)

    def sleep_until(self, at):
        if self.stopping.wait(max(at - time.monotonic(), 0)):
            raise Ended

    def text(self):
        return self.server.text()

    # Tasks.

    def first_start(self, fill):
        self.server.start()
        if fill:
            self.server.fill()

    def pause(self, end):
        self.revive()
        number = self.recorder.invoke(op="stop", place=self.server.node)[0]
        self.server.stop_still()
        try:
            self.sleep_until(end)
        finally:
            self.server.signal(signal.SIGCONT)
            self.recorder.returned(number, "ok")

    def restart(self, name, end, again=()):
        """Stops the server by this signal, and starts it at the end. Before that it may start and stop
        `again`: pairs of seconds after a start, and a signal."""
        self.revive()
        number = self.stop(name)
        for after, early in again:
            self.launch(number)
            latest = time.monotonic() + after
            while self.server.process.poll() is None and time.monotonic() < latest:
                self.sleep_until(min(latest, time.monotonic() + 0.02))
            self.counts[self.state()] += 1
            self.recorder.returned(number, "ok")
            number = self.stop(early)
        self.sleep_until(end)
        self.start_again(number)

    def revive(self):
        """Reports and starts the server if it has ended by itself."""
        status = self.server.process.poll()
        if status is not None:
            self.ended_badly(status)
            self.server.start()

    def ended_badly(self, status):
        self.wrong.append(f"{self.server.node} ended with {status}: {self.text()[-900:]}")

    def stop(self, name):
        """Stops the server by this signal. Returns the number of the record."""
        number = self.recorder.invoke(op=name, place=self.server.node)[0]
        failing = self.disk.is_failing()
        self.server.signal(SIGNALS[name])
        status = self.server.end(LIMIT_S)
        if status == -signal.SIGTERM and not self.server.took_signals():
            status, name = 0, "kill"
        failed = status == 1 and (failing or self.disk.is_failing())
        if status not in (0, -signal.SIGKILL) and not failed:
            self.ended_badly(status)
        lost = self.disk.end_stop()
        if lost or ("failed" if failed else name) in self.loses:
            self.recorder.write(id=number, why="loses")
        return number

    def state(self):
        if not self.server.is_ready():
            return "stops while LOADING"
        return "stops during a recovery wait" if self.server.is_recovering() else "stops after a start"

    def launch(self, number):
        self.server.begin()
        self.recorder.write(id=number, launched=time.monotonic_ns())

    def start_again(self, number):
        """Starts the server, and waits until it is ready. While its disk is full it may fail to start."""
        while True:
            failing = self.disk.is_failing()
            self.launch(number)
            while self.server.is_ready() is False:
                self.sleep_until(time.monotonic() + 0.01)
            if self.server.is_ready():
                break
            if not failing and not self.disk.is_failing():
                raise AssertionError(f"{self.server.node} did not start: {self.text()[-600:]}")
            self.sleep_until(time.monotonic() + RETRY_S)
        self.recorder.returned(number, "ok")
