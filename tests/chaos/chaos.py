#!/usr/bin/env python3
"""Runs real servers and clients in network namespaces under faults: partitions, loss, delay, processes that
are stopped or killed, wall clocks that jump. A seed determines the faults. The clients record their
operations, and checker.py checks the records. The last lines are figures and "N passed, N failed". After a
failure build/chaos has the histories and logs. HOLDFAST_SERVER names the server; chaos-client must be in
its folder."""
import argparse
import collections
import contextlib
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time

from checker import carried_over, judge
from history import Recorder, load
from network import Loopback, make_network
from processes import DURABILITY, FAKETIME, LIMIT_S, LOSING, Crowd, Server
from schedule import CLOCK, KINDS, NETWORK, make_schedule

RECOVERED_S = 5  # time without faults after which clients must get locks again: a ttl, a recovery-wait
SHOWN = 5        # the largest number of printed findings for one promise
KEPT = pathlib.Path("build/chaos")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=120, help="duration of the faults")
    parser.add_argument("--settle", type=float, default=7, help="seconds without faults at the end")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 20))
    parser.add_argument("--servers", type=int, choices=range(1, 8), help="default: 1, 3 or 5")
    parser.add_argument("--durability", choices=DURABILITY, help="for all servers (default: mixed)")
    parser.add_argument("--faults", default=",".join(KINDS), help="some of " + ", ".join(KINDS))
    parser.add_argument("--loopback", action="store_true", help="use no namespaces")
    return parser.parse_args()


class Run:
    def __init__(self, args, network, folder):
        self.args, self.network, self.folder = args, network, folder
        self.rng = random.Random(args.seed)
        number = args.servers or self.rng.choice((1, 3, 5))
        self.servers = [f"s{i}" for i in range(number)]
        self.clients = ["d0", "d1", "d2", "q0", "q1", "q2"]
        kept = [how for how in DURABILITY if how != "forgetful"]
        self.durability = {name: args.durability or self.rng.choice(kept) for name in self.servers}
        self.recorder = Recorder(folder / "faults.history", "faults")
        self.processes = {}
        self.active = []
        self.noted = {}
        self.counts = collections.Counter()
        self.wrong = []
        self.healed_ns = 0

    def start(self):
        if self.network.can:
            for node in self.servers + self.clients:
                self.network.add(node)
        for name in self.servers:
            options = [*DURABILITY[self.durability[name]], "--journal-max-size",
                       self.rng.choice(("64kb", "256mb"))]
            self.processes[name] = Server(self.network, name, self.folder, options)
            self.processes[name].start()
        addresses = {name: self.processes[name].address() for name in self.servers}
        texts = (f"{host}:{port}" for host, port in addresses.values())
        quorum = f"quorum://{','.join(texts)}?timeout=400"
        self.begin = time.monotonic()
        until = self.begin + self.args.seconds + self.args.settle
        for number, name in enumerate(self.clients):
            part = {"seed": self.args.seed * 10 + number, "until": until}
            part |= ({"where": quorum, "threads": 4} if name[0] == "q" else
                     {"servers": addresses, "threads": 2 * len(self.servers)})
            self.processes[name] = Crowd(self.network, name, self.folder, part)
            self.processes[name].start()

    def play(self, schedule):
        steps = sorted([(fault.begin, 0, fault) for fault in schedule] +
                       [(fault.end, 1, fault) for fault in schedule], key=lambda step: step[:2])
        told = 0
        for at, over, fault in steps:
            time.sleep(max(self.begin + at - time.monotonic(), 0))
            (self.end_fault if over else self.begin_fault)(fault)
            if at - told >= 10:
                told = at
                print(f"{at:.0f} s: {sum(self.counts.values())} faults", flush=True)
        time.sleep(max(self.begin + self.args.seconds - time.monotonic(), 0))
        for process in self.processes.values():
            process.clock.set(0)
        self.healed_ns = time.monotonic_ns()

    def begin_fault(self, fault):
        self.counts[fault.kind] += 1
        process = self.processes.get(fault.node)
        if fault.kind in NETWORK:
            self.active.append(fault)
            self.network.apply(self.active)
        elif fault.kind in CLOCK:
            process.clock.set(fault.ahead)
        else:
            if process.process.poll() is not None:
                self.ended_badly(process, process.process.returncode)
            verb = fault.kind.split()[0]
            if fault.node in self.servers:
                self.noted[fault.node] = self.recorder.invoke(op=verb, place=fault.node)[0]
            if verb == "kill":
                process.kill()
            elif fault.node in self.servers:
                process.stop_still()
            else:
                process.signal(signal.SIGSTOP)

    def end_fault(self, fault):
        process = self.processes.get(fault.node)
        if fault.kind in NETWORK:
            self.active.remove(fault)
            self.network.apply(self.active)
        elif fault.kind not in CLOCK:
            if fault.kind.startswith("kill"):
                process.start()
            else:
                process.signal(signal.SIGCONT)
            if fault.node in self.noted:
                self.recorder.returned(self.noted.pop(fault.node), "ok")

    def ended_badly(self, process, status):
        self.wrong.append(f"{process.node} ended with {status}: {process.text()[-900:]}")

    def finish(self):
        """Waits for the end of all processes. Each must have exit status 0 and no report of a sanitizer."""
        for name in self.clients + self.servers:
            process = self.processes[name]
            if name in self.servers:
                process.signal(signal.SIGTERM)
            status = process.finish() if name in self.clients else process.end(LIMIT_S)
            text = process.text()
            if status != 0 or "Sanitizer" in text or "runtime error" in text:
                self.ended_badly(process, status)

    def kill_all(self):
        for process in self.processes.values():
            if process.process is not None and process.process.poll() is None:
                process.kill()

    def durable(self, place):
        return LOSING not in (self.durability.values() if place == "quorum" else [self.durability[place]])

    def verdict(self):
        """Prints the figures, and returns the violations by promise."""
        history = load(self.folder.glob("*.history"))
        found = judge(history, self.durable)
        grants = [op for op in history.ops if op.op == "lock" and op.outcome == "ok"]
        after = {op.place for op in grants if op.invoked > self.healed_ns + RECOVERED_S * 1e9}
        found["recovery"] = [f"no client gets a lock at {place} after the end of the faults"
                             for place in ["quorum", *self.servers] if place not in after]
        found["processes"] = self.wrong
        by_quorum = sum(op.place == "quorum" for op in grants)
        unknown = sum(op.outcome == "unknown" for op in history.ops)
        waited = sum(op.queued is not None for op in history.ops)
        print(f"{len(history.ops)} operations ({unknown} of unknown outcome), {len(grants)} grants "
              f"({by_quorum} by quorum), {waited} known waits in a queue")
        print("faults: " + ", ".join(f"{kind} {n}" for kind, n in sorted(self.counts.items())))
        print(f"{self.counts['kill']} kills of servers, {carried_over(history)} holds confirmed "
              f"after a kill; violations {sum(len(texts) for texts in found.values())}")
        return found


def keep(folder):
    shutil.rmtree(KEPT, ignore_errors=True)
    shutil.copytree(folder, KEPT, ignore=shutil.ignore_patterns("s[0-9]"))


def chaos(args, network, kinds):
    with tempfile.TemporaryDirectory(prefix="holdfast-chaos-") as folder:
        run = Run(args, network, pathlib.Path(folder))
        schedule = make_schedule(args.seed, args.seconds, run.servers, run.clients, kinds)
        print(f"{len(run.servers)} servers: "
              f"{', '.join(f'{name} {how}' for name, how in run.durability.items())}", flush=True)
        try:
            run.start()
            run.play(schedule)
            run.finish()
        finally:
            run.kill_all()
        found = run.verdict()
        if any(found.values()):
            keep(folder)
    return found


def main():
    args = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # an exception, so that cleanup runs
    wanted = args.faults.split(",")
    if unknown := set(wanted) - set(KINDS):
        sys.exit(f"no such faults: {', '.join(sorted(unknown))}")
    network, why = (Loopback(), "--loopback") if args.loopback else make_network()
    with contextlib.closing(network):
        can = set(network.can) | set(KINDS) - set(NETWORK) - (set() if FAKETIME else set(CLOCK))
        left_out = [kind for kind in wanted if kind not in can]
        if why:
            print(f"no namespaces ({why}): all nodes use the loopback, without faults of the network")
        print(f"seed {args.seed}, {args.seconds:g} s of faults; unavailable faults: "
              f"{', '.join(left_out) or 'none'}", flush=True)
        found = chaos(args, network, [kind for kind in wanted if kind in can])
    for promise, texts in found.items():
        for text in texts[:SHOWN]:
            print(f"FAILED {promise}: {text[:1500]}")
    failed = sum(1 for texts in found.values() if texts)
    print(f"{len(found) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
