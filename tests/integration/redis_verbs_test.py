#!/usr/bin/env python3
"""The verbs of `holdfast`, with `run` and `elect`, on stock Redis: their output and their exit statuses.
The last line is "N passed, N failed". The command is in the folder of HOLDFAST_SERVER; REDIS_SERVER is
Redis."""
import contextlib
import json
import os
import pathlib
import re
import signal
import sys
import tempfile

sys.dont_write_bytecode = True  # only build/ has generated files
from harness import LIMIT_S, REDIS, Server, equal, free_port, has, run_tests, test, until
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))
from servers import Cluster  # noqa: E402
from job import call, call_json, ended, start

OWNED = ("unlock", "renew")


@contextlib.contextmanager
def redis():
    """A Redis server, which the command uses by default."""
    with tempfile.TemporaryDirectory(prefix="holdfast-test-") as folder:
        port = free_port()
        with Server(folder, "--port", str(port), "--bind", "127.0.0.1", command=REDIS) as server:
            server.name = f"127.0.0.1:{port}"
            os.environ["HOLDFAST_SERVERS"] = f"redis://{server.name}"
            yield server


@test
def lock_renew_info_and_unlock_work_on_one_lock(server):
    owner, token = re.fullmatch(r"([0-9a-f]{32}) (\d+)\n", call(0, "lock", "--ttl", "1m", "k")[0]).groups()
    equal(server.ask("GET", "k"), owner.encode())
    has(call(75, "lock", "-n", "k")[1], "k: busy")
    has(call(0, "renew", "--ttl", "1h", "k", owner)[0], "renewed on 1 of 1 server")
    equal(server.ask("PTTL", "k") > 3_500_000, True)
    [row] = call_json("info", "k")
    equal((row["server"], row["mode"], row["waiters"]), (server.name, "exclusive", []))
    equal([(holder["owner"], holder["token"]) for holder in row["holders"]], [(owner, int(token))])
    has(call(0, "unlock", "k", owner)[0], "released on 1 of 1 server")
    equal(server.ask("EXISTS", "k"), 0)
    for verb in OWNED:
        has(call(1, verb, "k", owner)[1], "the lock is free")
    has(call(0, "info", "k")[0], "free")


@test
def lock_waits_for_the_release(server):
    owner = call(0, "lock", "k")[0].split()[0]
    waiting = start("lock", "-w", "1h", "k")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    call(75, "lock", "-w", "50ms", "k")
    call(0, "unlock", "k", owner)
    has(ended(waiting, 0)[0], server.ask("GET", "k").decode())


@test
def a_signal_ends_the_wait_and_its_subscription(server):
    call(0, "lock", "--ttl", "1h", "k")
    waiting = start("lock", "k")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    waiting.send_signal(signal.SIGINT)
    equal(ended(waiting, 130)[0], "")
    until(lambda: not server.ask("PUBSUB", "CHANNELS", "__lock__:k"))


@test
def lock_acquires_shared_locks_and_semaphores(_):
    for options in (["--shared"], ["--limit", "2"]):
        name = options[0][2:]
        equal(len({call_json("lock", "-n", *options, name)["owner"] for _ in range(2)}), 2)
        call(75, "lock", "-n", name)
        has(call(0, "break", name)[0], "2 holds broken")
        call(0, "lock", "-n", name)


@test
def watch_shows_events_as_they_come(server):
    watching = start("watch", "--json", "k")
    equal(json.loads(watching.stdout.readline())["event"], "watching")
    owner, token = call(0, "lock", "k")[0].split()
    row = json.loads(watching.stdout.readline())
    equal((row["server"], row["event"], row["owner"], row["token"]),
          (server.name, "granted", owner, int(token)))
    call(0, "break", "k")
    equal(json.loads(watching.stdout.readline())["event"], "broken")
    watching.send_signal(signal.SIGINT)
    ended(watching, -signal.SIGINT)


@test
def watch_shows_all_locks_that_match_a_pattern(server):
    watching = start("watch", "--match", "job:*")
    equal(watching.stdout.readline().split()[1:], [server.name, "watching"])
    for key in ("other", "job:1"):
        call(0, "lock", key)
    equal(watching.stdout.readline().split()[1:4], [server.name, "job:1", "granted"])
    watching.send_signal(signal.SIGINT)
    ended(watching, -signal.SIGINT)


@test
def ping_shows_the_version_of_redis_and_its_clock_offset(server):
    has(call(0, "ping")[0], server.name, "Redis 7.", "enough for a lock")
    [row] = call_json("ping")["servers"]
    equal((row["reachable"], row["holdfast_version"], row["token_lead_ms"]), (True, None, None))
    equal(abs(row["clock_offset_ms"]) < 1000, True)
    has(call(69, "ping", "--servers", f"holdfast://{server.name}")[0], "not a Holdfast server")


def fill(server, number):
    """Creates `number` locks, and as many hashes and lists, which are not locks."""
    for i in range(number):
        equal(server.ask("SET", f"job:{i:04}", "tom", "NX", "PX", 60_000_000), "OK")
        server.ask("HSET", f"hash:{i:04}", "f", "v")
        server.ask("RPUSH", f"list:{i:04}", "v")


@test
def list_pages_through_all_locks_in_order(server):
    fill(server, 1500)
    owner, token = call(0, "lock", "--ttl", "1h", "mine")[0].split()
    for _ in range(3):
        last = call_json("lock", "-n", "--limit", "5", "counted")
    call(0, "lock", "--ttl", "20ms", "short")
    until(lambda: not server.ask("EXISTS", "short"))
    rows = [line.split() for line in call(0, "list")[0].splitlines()]
    equal(rows[0], ["KEY", "MODE", "HOLDERS", "WAITERS", "TOKEN", "TTL", "OWNER", "NOTE"])
    equal([row[0] for row in rows[1:]], ["counted", *(f"job:{i:04}" for i in range(1500)), "mine"])
    equal(rows[1][1:5], ["limit", "3", "0", str(last["token"])])
    equal(rows[-1][1:5] + rows[-1][6:7], ["exclusive", "1", "0", token, owner])
    found = call_json("list", "--match", "job:000?")
    equal([row["key"] for row in found], [f"job:000{i}" for i in range(10)])
    equal((found[0]["server"], found[0]["mode"], found[0]["token"]), (server.name, "exclusive", 0))
    equal(0 < found[0]["ttl"] <= 60_000_000, True)
    equal(call_json("list", "--match", "none"), [])
    equal(server.ask("KEYS", "holdfast:token:{job*"), [])  # listing a string writes no token
    call(0, "unlock", "mine", owner)
    equal(call_json("list", "--match", "mine"), [])


@test
def list_sends_a_script_once_however_many_keys_there_are(server):
    fill(server, 500)
    equal(len(call_json("list")), 500)
    calls = server.ask("INFO", "commandstats").decode()
    equal(re.search(r"cmdstat_eval:calls=(\d+)", calls)[1], "1")
    equal(re.search(r"cmdstat_scan:calls=(\d+)", calls)[1], "2")
    equal("cmdstat_keys" in calls, False)


@test
def revoke_counts_the_holders_and_a_leader_steps_down(server):
    has(call(0, "revoke", "k")[0], "0 holds asked to end")
    script = "echo leads $0; exec sleep 600"
    first, second = (start("elect", "k", "--", "sh", "-c", script, name) for name in ("one", "two"))
    until(lambda: server.ask("EXISTS", "k"))
    until(lambda: server.ask("PUBSUB", "NUMSUB", "__lock__:k")[1] == 2)
    owner = server.ask("GET", "k")
    has(call(0, "revoke", "k")[0], "1 hold asked to end")
    until(lambda: server.ask("GET", "k") not in (None, owner))
    equal({leader.stdout.readline() for leader in (first, second)}, {"leads one\n", "leads two\n"})
    for leader in (first, second):
        leader.send_signal(signal.SIGTERM)
    texts = [leader.communicate(timeout=LIMIT_S) for leader in (first, second)]
    equal(sum("asked to step down" in err for _, err in texts), 1)


@test
def the_verbs_reach_all_nodes_of_a_cluster(_):
    cluster = Cluster()
    seeds = ",".join(f"127.0.0.1:{port}" for port in list(cluster.nodes)[:2])
    os.environ["HOLDFAST_SERVERS"] = f"redis-cluster://{seeds}"
    try:
        names = [f"job:{i:02}" for i in range(40)]
        for name in names:
            equal(cluster.ask(name.encode(), "SET", name, "tom", "PX", 600_000), "OK")
        cluster.ask(b"a}b", "SET", "a}b", "v")  # no lock: its token key would be on another node
        equal([row["key"] for row in call_json("list")], names)
        equal(all(row["server"] == seeds for row in call_json("list")), True)
        equal([row["key"] for row in call_json("list", "--match", "job:3?")], names[30:])
        running = start("elect", "lead", "--", "sh", "-c", "echo leads; exec sleep 600")
        equal(running.stdout.readline(), "leads\n")
        # The new leader subscribes soon after the grant.
        until(lambda: any(node.client.ask("PUBSUB", "CHANNELS", "__lock__:lead")
                          for node in cluster.nodes.values()))
        has(call(0, "revoke", "lead")[0], "1 hold asked to end")
        equal(running.stdout.readline(), "leads\n")  # there is no other candidate
        running.send_signal(signal.SIGTERM)
        has(running.communicate(timeout=LIMIT_S)[1], "asked to step down")
        owner = call(0, "lock", "k")[0].split()[0]
        has(call(0, "info", "k")[0], owner)
        has(call(0, "renew", "k", owner)[0], "renewed")
        has(call(0, "break", "k")[0], "1 hold broken")
        call(1, "unlock", "k", owner)
        call(0, "run", "k", "--", "true")
        has(call(0, "ping")[0], "Redis 7.")
    finally:
        cluster.close()


@test
def list_shows_the_error_of_a_server(server):
    call(0, "lock", "k")
    server.ask("CONFIG", "SET", "requirepass", "secret")
    has(call(69, "list")[1], server.name, "NOAUTH")
    [row] = call_json("list", "--servers", f"redis://:secret@{server.name}")
    equal(row["key"], "k")


@test
def an_invalid_address_is_wrong_usage(_):
    for place, why in (("rediss://h?cacert=/none", "cannot read"), ("redis://h/1", "database 0"),
                       ("redis://a,b", "-cluster:")):
        has(call(64, "info", "--servers", place, "k")[1], why)
        has(call(64, "run", "--servers", place, "k", "--", "true")[1], why)


@test
def run_holds_the_lock_while_its_command_runs(server):
    running = start("run", "--ttl", "300ms", "k", "--", "sh", "-c", "echo held; sleep 1; echo over")
    equal(running.stdout.readline(), "held\n")
    equal(len(server.ask("GET", "k")), 32)
    call(75, "run", "-n", "k", "--", "true")
    call(0, "run", "k", "--", "true")
    equal(ended(running, 0)[0], "over\n")
    equal(server.ask("EXISTS", "k"), 0)


@test
def run_ends_its_command_when_the_lock_is_lost(server):
    running = start("run", "k", "--", "sh", "-c", "echo held; exec sleep 600")
    equal(running.stdout.readline(), "held\n")
    until(lambda: server.ask("PUBSUB", "CHANNELS", "__lock__:k"))
    call(0, "break", "k")
    has(running.communicate(timeout=LIMIT_S)[1], "k")
    equal(running.returncode != 0, True)


@test
def elect_hands_over_to_the_next_candidate(server):
    script = "echo leads $0; exec sleep 600"
    first = start("elect", "k", "--", "sh", "-c", script, "first")
    equal(first.stdout.readline(), "leads first\n")
    second = start("elect", "k", "--", "sh", "-c", script, "second")
    until(lambda: server.ask("PUBSUB", "NUMSUB", "__lock__:k")[1] == 2)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=LIMIT_S)
    equal(second.stdout.readline(), "leads second\n")
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=LIMIT_S)
    until(lambda: server.ask("EXISTS", "k") == 0)


if __name__ == "__main__":
    run_tests(redis)
