#!/usr/bin/env python3
"""The millisecond in which a hold ends, on stock Redis by the scripts. Redis keeps a key for this
millisecond, and until the end of a script, but a hold is over at its deadline, as in Holdfast. Lua before
the script waits for the deadline. The last line is "N passed, N failed". REDIS_SERVER names the server."""
import sys

sys.dont_write_bytecode = True  # build/ is the only place for what is made
import servers  # noqa: F401  it sets the path, so it is first
from harness import data_folder, equal, run_tests, test
from scripts import lease_key
from servers import Scripted

TTL_MS = 100
LONG_MS = 600_000
ATTEMPTS = 50
MODES = ((), ("SHARED",), ("LIMIT", 3))
WAIT = """
if redis.call('EXISTS', '{key}') == 0 then return redis.error_reply('LATE') end
local steps = 0
repeat
  local now = redis.call('TIME')
  steps = steps + 1
  if steps > 10000000 then return redis.error_reply('the time stands still in scripts') end
until now[1] * 1000 + math.floor(now[2] / 1000) >= {deadline}
if redis.call('PTTL', '{key}') ~= 0 then return redis.error_reply('the key has time left') end
"""


def locked(server, key, *mode):
    """Locks the key anew for TTL_MS, and returns the token."""
    server.ask("DEL", key)
    owner, token = server.ask("LOCK", key, "alice", TTL_MS, *mode)
    equal(owner, b"alice")
    return token


def at_the_end(server, hold, key, *command, before=""):
    """Runs the command when the key, which hold() locked, is in its last millisecond. Returns what hold()
    returned, and the reply."""
    for _ in range(ATTEMPTS):
        held = hold()
        wait = WAIT.format(key=key, deadline=server.ask("PEXPIRETIME", key))
        reply = server.ask(*command, before=wait + before)
        if str(reply) != "LATE":
            return held, reply
    raise AssertionError(f"the machine is too slow for a hold of {TTL_MS} ms")


@test
def at_its_deadline_a_hold_is_over_for_each_command(server):
    for mode in MODES[:2]:
        for wanted, command in (
                (None, ["LOCKS", "INFO", "k"]), (None, ["LOCKS", "LIST", "k"]),
                (0, ["LOCKS", "REVOKE", "k"]), (0, ["LOCKS", "BREAK", "k"]),
                (0, ["RENEW", "k", "alice", LONG_MS]), (0, ["UNLOCK", "k", "alice"]),
                (0, ["FENCE", "k", "alice", 1])):
            reply = at_the_end(server, lambda: locked(server, "k", *mode), "k", *command)[1]
            equal((mode, command, reply), (mode, command, wanted))


@test
def at_its_deadline_a_lock_is_free_for_the_next_owner_and_for_the_same_one(server):
    for old in MODES:
        for new in MODES:
            for owner in ("alice", "bob"):
                token, reply = at_the_end(server, lambda: locked(server, "k", *old), "k",
                                          "LOCK", "k", owner, LONG_MS, *new)
                equal((reply[0], reply[1] > token), (owner.encode(), True))
                equal(server.ask("UNLOCK", "k", owner), 1)


@test
def at_its_deadline_a_lock_is_free_for_a_lease(server):
    for n, mode in enumerate(MODES):
        token, reply = at_the_end(server, lambda: locked(server, "k", *mode), "k",
                                  "LEASE", "GRANT", f"l{n}", LONG_MS, "k", "bob")
        equal((reply[0], reply[1] > token), (f"l{n}".encode(), True))


@test
def at_its_deadline_a_lease_has_expired(server):
    def granted():
        server.ask("DEL", "k", lease_key(b"k", b"l"))
        return server.ask("LEASE", "GRANT", "l", TTL_MS, "k", "bob")[1]

    for wanted, words in (("EXPIRED the lease has expired", ["CONFIRM", "l"]),
                          ("EXPIRED the lease has expired", ["RENEW", "l", LONG_MS]),
                          ("OK", ["CANCEL", "l"])):
        server.scripts.lease_keys[b"l"] = [b"k"]
        reply = at_the_end(server, granted, "k", "LEASE", *words)[1]
        equal((words, str(reply)), (words, wanted))


@test
def a_string_of_another_program_in_the_last_millisecond_is_a_new_hold(server):
    for _ in range(20):  # a slow run of the script meets a later millisecond
        token, reply = at_the_end(server, lambda: locked(server, "k"), "k", "LOCK", "k", "alice", LONG_MS,
                                  before=f"redis.call('SET', 'k', 'alice', 'PX', {LONG_MS})\n")
        equal((reply[0], reply[1] > token), (b"alice", True))


class Redis:
    """Makes the server of a test."""

    def __enter__(self):
        self.folder = data_folder()
        self.server = Scripted(self.folder.__enter__())
        return self.server

    def __exit__(self, *failure):
        self.server.__exit__(*failure)
        self.folder.__exit__(*failure)


if __name__ == "__main__":
    run_tests(Redis)
