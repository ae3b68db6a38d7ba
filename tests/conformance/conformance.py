#!/usr/bin/env python3
"""Runs the one table of cases on each target: the commands of Holdfast (native), its scripts, which leave
the work to those (eval), the scripts themselves in Holdfast's Lua (lua), stock Redis (redis), and a Redis
Cluster (cluster). Prints what differs from the table and a sum for each target, and closes with "N passed,
N failed". HOLDFAST_SERVER and REDIS_SERVER name the servers.
    conformance.py [TARGET]... [-k PART OF A CASE'S NAME]
"""
import argparse
import re
import shlex
import sys
import time
import traceback

sys.dont_write_bytecode = True  # build/ is the only place for what is made
from servers import LIMIT_S, equal, has, holdfast, redis, Cluster, until  # first: it sets the path
import cases
import cases_lease  # noqa: F401  it adds its own
from expected import matches
from scripts import Scripts, as_bytes, lease_key, token_key


class Target:
    """A server that is asked in its way: by command, or by script."""

    def __init__(self, name, server, scripts=None):
        self.name, self.server, self.scripts = name, server, scripts

    def row(self, key):
        """What LOCKS LIST says of the key; None: it is not among the locks."""
        if self.scripts:
            return self.ask("LOCKS", "LIST", key)
        cursor, rows = b"0", []
        while not rows or cursor != b"0":
            cursor, page = self.ask("LOCKS", "LIST", cursor, "COUNT", 1000, "MATCH", key)
            rows += page or [None]
        return next((row for row in rows if row), None)

    def ask(self, *command):
        call = self.scripts and self.scripts.call(*command)
        if not call:
            words = [as_bytes(word) for word in command]
            key = words[3] if words[0] == b"EVAL" else (words + [b""])[1]
            return self.server.ask(key, *command)
        name, keys, arguments = call
        text, sha = self.scripts.text(name)
        key = keys[0] if keys else b""
        reply = self.server.ask(key, "EVALSHA", sha, len(keys), *keys, *arguments)
        if isinstance(reply, RuntimeError) and str(reply).startswith("NOSCRIPT"):
            reply = self.server.ask(key, "EVAL", text, len(keys), *keys, *arguments)
        if name == "lease_grant" and isinstance(reply, list) and reply[0] == arguments[0]:
            self.scripts.granted(keys, arguments)
        return reply


class Listener:
    """What is published about a key."""

    def __init__(self, target, key):
        self.target, self.key, self.channel = target, key, b"__lock__:" + key
        self.client = target.server.listener()
        equal(self.client.ask("SUBSCRIBE", self.channel)[0], b"subscribe")

    def heard(self):
        """All up to a mark that is published behind them."""
        self.target.server.ask(self.key, "PUBLISH", self.channel, "--mark--")
        found = []
        while (message := self.client.reply()[2]) != b"--mark--":
            found.append(message)
        return found


class Play:
    """A case on a target."""

    def __init__(self, target, case, number):
        self.target, self.case, self.tag = target, case, f"{{{target.name}-{number}}}"
        self.names, self.listeners = {}, {}

    def expanded(self, value):
        """With the case's own keys and the present clock in it."""
        if isinstance(value, list):
            return [self.expanded(part) for part in value]
        if hasattr(value, "fields"):
            return type(value)(**{name: self.expanded(part) for name, part in value.fields.items()})
        if not isinstance(value, (str, bytes)):
            return value
        text = as_bytes(value)
        if b"@" not in text and b"{clock" not in text:
            return value
        bare = self.tag.strip("{}").encode()
        tag = bare if b" @" in text or b"{@" in text else self.tag.encode()  # a key with a tag of its own
        text = text.replace(b"@", tag)
        text = re.sub(rb"\{clock\+(\d+)\}",
                      lambda m: b"%d" % ((int(time.time()) + int(m[1])) * 1_000_000), text)
        text = re.sub(rb"^L\((.*),(.*)\)$", lambda m: lease_key(m[1], m[2]), text)
        return re.sub(rb"^T\((.*)\)$", lambda m: token_key(m[1]), text)

    def run(self):
        for command, wanted in self.case.steps:
            words = shlex.split(command) if isinstance(command, str) else list(command)
            again = words[0].startswith("~")
            words = [words[0].lstrip("~"), *(self.expanded(word) for word in words[1:])]
            wanted = self.expanded(wanted)
            if again:
                until(lambda w=words, x=wanted: matches(self.answer(w), x, self.names))
            elif not matches(got := self.answer(words), wanted, self.names):
                raise AssertionError(f"{command!r:.200}: got {got!r:.600}, wanted {wanted!r:.600}; "
                                     f"tokens {self.names}")

    def answer(self, words):
        if words[0] == "LISTEN":
            self.listeners[words[1]] = Listener(self.target, words[1])
            return None
        if words[0] == "HEARD":
            return self.listeners[words[1]].heard()
        if words[0] == "LISTED":
            return self.target.row(words[1])
        return self.target.ask(*words)

    def close(self):
        for listener in self.listeners.values():
            listener.client.close()


def crossed_keys_are_refused(target):
    """On a cluster a script's keys are in one slot; the server sees to it."""
    lease = ("holdfast:lease:{a}l", "a", "holdfast:token:{a}a", "b", "holdfast:token:{b}b")
    for keys in (("a", "b"), lease):
        reply = target.server.ask(b"a", "EVAL", "return 1", len(keys), *keys)
        equal(str(reply), "CROSSSLOT Keys in request don't hash to the same slot")
    for key in ("a}b", "{}a", ""):  # a token key cannot be in their slot
        equal(str(target.ask("LOCK", key, "alice", 1)),
              "CROSSSLOT Keys in request don't hash to the same slot")


def a_token_key_of_another_name_is_refused(target):
    for name in ("lock", "renew", "unlock", "fence", "locks_info", "locks_list", "break", "revoke"):
        arguments = {"lock": ("a", 1), "renew": ("a",), "unlock": ("a",), "fence": ("a", 1)}.get(name, ())
        text, _ = target.scripts.text(name)
        reply = target.server.ask(b"a", "EVAL", text, 2, "{a}k", "holdfast:token:{a}k", *arguments)
        equal(str(reply), "ERR a token key must be holdfast:token:{<hash tag of the key>}<key>")
        reply = target.server.ask(b"a", "EVAL", text, 1, "{a}k", *arguments)
        equal(str(reply)[:29], "ERR wrong number of arguments")


def a_failover_frees_no_lock_and_takes_back_no_token(target):
    """A master is killed while locks are held, and its replica goes on."""
    keys = [f"{{failover}}{i}".encode() for i in range(20)]
    before = [target.ask("LOCK", key, "alice", cases.TTL)[1] for key in keys]
    readers = target.ask("LOCK", "{failover}r", "alice", cases.TTL, "SHARED")[1]
    lease = target.ask("LEASE", "GRANT", "{failover}l", cases.TTL, "{failover}x", "v")[1]
    equal(target.server.ask(keys[0], "WAIT", 1, LIMIT_S * 1000), 1)  # without it the last may be lost
    target.server.kill_master_of(keys[0])
    equal([target.ask("LOCK", key, "bob", cases.TTL) for key in keys], [None] * len(keys))
    equal([target.ask("LOCK", key, "alice", cases.TTL)[1] for key in keys], before)
    equal([target.ask("UNLOCK", key, "alice") for key in keys], [1] * len(keys))
    after = [target.ask("LOCK", key, "bob", cases.TTL)[1] for key in keys]
    equal([new > old for new, old in zip(after, before)], [True] * len(keys))
    equal(target.ask("LOCK", "{failover}r", "bob", cases.TTL), None)
    equal(target.ask("LOCK", "{failover}r", "bob", cases.TTL, "SHARED")[1] > readers, True)
    equal(target.ask("LEASE", "CONFIRM", "{failover}l"), lease)


def what_a_failover_has_lost_comes_with_larger_tokens(target):
    """As if a replica had got nothing of a lock: it is free, and the clock keeps its tokens growing."""
    keys = (b"lost %d" % i for i in range(1000))
    key = next(key for key in keys if target.server.replica_of(target.server.master_of(key)))
    old = target.ask("LOCK", key, "alice", cases.TTL)[1]
    for gone in (key, token_key(key)):
        equal(target.server.ask(key, "DEL", gone), 1)
    target.server.kill_master_of(key)
    owner, new = target.ask("LOCK", key, "bob", cases.TTL)
    equal((owner, new > old), (b"bob", True))


def at_maxmemory_nothing_is_granted_but_holds_go_on_and_end(target):
    ask = target.server.ask
    equal([target.ask("LOCK", key, "alice", cases.TTL)[0] for key in ("full", "full lock")], [b"alice"] * 2)
    equal(target.ask("LOCK", "full r", "alice", cases.TTL, "SHARED")[0], b"alice")
    equal(target.ask("LEASE", "GRANT", "full l", cases.TTL, "full v", "v")[0], b"full l")
    equal(ask(b"", "SET", "full set", "tom"), "OK")
    equal(ask(b"", "CONFIG", "SET", "maxmemory", 1), "OK")
    try:
        for request in (("full new", "bob", 1), ("full r", "bob", 1, "SHARED"), ("full lock", "alice", 1)):
            has(target.ask("LOCK", *request), "OOM command not allowed when used memory > 'maxmemory'.")
        equal([ask(b"", "EXISTS", "full new"), ask(b"", "HLEN", "full r")], [0, 2])
        equal(1 < ask(b"", "PTTL", "full lock") <= cases.TTL, True)
        equal([target.ask("RENEW", key, "alice", 1000 * cases.TTL) for key in ("full", "full r")], [1, 1])
        equal([ask(b"", "PTTL", key) > cases.TTL for key in ("full", "full r")], [True, True])
        equal([target.ask("UNLOCK", key, "alice") for key in ("full", "full r")], [1, 1])
        equal(target.ask("UNLOCK", "full set", "tom"), 1)
        equal(target.ask("LOCKS", "BREAK", "full lock"), 1)
        equal(target.ask("LEASE", "CANCEL", "full l"), "OK")
    finally:
        equal(ask(b"", "CONFIG", "SET", "maxmemory", 0), "OK")


MORE = {cases.LUA: [a_token_key_of_another_name_is_refused],
        cases.REDIS: [a_token_key_of_another_name_is_refused,
                      at_maxmemory_nothing_is_granted_but_holds_go_on_and_end],
        cases.CLUSTER: [a_token_key_of_another_name_is_refused, crossed_keys_are_refused,
                        a_failover_frees_no_lock_and_takes_back_no_token,
                        what_a_failover_has_lost_comes_with_larger_tokens]}


def attempt(target, name, action):
    """Whether it went well; what did not is told."""
    try:
        action()
    except Exception as failure:  # one broken promise must not keep the others from being looked at
        print(f"FAILED {target.name}: {name}: {failure!r}\n{traceback.format_exc(limit=-2)}")
        return False
    return True


def run_target(target, part):
    chosen = [case for case in cases.CASES if target.name in case.targets and part in case.name]
    results = []
    for number, case in enumerate(chosen):
        play = Play(target, case, number)
        results.append(attempt(target, case.name, play.run))
        play.close()
    for more in MORE.get(target.name, []):
        if part in more.__name__:
            results.append(attempt(target, more.__name__, lambda m=more: m(target)))
    passed = sum(results)
    print(f"{target.name}: {passed} passed, {len(results) - passed} failed", flush=True)
    return passed, len(results) - passed


TARGETS = {
    cases.NATIVE: (holdfast, lambda: None),
    cases.EVAL: (holdfast, Scripts),
    cases.LUA: (holdfast, lambda: Scripts(unaware_of_holdfast=True)),
    cases.REDIS: (redis, Scripts),
    cases.CLUSTER: (Cluster, Scripts),
}


def main():
    options = argparse.ArgumentParser()
    options.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    options.add_argument("-k", dest="part", default="", help="the cases with this in their name")
    chosen = options.parse_args()
    passed = failed = 0
    for name in chosen.targets or TARGETS:
        start, scripts = TARGETS[name]
        server = start()
        sums = run_target(Target(name, server, scripts()), chosen.part)
        failed += 0 if attempt(Target(name, None), "it stops in order", server.close) else 1
        passed, failed = passed + sums[0], failed + sums[1]
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
