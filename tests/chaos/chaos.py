#!/usr/bin/env python3
"""Runs real servers and clients in network namespaces under faults: partitions, loss, delay, processes that
are stopped, killed or restarted one after the other, also while they load their data, wall clocks that
jump, full and slow disks, folders that are replaced. A seed chooses the kinds of faults, and determines the
faults. The clients record their operations, a prober records whether the servers answer, and checker.py
checks the records. The last lines are figures and "N passed, N failed". After a failure build/chaos has the
histories and logs. HOLDFAST_SERVER names the server; chaos-client and slow-fsync.so must be in its
folder."""
import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import threading
import time

from checker import carried_over, judge
from disk import Disk, make_private_mounts
from history import Recorder, load
from keeper import Keeper
from network import Loopback, Network, make_network
from processes import DURABILITY, FAKETIME, LIMIT_S, SLOW_FSYNC, Crowd, Helper, Server
from schedule import CLOCK, DISK, KINDS, NETWORK, choose_kinds, make_schedule
from silence import common, slow_spans, slowest

RECOVERED_S = 5  # time without faults after which clients must get locks again: a ttl, a recovery-wait
SLOW_S = 0.7     # the machine may take so much of the time without faults
SHOWN = 5        # the largest number of printed findings for one promise
FOLDER = "holdfast-chaos-"  # with the process id of the test, in the folder of temporary files
KEPT = pathlib.Path("build/chaos")
RETRY_S = 2      # time after a full disk in which the server begins to work again


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60, help="duration of the faults of one round")
    parser.add_argument("--minutes", type=float, default=0, help="duration of all rounds; 0: one round")
    parser.add_argument("--settle", type=float, default=7, help="seconds without faults after a round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20),
                        help="of the first round; the next one has the next number")
    parser.add_argument("--servers", type=int, choices=range(1, 8), help="default: 1, 3 or 5")
    parser.add_argument("--durability", choices=DURABILITY, help="for all servers (default: mixed)")
    parser.add_argument("--faults", help=f"all, or some of {', '.join(KINDS)}; default: the seed chooses")
    parser.add_argument("--loopback", action="store_true", help="use no namespaces")
    parser.add_argument("--keep", action="store_true", help="keep the files of all rounds")
    parser.add_argument("--no-mounts", action="store_true", help="mount no disks: limit the size of files")
    return parser.parse_args()


class Run:
    def __init__(self, args, seed, kinds, network, folder):
        self.args, self.seed, self.network, self.folder = args, seed, network, folder
        self.rng = random.Random(seed)
        number = args.servers or self.rng.choice((1, 3, 5))
        self.servers = [f"s{i}" for i in range(number)]
        self.clients = ["d0", "d1", "d2", "q0", "q1", "q2"]
        kept = [how for how in DURABILITY if how != "forgetful"]
        self.durability = {name: args.durability or self.rng.choice(kept) for name in self.servers}
        self.kinds = kinds
        self.filled = {name for name in self.servers if "early" in kinds and self.rng.random() < 0.5}
        self.recorder = Recorder(folder / "faults.history", "faults")
        self.processes = {}
        self.null = None
        self.disks = {}
        self.keepers = {}
        self.active = []
        self.noted = {}
        self.unsettled = {}
        self.counts = collections.Counter()
        self.wrong = []
        self.healed_ns = self.until_ns = 0

    def start(self):
        if self.network.can:
            for node in self.servers + self.clients:
                self.network.add(node)
        for name in self.servers:
            self.make_server(name)
        for name, done in [(name, keeper.do(keeper.first_start, name in self.filled))
                           for name, keeper in self.keepers.items()]:
            if not done.wait(LIMIT_S) or self.keepers[name].wrong:
                raise AssertionError(f"{name} did not start: {self.keepers[name].wrong}")
        addresses = {name: self.processes[name].address() for name in self.servers}
        texts = (f"{host}:{port}" for host, port in addresses.values())
        quorum = f"quorum://{','.join(texts)}?timeout=400"
        self.begin = time.monotonic()
        until = self.begin + self.args.seconds + self.args.settle
        self.until_ns = int(until * 1e9)
        self.start_prober(until)
        for number, name in enumerate(self.clients):
            part = {"seed": self.seed * 10 + number, "until": until}
            part |= ({"where": quorum, "threads": 4} if name[0] == "q" else
                     {"servers": addresses, "threads": 2 * len(self.servers)})
            self.processes[name] = Crowd(self.network, name, self.folder, part)
            self.processes[name].start()

    def make_server(self, name):
        self.disks[name] = Disk(self.folder / name, "full" in self.kinds and not self.args.no_mounts)
        options = [*DURABILITY[self.durability[name]], "--journal-max-size",
                   "256mb" if name in self.filled else self.rng.choice(("64kb", "256mb"))]
        server = Server(self.network, name, self.folder, options, self.disks[name])
        self.processes[name] = server
        self.keepers[name] = Keeper(server, self.durability[name], self.recorder)

    def start_prober(self, until):
        null = str(self.folder / "null.socket")
        sockets = {name: str(self.processes[name].socket) for name in self.servers}
        self.null = Helper("null", self.folder, [null])
        self.null.start()
        self.processes["prober"] = Helper("prober", self.folder, [{
            "servers": {**sockets, "null": null}, "name": "prober", "until": until,
            "history": str(self.folder / "prober.history")}])
        self.null.until_listening(null)
        self.processes["prober"].start()

    def play(self, schedule):
        steps = sorted([(fault.begin, 0, fault) for fault in schedule] +
                       [(fault.end, 1, fault) for fault in schedule], key=lambda step: step[:2])
        told = 0
        for at, over, fault in steps:
            time.sleep(max(self.begin + at - time.monotonic(), 0))
            self.look_at_disks()
            (self.end_fault if over else self.begin_fault)(fault)
            if at - told >= 10:
                told = at
                print(f"{at:.0f} s: {sum(self.counts.values())} faults", flush=True)
        time.sleep(max(self.begin + self.args.seconds - time.monotonic(), 0))
        for process in self.processes.values():
            process.clock.set(0)
        for keeper in self.keepers.values():
            keeper.do(time.time).wait(LIMIT_S)  # after the tasks before it
        self.healed_ns = time.monotonic_ns()

    def begin_fault(self, fault):
        process = self.processes.get(fault.node)
        if fault.kind in DISK:
            return self.begin_disk_fault(fault)
        self.counts[fault.kind] += 1
        if fault.kind in NETWORK:
            self.active.append(fault)
            self.network.apply(self.active)
        elif fault.kind in CLOCK:
            process.clock.set(fault.ahead)
        elif fault.kind == "rolling":
            threading.Thread(target=self.roll, args=(fault,), daemon=True).start()
        elif fault.node in self.servers:
            self.begin_stop(fault, self.keepers[fault.node])
        else:
            self.begin_client_fault(fault.kind, process)
        return None

    def begin_stop(self, fault, keeper):
        end = self.begin + fault.end
        if fault.kind == "stop":
            keeper.do(keeper.pause, end)
        else:
            keeper.do(keeper.restart, fault.how or fault.kind, end, fault.again)

    def roll(self, fault):
        """Restarts the servers one after the other. Begins no restart after the end of the fault."""
        for name in fault.order:
            now = time.monotonic()
            if now + fault.away > self.begin + fault.end:
                return
            self.counts["restarts of a rolling one"] += 1
            self.keepers[name].do(self.keepers[name].restart, "term", now + fault.away).wait(LIMIT_S)

    def begin_client_fault(self, kind, process):
        if process.process.poll() not in (None, 0):
            self.ended_badly(process, process.process.returncode)
        process.kill() if kind == "kill client" else process.signal(signal.SIGSTOP)

    def end_fault(self, fault):
        process = self.processes.get(fault.node)
        if fault.kind in NETWORK:
            self.active.remove(fault)
            self.network.apply(self.active)
        elif fault.kind in DISK:
            self.end_disk_fault(fault)
        elif fault.kind == "kill client":
            process.start()
        elif fault.kind == "stop client":
            process.signal(signal.SIGCONT)

    def begin_disk_fault(self, fault):
        disk, server = self.disks[fault.node], self.processes[fault.node]
        beside = self.durability[fault.node] != "always" and not set(CLOCK) & set(self.kinds)
        number = self.recorder.invoke(op="fsync" if fault.kind == "fsync" else "disk", place=fault.node,
                                      delay=fault.delay, why="beside" if beside else "")[0]
        if fault.kind == "full":
            disk.fill(server.process.pid, fault.free)
        elif fault.kind == "fsync":
            disk.slow_down(fault.delay)
        elif not disk.replace(fault.how, self.disks[(fault.order or [fault.node])[0]].path):
            return self.recorder.returned(number, "failed")
        self.counts[f"folder {fault.how}" if fault.how else fault.kind] += 1
        self.noted[id(fault)] = number
        return None

    def end_disk_fault(self, fault):
        disk, server = self.disks[fault.node], self.processes[fault.node]
        number = self.noted.pop(id(fault), None)
        if number is None:
            return
        if fault.kind == "folder":
            if fault.how in ("away", "foreign"):
                disk.put_back()
            self.unsettled[number] = fault.node
        elif fault.kind == "fsync":
            disk.slow_down(0)
            self.recorder.returned(number, "ok")
        else:
            disk.empty(server.process.pid)
            self.recorder.write(id=number, returned=time.monotonic_ns() + RETRY_S * 10**9, outcome="ok")

    def look_at_disks(self):
        """Records the ends of the faults after which servers had to save their data in another folder."""
        for number, name in list(self.unsettled.items()):
            if self.disks[name].is_settled():
                self.recorder.returned(number, "ok")
                del self.unsettled[number]

    def ended_badly(self, process, status):
        self.wrong.append(f"{process.node} ended with {status}: {process.text()[-900:]}")

    def finish(self):
        """Waits for the end of all processes. Each must have exit status 0 and no report of a sanitizer."""
        for name in [*self.clients, "prober", *self.servers]:
            process = self.processes[name]
            if name in self.servers:
                self.look_at_disks()
                failing = process.disk.is_failing()  # because the machine was slow: see was_too_slow()
                process.signal(signal.SIGTERM)
                status = process.end(LIMIT_S)
                status = 0 if status == 1 and failing else status
            else:
                status = process.end(max(self.until_ns / 1e9 - time.monotonic(), 0) + LIMIT_S / 2)
            text = process.text()
            if status != 0 or "Sanitizer" in text or "runtime error" in text:
                self.ended_badly(process, status)
        for keeper in self.keepers.values():
            self.wrong += keeper.wrong
            self.counts += keeper.counts

    def kill_all(self):
        for keeper in self.keepers.values():
            keeper.stopping.set()
        for process in [*self.processes.values(), self.null]:
            if process is not None and process.process is not None and process.process.poll() is None:
                process.kill()
        for keeper in self.keepers.values():
            keeper.close()
        for disk in self.disks.values():
            disk.close()

    def was_too_slow(self, history):
        """Whether the clients had less time after the faults than planned, because the machine was slow."""
        slow_ns = common(self.healed_ns, self.until_ns, slow_spans(history.probes))
        return self.until_ns - self.healed_ns - slow_ns < (self.args.settle - SLOW_S) * 1e9

    def verdict(self):
        """Prints the figures, and returns the violations by promise."""
        history = load(self.folder.glob("*.history"))
        found = judge(history)
        grants = [op for op in history.ops if op.op == "lock" and op.outcome == "ok"]
        after = {op.place for op in grants if op.invoked > self.healed_ns + RECOVERED_S * 1e9}
        found["recovery"] = [f"no client gets a lock at {place} after the end of the faults"
                             for place in ["quorum", *self.servers] if place not in after]
        if self.was_too_slow(history):
            found["recovery"] = []
            print("not judged: recovery, because the machine was slow")
        found["processes"] = self.wrong
        by_quorum = sum(op.place == "quorum" for op in grants)
        unknown = sum(op.outcome == "unknown" for op in history.ops)
        waited = sum(op.queued is not None for op in history.ops)
        print(f"{len(history.ops)} operations ({unknown} of unknown outcome), {len(grants)} grants "
              f"({by_quorum} by quorum), {waited} known waits in a queue")
        print("faults: " + ", ".join(f"{kind} {n}" for kind, n in sorted(self.counts.items())))
        answers, longest_s, synced_s, slow_s = slowest(history)
        print(f"{answers} answers to PING: the latest after {longest_s:.3f} s, with slow syncs after "
              f"{synced_s:.3f} s; the machine was slow for {slow_s:.1f} s")
        restarts = sum(fault.op in ("kill", "term") for fault in history.faults)
        print(f"{restarts} restarts of servers, {carried_over(history)} holds confirmed after a restart; "
              f"violations {sum(len(texts) for texts in found.values())}")
        return found


def keep(folder, seed):
    shutil.rmtree(KEPT / str(seed), ignore_errors=True)
    shutil.copytree(folder, KEPT / str(seed), ignore=shutil.ignore_patterns("s[0-9]", "*.socket"))


def chaos(args, seed, network, kinds):
    """One round."""
    with tempfile.TemporaryDirectory(prefix=f"{FOLDER}{os.getpid()}-",
                                     ignore_cleanup_errors=True) as folder:
        run = Run(args, seed, kinds, network, pathlib.Path(folder))
        schedule = make_schedule(seed, args.seconds, run.servers, run.clients, kinds)
        print(f"seed {seed}: {', '.join(kinds)}")
        print(f"{len(run.servers)} servers: "
              f"{', '.join(f'{name} {how}' for name, how in run.durability.items())}", flush=True)
        try:
            run.start()
            run.play(schedule)
            run.finish()
        finally:
            run.kill_all()
        found = run.verdict()
        if any(found.values()) or args.keep:
            keep(folder, seed)
    for promise, texts in found.items():
        for text in texts[:SHOWN]:
            print(f"FAILED {promise}: {text[:1500]}")
    return found


def rounds(args, make_network_of, kinds):
    """Runs the rounds, and returns the promises that each one violated."""
    end = time.monotonic() + args.minutes * 60
    seed = args.seed
    wrong = {}
    while True:
        with contextlib.closing(make_network_of()) as network:
            chosen = kinds if args.faults else choose_kinds(seed, kinds)
            found = chaos(args, seed, network, chosen)
        for promise, texts in found.items():
            wrong.setdefault(promise, []).extend([seed] if texts else [])
        seed += 1
        print(f"after {seed - args.seed} rounds: violated in {sum(map(len, wrong.values()))}", flush=True)
        if time.monotonic() + args.seconds > end:
            return wrong


def available(args, network):
    """The kinds of faults that are possible here. Prints the ones that are not."""
    wanted = KINDS if args.faults in (None, "all") else args.faults.split(",")
    if unknown := set(wanted) - set(KINDS):
        sys.exit(f"no such faults: {', '.join(sorted(unknown))}")
    can = set(network.can) | set(KINDS) - set(NETWORK)
    can -= set() if FAKETIME else set(CLOCK)
    can -= set() if pathlib.Path(SLOW_FSYNC).exists() else {"fsync"}
    left_out = [kind for kind in wanted if kind not in can]
    print(f"seed {args.seed}, {args.seconds:g} s of faults in a round; unavailable faults: "
          f"{', '.join(left_out) or 'none'}", flush=True)
    return [kind for kind in KINDS if kind in wanted and kind in can]


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exception, so that cleanup runs
    if not args.no_mounts and (why := make_private_mounts()):
        args.no_mounts = True
        print(f"no mounts ({why}): a limit of the size of files takes the place of a full disk")
    network, why = (Loopback(), "--loopback") if args.loopback else make_network()
    with contextlib.closing(network):
        if why:
            print(f"no namespaces ({why}): all nodes use the loopback, without faults of the network")
        kinds = available(args, network)
    wrong = rounds(args, Loopback if why else Network, kinds)
    for promise, seeds in wrong.items():
        if seeds:
            print(f"FAILED {promise}, with the seeds {', '.join(map(str, seeds))}")
    failed = sum(1 for seeds in wrong.values() if seeds)
    print(f"{len(wrong) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
