#!/usr/bin/env python3
"""Kills the server by SIGKILL at random times under load, repeatedly on one data folder. Clients record the
acknowledged requests. After each restart every granted hold must exist, no released hold may exist, and the
tokens of a key must grow over all restarts. The last line is "N passed, N failed". HOLDFAST_SERVER names
the server. HOLDFAST_CRASH_ROUNDS is the number of kills. HOLDFAST_CRASH_SEED, or else HOLDFAST_SEED,
repeats the random choices of a run, but not its timing."""
import collections
import os
import random
import selectors
import socket
import subprocess
import sys
import tempfile
import time

from harness import HOLDFAST, end_with_parent

ROUNDS = int(os.environ.get("HOLDFAST_CRASH_ROUNDS", "200"))
SEED = int(os.environ.get("HOLDFAST_CRASH_SEED") or os.environ.get("HOLDFAST_SEED")
           or random.SystemRandom().randrange(1 << 30))
LIMIT_S = 60
CONNECTIONS = 4
BATCH = 12            # requests that a connection sends at once
TTL_STEP_MS = 600000  # TTLs are multiples of it, so that an old and a new deadline are far apart
SLACK_MS = 5000       # allowed difference between two clocks for one deadline
FOREVER = -1
KINDS = {"exclusive": 40, "shared": 30, "hash": 8, "lease": 20}  # number of items per connection
SHOWN = 10            # number of findings printed per sort


def now_ms():
    return time.time() * 1000


class Findings:
    """Counters of events, and the violations found."""

    def __init__(self):
        self.counts = collections.Counter()
        self.texts = collections.defaultdict(list)

    def wrong(self, sort, text):
        self.texts[sort].append(text)


class Client:
    """One connection; replies come as Python values, errors as Client.Error."""

    class Error(str):
        pass

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT_S)
        self.socket.connect(path)
        self.bytes = b""
        self.at = 0

    def send(self, *requests):
        out = []
        for args in requests:
            out.append(b"*%d\r\n" % len(args))
            for arg in args:
                text = str(arg).encode()
                out.append(b"$%d\r\n%s\r\n" % (len(text), text))
        self.socket.sendall(b"".join(out))

    def fill(self):
        """Reads the available bytes. Returns False if the connection is closed."""
        try:
            more = self.socket.recv(1 << 18)
        except ConnectionError:
            return False
        self.bytes = self.bytes[self.at:] + more
        self.at = 0
        return bool(more)

    def whole_reply(self):
        """The next reply in a list of one element, or None if the reply is incomplete."""
        before = self.at
        try:
            return [self.parse()]
        except ValueError:  # a line or a text is incomplete
            self.at = before
            return None

    def parse(self):
        end = self.bytes.index(b"\r\n", self.at)
        kind, rest = self.bytes[self.at:self.at + 1], self.bytes[self.at + 1:end]
        self.at = end + 2
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return Client.Error(rest.decode())
        n = int(rest.decode())
        if kind == b":" or n < 0:
            return n if kind == b":" else None
        if kind == b"*":
            return [self.parse() for _ in range(n)]
        end = self.at + n
        if len(self.bytes) < end + 2:
            raise ValueError("cut off")
        self.at = end + 2
        return self.bytes[end - n:end].decode()

    def ask(self, *requests):
        self.send(*requests)
        replies = []
        while len(replies) < len(requests):
            reply = self.whole_reply()
            if reply is not None:
                replies += reply
            elif not self.fill():
                raise AssertionError("the server closed the connection")
        return replies


class Item:
    """A hold, a lease or a hash that only one connection changes, and its acknowledged state. `hold` is
    None or [owner, token, earliest deadline, latest deadline]. The token is None until a reply contains it.
    For a hash, `hold` is a dict of its fields. `pending` is the number of requests without a reply."""

    def __init__(self, kind, keys, owner):
        self.kind, self.keys, self.owner = kind, keys, owner
        self.hold = {} if kind == "hash" else None
        self.last = 0
        self.pending = 0
        self.lease = None


class Model:
    """The items, and the rules by which replies change them."""

    def __init__(self, findings, rng):
        self.findings = findings
        self.rng = rng
        self.last = collections.Counter()  # the largest token in a reply, for each key
        self.leases = 0
        self.items = [[self.make(kind, c, i) for kind, n in KINDS.items() for i in range(n)]
                      for c in range(CONNECTIONS)]

    @staticmethod
    def make(kind, connection, i):
        keys = {"shared": [f"shared:{i}"], "lease": [f"lease:{connection}:{i}:{x}" for x in "ab"]}
        return Item(kind, keys.get(kind, [f"{kind}:{connection}:{i}"]), f"client-{connection}")

    def request(self, connection):
        """A request to send, and the function to call with its reply."""
        item = self.rng.choice(self.items[connection])
        args, apply = getattr(self, item.kind)(item)
        floor = max(item.last, *(self.last[key] for key in item.keys))
        item.pending += 1
        return args, lambda reply: self.answered(item, apply, reply, floor)

    def answered(self, item, apply, reply, floor):
        item.pending -= 1
        self.findings.counts["requests acknowledged"] += 1
        if isinstance(reply, Client.Error) and not reply.startswith(("EXPIRED", "CONFIRMED", "CANCELLED",
                                                                    "NOLEASE")):
            self.findings.wrong("lost", f"{item.keys}: refused with {reply}")
            return
        apply(reply, floor)

    def ttl(self):
        return self.rng.randint(1, 100) * TTL_STEP_MS

    def granted(self, item, owner, token, ttl, sent, floor):
        """Records a hold that a reply acknowledged. The token is None if the reply has none."""
        span = [sent + ttl, now_ms() + ttl]
        again = item.hold is not None and item.hold[0] == owner
        if not again:
            self.findings.counts["grants acknowledged"] += 1
        if again and item.hold[1] is not None:
            if token != item.hold[1]:
                self.findings.wrong("out of order", f"{item.keys}: {owner} acquires again, token "
                                                    f"{item.hold[1]} became {token}")
        elif token is not None and token <= floor:
            self.findings.wrong("out of order", f"{item.keys}: token {token} after {floor}")
        item.hold = [owner, token, *span]
        self.record_token(item, token)

    def record_token(self, item, token):
        if token is None:
            return
        item.last = max(item.last, token)
        for key in item.keys:
            self.last[key] = max(self.last[key], token)

    def released(self, item):
        if item.hold is not None:
            self.findings.counts["releases acknowledged"] += 1
        item.hold = None

    def renewed(self, item, ttl, sent):
        if item.hold is not None:
            item.hold[2:] = [sent + ttl, now_ms() + ttl]

    def lock_steps(self, item, owner, mode):
        key, ttl, sent = item.keys[0], self.ttl(), now_ms()

        def locked(reply, floor):
            if reply is not None:
                self.granted(item, owner, reply[1], ttl, sent, floor)

        return {
            "lock": (("LOCK", key, owner, ttl, *mode), locked),
            "renew": (("RENEW", key, owner, ttl), lambda r, _: r == 1 and self.renewed(item, ttl, sent)),
            "unlock": (("UNLOCK", key, owner), lambda r, _: r == 1 and self.released(item)),
        }

    def exclusive(self, item):
        owner = item.owner + self.rng.choice(("", "-other"))
        steps = self.lock_steps(item, owner, ())
        key, ttl, sent = item.keys[0], self.ttl(), now_ms()
        steps["set"] = (("SET", key, owner, "NX", "PX", ttl),
                        lambda r, floor: r == "OK" and self.granted(item, owner, None, ttl, sent, floor))
        steps["del"] = (("DEL", key), lambda r, _: r == 1 and self.released(item))
        return self.rng.choice(list(steps.values()))

    def shared(self, item):
        return self.rng.choice(list(self.lock_steps(item, item.owner, ("SHARED",)).values()))

    def hash(self, item):
        key, field, value = item.keys[0], f"f{self.rng.randrange(6)}", str(self.rng.randrange(1 << 30))
        return self.rng.choice((
            (("HSET", key, field, value), lambda r, _: item.hold.update({field: value})),
            (("HSET", key, field, value), lambda r, _: item.hold.update({field: value})),
            (("HDEL", key, field), lambda r, _: item.hold.pop(field, None)),
            (("DEL", key), lambda r, _: item.hold.clear())))

    def lease(self, item):
        ttl, sent, owner = self.ttl(), now_ms(), item.owner
        self.leases += 1
        made = f"lease-{self.leases}"

        def granted(reply, floor):
            if reply[0] is not None:
                self.granted(item, owner, reply[1], ttl, sent, floor)
                item.lease = made

        def confirmed(reply, _):
            if isinstance(reply, int) and item.hold is not None:
                item.hold[2:] = [FOREVER, FOREVER]

        id_ = item.lease or made
        values = [text for key in item.keys for text in (key, owner)]
        return self.rng.choice((
            (("LEASE", "GRANT", made, ttl, *values), granted),
            (("LEASE", "CONFIRM", id_), confirmed),
            (("LEASE", "CANCEL", id_),
             lambda r, _: r == "OK" and id_ == item.lease and self.released(item)),
            (("DEL", *item.keys), lambda r, _: r == 2 and self.released(item))))


class Checker:
    """Compares the state of a restarted server with the model. Copies to the model the outcome of requests
    without a reply."""

    def __init__(self, model, findings):
        self.model, self.findings = model, findings
        self.items = [item for items in model.items for item in items]

    def check(self, client):
        hashes = [item for item in self.items if item.kind == "hash"]
        keys = sorted({key for item in self.items if item.kind != "hash" for key in item.keys})
        asked = now_ms()
        replies = client.ask(*(("LOCKS", "INFO", key) for key in keys),
                             *(("HGETALL", item.keys[0]) for item in hashes))
        holders = {key: self.holders(info) for key, info in zip(keys, replies)}
        for item, flat in zip(hashes, replies[len(keys):]):
            self.check_hash(item, dict(zip(flat[::2], flat[1::2])))
        for item in self.items:
            if item.kind != "hash":
                self.check_hold(item, holders, asked)
        client_checks = [(key, h) for key, held in holders.items() for h in held.values()]
        for (key, held), there in zip(client_checks, client.ask(*(("LOCKS", "CHECK", key, h["token"])
                                                                  for key, h in client_checks))):
            if there != 1:
                self.findings.wrong("lost", f"{key}: LOCKS CHECK denies token {held['token']}")

    @staticmethod
    def holders(info):
        if info is None:
            return {}
        rows = [dict(zip(row[::2], row[1::2])) for row in dict(zip(info[::2], info[1::2]))["holders"]]
        return {row["owner"]: row for row in rows}

    def check_hash(self, item, there):
        if not item.pending:
            for field in item.hold.keys() | there.keys():
                if item.hold.get(field) != there.get(field):
                    self.findings.wrong("lost" if field in item.hold else "resurrected",
                                        f"{item.keys[0]} {field}: found {there.get(field)}, "
                                        f"acknowledged {item.hold.get(field)}")
        item.hold, item.pending = there, 0

    def check_hold(self, item, holders, asked):
        found = [holders[key] for key in item.keys]
        if item.kind == "shared":  # other items have the holds of the other owners
            found = [{item.owner: held[item.owner]} if item.owner in held else {} for held in found]
        if len({tuple((owner, row["token"]) for owner, row in held.items()) for held in found}) != 1:
            self.findings.wrong("lost", f"{item.keys}: only a part of a lease: {found}")
        row = next(iter(found[0].values()), None)
        if not item.pending:
            self.compare(item, row, asked)
        self.adopt(item, row, asked)

    def compare(self, item, row, asked):
        name = f"{item.keys}: found {row}, acknowledged {item.hold}"
        if item.hold is None:
            if row is not None:
                self.findings.wrong("resurrected", name)
            return
        if row is None or row["owner"] != item.hold[0]:
            self.findings.wrong("lost", name)
            return
        if item.hold[1] not in (None, row["token"]):
            self.findings.wrong("out of order", name)
        earliest, latest = item.hold[2:]
        if (row["ttl"] == FOREVER) != (earliest == FOREVER):
            self.findings.wrong("lost", name)
        elif earliest != FOREVER and not (earliest - SLACK_MS <= asked + row["ttl"] <= latest + SLACK_MS):
            self.findings.wrong("lost", f"{name}; the deadlines differ")

    def adopt(self, item, row, asked):
        """Copies the server's state of an item to the model: its last requests may have no reply."""
        if row is not None:
            token = row["token"]
            before = item.hold if item.hold is not None and item.hold[0] == row["owner"] else None
            new = before is None or before[1] is None
            # A shared hold keeps its token over the restart, even if other owners have got larger ones.
            floor = item.last if item.kind == "shared" else max(self.model.last[key] for key in item.keys)
            if token < floor or (token == floor and new and not item.pending):
                self.findings.wrong("out of order", f"{item.keys}: found {token} after {floor}")
            if new or before[1] != token:
                item.lease = None  # the lease of an earlier hold, which a request may still end
            span = [FOREVER] * 2 if row["ttl"] == FOREVER else [asked + row["ttl"]] * 2
            item.hold = [row["owner"], token, *span]
            self.model.record_token(item, token)
        else:
            item.hold = None
        item.pending = 0


class Process:
    """One run of the server on the folder, from its start to its end."""

    def __init__(self, folder, options):
        self.path = os.path.join(folder, "socket")
        self.process = subprocess.Popen([HOLDFAST, "--port", "0", "--unixsocket", self.path, "--dir",
                                         os.path.join(folder, "data"), "--save", "", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        preexec_fn=end_with_parent)
        self.log = ""

    def wait_ready(self):
        for line in self.process.stdout:
            self.log += line
            if "ready to accept connections" in line:
                break
        else:
            self.process.wait(LIMIT_S)
            raise AssertionError(f"the server did not restart:\n{self.log}")
        client = Client(self.path)
        while client.ask(("PING",))[0] != "PONG":
            pass
        return client

    def kill(self):
        self.process.kill()
        self.log += self.process.communicate(timeout=LIMIT_S)[0]

    def stop(self):
        self.process.terminate()
        self.log += self.process.communicate(timeout=LIMIT_S)[0]
        if self.process.returncode != 0:
            raise AssertionError(f"the server ended with status {self.process.returncode}:\n{self.log}")


class Load:
    """Connections that keep the server busy, each with one batch of requests in flight."""

    def __init__(self, model, path):
        self.model = model
        self.selector = selectors.DefaultSelector()
        for number in range(CONNECTIONS):
            client = Client(path)
            data = (number, client, collections.deque())
            self.selector.register(client.socket, selectors.EVENT_READ, data)

    def send(self, number, client, waiting):
        batch = [self.model.request(number) for _ in range(self.model.rng.randint(1, BATCH))]
        waiting.extend(apply for _, apply in batch)
        client.send(*(args for args, _ in batch))

    def run(self, seconds):
        deadline = time.monotonic() + seconds
        for key in list(self.selector.get_map().values()):
            self.send(*key.data)
        while (left := deadline - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                if not self.take(*key.data[1:]):
                    raise AssertionError("the server closed a connection")
                if not key.data[2]:
                    self.send(*key.data)

    @staticmethod
    def take(client, waiting):
        """Handles the replies received so far. Returns False if the connection is closed."""
        more = client.fill()
        while more and waiting and (reply := client.whole_reply()) is not None:
            waiting.popleft()(reply[0])
        return more

    def drain(self):
        """Handles the replies that the server sent before it was killed: they are acknowledged, too."""
        for key in list(self.selector.get_map().values()):
            while self.take(*key.data[1:]):
                pass
            key.fileobj.close()
        self.selector.close()


def options_of(number, rng):
    return ["--appendfsync", ("always", "everysec", "no")[number % 3],
            "--compress", rng.choice(("yes", "no"))]


def one_round(number, folder, model, checker, rng):
    findings = model.findings
    if rng.random() < 0.1:  # a kill during the start must change nothing
        process = Process(folder, options_of(number, rng))
        try:
            process.process.wait(rng.uniform(0, 0.04))
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        findings.counts["killed while starting"] += 1
    process = Process(folder, options_of(number, rng))
    try:
        client = process.wait_ready()
        checker.check(client)
        seconds = rng.uniform(0.02, 0.2)
        load = Load(model, process.path)
        if rng.random() < 0.4:  # at a random time, so that the kill may hit the save
            before = rng.uniform(0, seconds)
            load.run(before)
            client.send(("BGSAVE",))
            seconds -= before
            findings.counts["snapshots begun"] += 1
        load.run(seconds)
        process.process.kill()
        load.drain()
        client.socket.close()
    finally:
        process.kill()
    findings.counts["kills"] += 1


def run(findings):
    rng = random.Random(SEED)
    model = Model(findings, rng)
    checker = Checker(model, findings)
    with tempfile.TemporaryDirectory(prefix="holdfast-crash-") as folder:
        for number in range(ROUNDS):
            one_round(number, folder, model, checker, rng)
        process = Process(folder, [])
        try:
            checker.check(process.wait_ready())
            process.stop()
        finally:
            process.kill()


def main():
    findings = Findings()
    started = time.monotonic()
    try:
        run(findings)
    except Exception as why:  # the findings so far are printed all the same
        findings.wrong("unhealthy", f"{type(why).__name__}: {why}")
    sorts = ("lost", "resurrected", "out of order", "unhealthy")
    for sort in sorts:
        for text in findings.texts[sort][:SHOWN]:
            print(f"FAILED: {sort}: {text}")
    counts = ", ".join(f"{name} {n}" for name, n in sorted(findings.counts.items()))
    print(f"seed {SEED}, {time.monotonic() - started:.0f} s: {counts}, lost {len(findings.texts['lost'])}, "
          f"resurrected {len(findings.texts['resurrected'])}, "
          f"tokens out of order {len(findings.texts['out of order'])}")
    failed = sum(1 for sort in sorts if findings.texts[sort])
    print(f"{len(sorts) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
