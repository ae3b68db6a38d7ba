#!/usr/bin/env python3
"""Sends the same random commands to Holdfast and to stock Redis, and compares the replies byte for byte.

Prints each difference once, shortened to the commands that show it. The last line is "N passed, N failed",
counted in sessions. The seed determines the whole run; `--session` plays one session again. differences.py
lists the permitted differences with their reasons.
"""
import argparse
import os
import random
import re
import sys
import time

import differences
import differential_servers as servers
from differential_run import GONE, Duel, Shrinker, report, signature
from differential_sessions import KINDS, Planner
from differential_wire import command_text

PROGRESS_S = 5
# A run of so many commands must send every command: see UNSENT in differences.py.
COMPLETE = 60_000
MOST_EXTRA = 3  # times as many commands as asked for, to send the rare ones too


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commands", type=int, default=60_000, help="the least number of commands")
    parser.add_argument("--seed", default=os.environ.get("HOLDFAST_SEED", "1"),
                        help="'random': another seed for each run; default: HOLDFAST_SEED, or 1")
    parser.add_argument("--protocol", choices=["2", "3", "both"], default="both")
    parser.add_argument("--against", choices=["redis", "holdfast"], default="holdfast",
                        help="the server to compare with Redis; redis: a second Redis")
    parser.add_argument("--session", type=int, help="play only the session of this number")
    parser.add_argument("--kind", help="play only sessions of this kind")
    parser.add_argument("--without", help="omit commands whose beginning matches this regular expression")
    parser.add_argument("--shrink-seconds", type=float, default=10,
                        help="the time limit for shortening one difference, in seconds")
    parser.add_argument("--reports", type=int, default=50, help="end after this number of different faults")
    return parser.parse_args()


def without(session, pattern):
    left_out = re.compile(pattern, re.IGNORECASE)
    for batch in session.batches:
        kept = [command for command in batch.commands if not left_out.match(command_text(command))]
        batch.commands[:] = kept
    return session._replace(batches=[b for b in session.batches if b.commands or b.how == "marker"])


class Run:
    def __init__(self, options):
        self.options = options
        any_seed = str(random.SystemRandom().randrange(10**9))
        self.seed = any_seed if options.seed == "random" else options.seed
        other = servers.redis("other") if options.against == "redis" else servers.holdfast()
        self.servers = (servers.redis(), other)
        self.duel = Duel(*self.servers)
        self.passed = self.failed = 0
        self.faults = {}
        self.began = self.told = time.monotonic()

    def plan(self, number):
        protocol = 2 + number % 2 if self.options.protocol == "both" else int(self.options.protocol)
        kind = self.options.kind or (KINDS[number] if number < len(KINDS) else None)
        session = Planner(random.Random(f"{self.seed}:{number}")).plan(protocol, kind)
        return without(session, self.options.without) if self.options.without else session

    def play(self, number):
        session = self.plan(number)
        difference = self.duel.play(session)
        if difference is None:
            self.passed += 1
            return
        self.failed += 1
        fault = signature(difference)
        self.faults[fault] = self.faults.get(fault, 0) + 1
        died = self.duel.restart_dead() if fault[0] == GONE else []
        if self.faults[fault] > 1:
            return
        session, difference = Shrinker(self.duel, session, difference, self.options.shrink_seconds).shrink()
        if died:
            print("".join(server.last_words for server in self.servers if server.name in died))
        names = [server.name for server in self.servers]
        print(f"FAILED difference {len(self.faults)}, --seed {self.seed} --session {number}, "
              f"{session.kind}, RESP{session.protocol}:\n" + report(session, difference, names), flush=True)

    def progress(self):
        now = time.monotonic()
        if now - self.told > PROGRESS_S:
            self.told = now
            rate = self.duel.commands / (now - self.began)
            print(f"{self.duel.commands} commands, {rate:.0f}/s, {self.failed} sessions differ", flush=True)

    def all(self):
        if self.options.session is not None:
            self.play(self.options.session)
            return
        number = 0
        while self.goes_on() and len(self.faults) < self.options.reports:
            self.play(number)
            self.progress()
            number += 1

    def goes_on(self):
        """A rare command may be in none of the sessions that were asked for: more sessions follow then."""
        asked, sent = self.options.commands, self.duel.commands
        return sent < asked or (sent < asked * MOST_EXTRA and self.is_complete() and self.unsent_unlisted())

    def is_complete(self):
        """Whether the run is to send each command that both servers have."""
        options = self.options
        is_part = options.kind or options.without or options.session is not None
        return not is_part and options.commands >= COMPLETE

    def unsent(self):
        return self.duel.shared_commands() - self.duel.sent

    def unsent_unlisted(self):
        return {command for command in self.unsent() if not differences.is_unsent(command)}

    def count_unsent(self):
        """Counts each command that both servers have, and the whole run did not send, as a failure."""
        if not self.is_complete():
            return
        unsent = self.unsent()
        unlisted = self.unsent_unlisted()
        self.failed += len(unlisted)
        if unlisted:
            print("FAILED never sent: " + b" ".join(sorted(unlisted)).decode())
        listed = len(unsent - unlisted)
        print(f"{len(unsent)} commands of both servers were not sent; {listed} of them are listed")

    def close(self):
        for server in self.servers:
            if not server.stop():
                self.failed += 1
                status = server.process.returncode
                print(f"{server.name} ended with status {status}:\n" + "".join(server.log[-60:]))
        for reason, times in self.duel.seen.items():
            print(f"listed, {times} times: {reason}")
        seconds = time.monotonic() - self.began
        print(f"{self.duel.commands} commands in {self.passed + self.failed} sessions, seed {self.seed}, "
              f"{seconds:.1f} s, {len(self.faults)} kinds of differences")
        print(f"{self.passed} passed, {self.failed} failed")


def main():
    sys.setrecursionlimit(20_000)  # scripts reply with nested tables, to the depth that Redis permits
    run = Run(arguments())
    try:
        run.all()
        run.count_unsent()
    finally:
        run.close()
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
