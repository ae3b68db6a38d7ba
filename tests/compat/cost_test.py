#!/usr/bin/python3
"""The cost of a request as a property: each command of the table with small arguments, on values of every
type with a million elements, on Holdfast and on stock Redis.

It compares the CPU time of the processes, so a busy machine does not matter much. A request passes if it
lets other clients wait for less than BLOCK_MS of CPU time. A command that is not documented as O(1) or
O(log N) may also take FACTOR times the CPU time of Redis, or what FACTORS has. The test prints a table of
the costliest requests, and what it does not send. The last line is "N passed, N failed", counted in pairs
of a command and a kind of value. HOLDFAST_SERVER and REDIS_SERVER name the two binaries. Arguments select
commands by a part of their name."""
import argparse
import concurrent.futures
import dataclasses
import pathlib
import sys
import time

sys.dont_write_bytecode = True  # build/ is the only place for what is made
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
import cost_values as values  # noqa: E402, these need the path above
from cost_requests import LIBRARY, SCORE_RANGES, Words, commands_of, forms_of  # noqa: E402
from cost_servers import CostServer  # noqa: E402
from cost_values import KINDS, LARGE, MEDIUM, REMOVED, SMALL, key_of, number_of  # noqa: E402

BLOCK_MS = 3       # of an O(1) request, and of each part of a request that is done in parts
FACTOR = 2.0       # beside Redis
FACTOR_IN_PARTS = 4.0
# Measured: 1.4 to 2.1. Each member that goes is a cache miss in the order and one in the hash.
FACTORS = {"zremrangebyrank": 2.5}
SLACK_MS = 3
OWN_US = 3.0       # for each element, of a command that Redis does not have
TRIES = 4          # the least cost of them counts
LARGE_REPLY = 1 << 16
LONGEST_FIRST_MS, LONGEST_OTHER_MS = 8, 0.6  # see longest_ms
SHOWN_MS = 1.0     # the table has the requests that take longer on one server
SHOWN_COLUMNS = 70

# Commands that the test does not send, and why.
SKIPPED = {
    "client|kill": "closes connections", "client|pause": "blocks clients",
    "client|reply": "has no reply", "quit": "closes the connection", "shutdown": "ends the server",
    "debug": "is for tests", "monitor": "its reply does not end", "wait": "replication",
    "swapdb": "exchanges the values of the test", "multi": "queues what follows",
    "exec": "needs a queue", "discard": "needs a queue",
    "backup|start": "O(N) of the keyspace", "backup|read": "O(N) of the keyspace",
    "bgsave": "O(N) of the keyspace", "bgrewriteaof": "O(N) of the keyspace",
    "save": "O(N) of the keyspace", "keys": "O(N) of the keyspace", "flushall": "O(N) of the keyspace",
    "flushdb": "O(N) of the keyspace", "config|rewrite": "needs a file",
}
# Commands of which no request succeeds, and why.
FAILING = {
    "acl|load": "needs a file", "acl|save": "needs a file", "client|caching": "needs CLIENT TRACKING",
    "function|kill": "no function runs", "script|kill": "no script runs", "latency|graph": "has no events",
}
# Requests that do not keep the bound, and why: the command, the kind of value, a part of the request.
KNOWN = {
    ("*", "holders", ""): "the end of each hold is an event of its own",
    ("set", "string", "IFD"): "the digest of the old value: 0.1 ns for each byte",
    ("delex", "string", "IFD"): "the digest of the value",
    ("scan", "absent", "COUNT"): "half a million locks, which Redis does not have, are in the reply",
}


@dataclasses.dataclass
class Case:
    """A request on values of one kind."""
    form: object
    kind: object
    destroys: bool   # it removes the value, or a large part of it
    in_redis: bool

    @property
    def command(self):
        return self.form.command

    def sizes(self):
        if self.kind.own:
            return (LARGE,)
        if self.kind.name in ("absent", "number"):
            return (SMALL,)
        if self.destroys:
            return (REMOVED,)
        if self.command.is_constant:
            return (LARGE,)
        return (MEDIUM, LARGE)

    @property
    def longest_ms(self):
        """The most CPU time on values of MEDIUM size with which the request is also sent to LARGE ones."""
        return LONGEST_FIRST_MS if self.form.is_first else LONGEST_OTHER_MS

    def is_constant(self, reply_bytes):
        by_score = "score" in f"{self.command.name} {self.form.label}".lower()
        many_have_the_score = self.kind.name in SCORE_RANGES and by_score
        return (self.command.is_constant and self.form.place != "many" and reply_bytes < LARGE_REPLY
                and not many_have_the_score)


@dataclasses.dataclass
class Result:
    case: Case
    size: int
    holdfast: object
    redis: object    # None: Redis does not have the command
    passed: bool

    @property
    def place(self):
        return self.case.command.name, self.case.kind.name

    @property
    def redis_ms(self):
        return self.redis.cpu if self.redis else 0.0

    @property
    def is_fault(self):
        return not self.passed and not self.is_known

    @property
    def is_known(self):
        command, of = self.place
        return any(name in ("*", command) and kind == of and part in self.case.form.label
                   for name, kind, part in KNOWN)


class Run:
    """All requests, to new servers. `only`: parts of names of commands; `exactly`: whole names."""

    def __init__(self, only, exactly=()):
        self.holdfast, self.redis = CostServer("holdfast"), CostServer("redis")
        self.servers = (self.holdfast, self.redis)
        self.only = only if only or exactly else [""]
        self.exactly = exactly
        self.is_whole = not only and not exactly
        self.results = []
        self.succeeded, self.sent, self.unsent = set(), set(), set()  # names of commands
        self.usage = {}  # of each key, when it was made

    # Values.

    def make_all(self):
        with concurrent.futures.ThreadPoolExecutor() as pool:
            list(pool.map(self.make_values, self.servers))
        self.payloads = {"generic": self.redis.must("DUMP", key_of(values.BY_NAME["list"], SMALL)),
                         "scripting": self.redis.must("FUNCTION", "DUMP")}
        self.redis.must("FUNCTION", "LOAD", LIBRARY.format("other"))

    def make_values(self, server):
        server.must("FUNCTION", "LOAD", LIBRARY.format("lib"))
        for kind in KINDS:
            if kind.own and server is self.redis:
                continue
            for size in (SMALL, LARGE) if kind.own else (SMALL, MEDIUM, REMOVED, LARGE):
                values.fill(server, key_of(kind, size), kind, size)
                if size == REMOVED and kind.fill:
                    server.must("COPY", key_of(kind, size), f"pristine:{kind.name}")
        if server is self.holdfast:
            server.must("FUNCTION", "LOAD", LIBRARY.format("other"))
            values.fill_locks(server)

    def restore(self, kind, size):
        """Makes the value of the key as it was, if a large part of it is gone. Removes results."""
        for server in self.servers:
            server.ask("UNLINK", "to")
        if self.is_complete(kind, size):
            return
        key = key_of(kind, size)
        for server in self.servers:
            if kind.own and server is self.redis:
                continue
            if size == REMOVED and kind.fill:
                server.must("COPY", f"pristine:{kind.name}", key, "REPLACE")
            else:
                values.fill(server, key, kind, size)
        self.usage.pop(key)
        self.is_complete(kind, size)

    def is_complete(self, kind, size):
        """Whether the key has most of its elements. The first call says how many that are."""
        key = key_of(kind, size)
        present = self.holdfast.ask("MEMORY", "USAGE", key) or 0, self.holdfast.ask("TYPE", key)
        if kind.name == "waiters":
            top = self.holdfast.must("LOCKS", "TOP", "BY", "waiters", "COUNT", 2)
            present = sum(row[3] for row in top if row[1] == key.encode()), ""
        first = self.usage.setdefault(key, present)
        return first[1] == present[1] and first[0] * 0.7 <= present[0] <= first[0] * 1.4

    # Requests.

    def words(self, form, kind, size, attempt):
        number = number_of(kind, size)
        if not form.command.has_key:
            number = values.LOCKS
        return Words(form, kind, size, number, attempt, self.payloads).request()

    def renew(self, command):
        """For commands that change more than a value."""
        if command.is_lasting:
            for server in self.servers:
                server.renew_connection()
        if command.name.startswith("lease|"):
            values.end_lease(self.holdfast)
            values.grant_lease(self.holdfast)

    def case(self, form, kind):
        """Sends the request to small values, to learn what it does."""
        words = self.words(form, kind, SMALL, 0)
        self.restore(kind, SMALL)
        self.renew(form.command)
        reply, other = (server.answer(words) for server in self.servers)
        failed = reply.startswith(b"-")
        if not failed:
            self.succeeded.add(form.command.name)
        wrong = reply.startswith(b"-WRONGTYPE")
        in_redis = not kind.own and failed == other.startswith(b"-")
        case = Case(form, kind, not self.is_complete(kind, SMALL), in_redis)
        self.restore(kind, SMALL)
        return case, wrong

    def cases(self, command):
        """The requests of a command on a kind of value."""
        forms = list(forms_of(command))
        if not command.has_key:
            kind = values.BY_NAME["absent"]
            yield from (Case(form, kind, False, True) for form in forms)
            return
        for kind in KINDS:
            for form in forms:
                case, wrong = self.case(form, kind)
                yield case
                if wrong:
                    break

    def measure(self, case, size):
        """Sends the request until it passes, at most TRIES times."""
        costs = {}
        for attempt in range(TRIES):
            words = self.words(case.form, case.kind, size, attempt)
            self.renew(case.command)
            for server in self.servers if case.in_redis else self.servers[:1]:
                cost = server.cost(words)
                costs[server] = cost.least(costs[server]) if server in costs else cost
            self.restore(case.kind, size)
            redis = costs.get(self.redis)
            if redis and redis.failed and not costs[self.holdfast].failed:
                redis = None
            result = Result(case, size, costs[self.holdfast], redis, False)
            result.passed = passes(result)
            if result.passed:
                break
        if not result.holdfast.failed:
            self.succeeded.add(case.command.name)
        return result

    def run_case(self, case):
        for size in case.sizes():
            result = self.measure(case, size)
            self.results.append(result)
            if max(result.redis_ms, result.holdfast.cpu / FACTOR) > case.longest_ms:
                break

    def run(self):
        began = time.monotonic()
        self.make_all()
        print(f"values: {time.monotonic() - began:.1f} s", flush=True)
        for command in commands_of(self.holdfast.must("COMMAND", "DOCS")):
            if command.name in SKIPPED:
                self.unsent.add(command.name)
                continue
            if command.name not in self.exactly and not any(part in command.name for part in self.only):
                continue
            self.sent.add(command.name)
            began = time.monotonic()
            number = len(self.results)
            for case in self.cases(command):
                self.run_case(case)
            for server in self.servers if command.is_lasting else ():
                server.renew_connection()
            if time.monotonic() - began > 2:
                print(f"{command.name}: {len(self.results) - number} requests, "
                      f"{time.monotonic() - began:.1f} s", flush=True)


def passes(result):
    """Whether a request keeps the bound."""
    cost, other = result.holdfast, result.redis
    in_parts = cost.block < BLOCK_MS
    if other is None:
        number = number_of(result.case.kind, result.size) if result.case.command.has_key else values.LOCKS
        return in_parts or (not result.case.is_constant(cost.size)
                            and cost.cpu < SLACK_MS + number * OWN_US / 1000)
    if in_parts:
        return cost.cpu < FACTOR_IN_PARTS * other.cpu + SLACK_MS
    factor = FACTORS.get(result.case.command.name, FACTOR)
    return not result.case.is_constant(cost.size) and cost.cpu < factor * other.cpu + SLACK_MS


def line_of(result):
    ours, redis = result.holdfast, result.redis
    beside = f"{redis.cpu:9.2f} {ours.cpu / redis.cpu:6.2f}" if redis else " " * 16
    memory = f"{redis.memory:6.1f}" if redis else " " * 6
    case = result.case
    value = f"{case.kind.name} of {number_of(case.kind, result.size)}" if case.command.has_key else "-"
    name = f"{case.command.name.replace('|', ' ').upper()} {case.form.label}"
    return (f"{ours.cpu:9.2f} {beside} {ours.block:7.2f} {ours.delay:7.1f} {ours.memory:6.1f} {memory}  "
            f"{value:19} {name[:SHOWN_COLUMNS]}")


def print_table(results):
    """The costliest request of each command on each kind of value, and all that fail."""
    print("CPU time of both servers in ms, CPU time in which Holdfast served no other client, delay of\n"
          "the PING of such a client in ms, growth of the peak memory of both in MiB:\n"
          "\n Holdfast     Redis  ratio   block    PING memory  Redis  value               request")
    seen = set()
    for result in sorted(results, key=lambda r: -r.holdfast.cpu):
        is_small = max(result.holdfast.cpu, result.redis_ms) < SHOWN_MS
        if result.passed and (result.place in seen or is_small):
            continue
        seen.add(result.place)
        print(line_of(result) + ("" if result.passed else "  KNOWN" if result.is_known else "  FAILED"))
    print(f"All other requests of the {len(results)} take less than {SHOWN_MS} ms, or less than one of the "
          "same command on the same kind of value.")


def summary(run):
    """Prints the result. Returns the exit status."""
    print_table(run.results)
    for name, reason in sorted(SKIPPED.items()):
        print(f"not sent: {name.replace('|', ' ').upper()}: {reason}")
    for (command, kind, part), reason in KNOWN.items():
        print(f"known: {command.replace('|', ' ').upper()} {part} on {kind}: {reason}")
    faults = []
    if run.is_whole:
        unknown = {name for name in run.sent if name not in run.succeeded and name not in FAILING}
        faults = [f"no request of {name} succeeds: cost_requests.py lacks words for it" for name in unknown]
        gone = (SKIPPED.keys() | FAILING.keys()) - run.sent - run.unsent
        faults += [f"{name} is listed, but there is no such command" for name in gone]
    print("".join(f"FAILED {fault}\n" for fault in sorted(faults)), end="")
    pairs = {result.place for result in run.results}
    failed = {result.place for result in run.results if result.is_fault}
    number = len(failed) + len(faults)
    print(f"{len(pairs) - len(failed)} passed, {number} failed")
    return 1 if number else 0


def run_to_the_end(run):
    """Returns whether both servers ended with status 0."""
    try:
        run.run()
    finally:
        stopped = [server.stop() for server in run.servers]
    return all(stopped)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", help="a part of the name of a command")
    run = Run(parser.parse_args().only)
    stopped = run_to_the_end(run)
    if again := {result.case.command.name for result in run.results if result.is_fault}:
        print(f"measured again, on new servers: {', '.join(sorted(again))}", flush=True)
        second = Run([], again)
        stopped = run_to_the_end(second) and stopped
        others = [result for result in run.results if result.case.command.name not in again]
        run.results = others + second.results
    if not stopped:
        print("FAILED: a server did not end with status 0")
    return summary(run) or not stopped


if __name__ == "__main__":
    sys.exit(main())
