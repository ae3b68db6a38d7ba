#!/usr/bin/python3
"""`holdfast proxy` in front of three servers: locks of a majority for clients that speak plain Redis. The
last line is "N passed, N failed". HOLDFAST_SERVER names the server; the command is in the same folder."""
import socket
import subprocess
import threading
import time

import redis

from harness import HOLDFAST, LIMIT_S, equal, has, run_tests, test, until
from job import COMMAND
from proxy_rig import Proxy, rig

# A request that does not wait is answered in 450 ms; the rest is for busy machines.
IN_TIME_S = 3

RELEASE = """if redis.call("get", KEYS[1]) == ARGV[1] then
  return redis.call("del", KEYS[1])
else
  return 0
end"""


@test
def a_set_with_nx_is_a_lock_on_all_servers(the):
    proxy = the.proxy()
    equal(proxy.ask("SET", "k", "v", "NX", "PX", 30000), "OK")
    until(lambda: all(owner and owner.startswith(b"v~") for owner in the.holders("k")))
    equal(proxy.ask("SET", "k", "w", "NX", "PX", 30000), None)
    equal(proxy.ask("SET", "k", "v", "NX", "PX", 30000), None)  # an equal value is held, too
    equal(proxy.ask("GET", "k"), b"v")
    equal(proxy.ask("EXISTS", "k"), 1)
    left = proxy.ask("PTTL", "k")
    equal(29000 < left <= 30000, True)
    equal(proxy.ask("DEL", "k"), 1)
    until(lambda: the.holders("k") == [None] * 3)
    equal(proxy.ask_all([("GET", "k"), ("EXISTS", "k"), ("DEL", "k"), ("PTTL", "k")]), [None, 0, 0, -2])


@test
def another_proxy_sees_renews_and_releases_the_hold(the):
    one, two = the.proxy(), the.proxy()
    equal(one.ask("SET", "k", "v", "NX", "PX", 30000), "OK")
    equal(two.ask("GET", "k"), b"v")
    equal(two.ask("SET", "k", "v", "NX", "PX", 30000), None)
    equal(two.ask("EVAL", RELEASE, 1, "k", "other"), 0)
    equal(two.ask("PEXPIRE", "k", 60000), 1)
    equal(one.ask("PTTL", "k") > 30000, True)
    equal(two.ask("EVAL", RELEASE, 1, "k", "v"), 1)
    equal(one.ask("GET", "k"), None)
    equal(one.ask("EVAL", RELEASE, 1, "k", "v"), 0)


@test
def lock_renew_and_unlock_have_the_owner_of_the_client(the):
    one, two = the.proxy(), the.proxy()
    owner, token = one.ask("LOCK", "k", "alice", 30000)
    equal(owner, b"alice")
    equal(two.ask("LOCK", "k", "bob", 30000), None)
    equal(two.ask("LOCK", "k", "alice", 30000), [b"alice", token])  # a repeat, by another proxy
    equal(one.ask("LOCK", "k", "alice", 30000), [b"alice", token])
    equal([one.ask("RENEW", "k", "alice", 40000), two.ask("RENEW", "k", "alice", 50000)], [1, 1])
    equal([one.ask("RENEW", "k", "bob", 40000), two.ask("UNLOCK", "k", "bob")], [-1, -1])
    equal(two.ask("UNLOCK", "k", "alice"), 1)
    equal([one.ask("UNLOCK", "k", "alice"), one.ask("RENEW", "k", "alice")], [0, 0])
    later = one.ask("LOCK", "k", "carol", 30000)[1]
    equal(later > token, True)


@test
def a_waiter_gets_the_lock_at_the_release(the):
    one, two = the.proxy(), the.proxy()
    one.ask("LOCK", "k", "alice", 30000)
    two.send(("LOCK", "k", "bob", 30000, "WAIT", 60000))
    until(lambda: all(s.ask("LOCKS", "INFO", "k")[-1] for s in the.servers))  # the waiters
    equal(one.ask("UNLOCK", "k", "alice"), 1)
    equal(two.reply()[0], b"bob")
    equal(one.ask("LOCK", "k", "carol", 30000, "WAIT", 50), None)


@test
def one_server_may_die_and_two_may_not(the):
    proxy = the.proxy()
    proxy.ask("SET", "k", "v", "NX", "PX", 30000)
    the.servers[0].kill()
    equal(proxy.ask("GET", "k"), b"v")
    equal(proxy.ask("SET", "other", "v", "NX", "PX", 30000), "OK")
    equal(proxy.ask("EVAL", RELEASE, 1, "k", "v"), 1)
    equal(proxy.ask("GET", "k"), None)
    the.servers[1].kill()
    for request in [("GET", "other"), ("SET", "x", "v", "NX", "PX", 1000), ("DEL", "other"),
                    ("LOCK", "y", "o", 1000), ("RENEW", "other", "v"), ("UNLOCK", "z", "v"),
                    ("EVAL", RELEASE, 1, "other", "v")]:
        has(proxy.ask(*request), "UNAVAILABLE 2 of 3 servers did not answer: 127.0.0.1:")
    equal(proxy.ask("PING"), "PONG")


@test
def a_killed_proxy_loses_and_frees_no_lock(the):
    one, two = the.proxy(), the.proxy()
    one.ask("SET", "k", "v", "NX", "PX", 60000)
    one.process.kill()
    one.process.wait(LIMIT_S)
    equal(two.ask("SET", "k", "w", "NX", "PX", 1000), None)
    equal(two.ask("EVAL", RELEASE, 1, "k", "v"), 1)


@test
def a_client_that_vanishes_leaves_no_wait(the):
    proxy = the.proxy()
    proxy.ask("LOCK", "k", "alice", 60000)
    other = proxy.another()
    other.send(("LOCK", "k", "bob", 60000, "WAIT", 0))
    until(lambda: all(s.ask("LOCKS", "INFO", "k")[-1] for s in the.servers))
    other.close()
    until(lambda: not any(s.ask("LOCKS", "INFO", "k")[-1] for s in the.servers))


@test
def a_session_ends_with_its_connection(the):
    proxy = the.proxy()
    other = proxy.another()
    equal(other.ask("LOCK", "k", "alice", 60000, "SESSION")[0], b"alice")
    equal(proxy.ask("LOCK", "k", "bob", 60000), None)
    other.close()
    until(lambda: the.holders("k") == [None] * 3)


@test
def commands_beyond_one_lock_get_an_error(the):
    proxy = the.proxy()
    for request in [("HSET", "h", "f", "v"), ("LPUSH", "l", "v"), ("KEYS", "*"), ("FLUSHALL",), ("SCAN", 0),
                    ("INCR", "n"), ("LOCKS", "LIST", 0), ("LEASE", "GRANT", "l", 1000, 1, "k")]:
        has(proxy.ask(*request), "ERR holdfast-proxy does not have")
    has(proxy.ask("DEL", "a", "b"), "one key")
    has(proxy.ask("EVAL", "return redis.call('hget', KEYS[1], 'f')", 1, "k"), "cannot call 'hget'")
    has(proxy.ask("EVAL", "return redis.call('get', 'other')", 1, "k"), "names another key")
    has(proxy.ask("LOCK", "k", "o", "soon"), "ttl must be an integer")
    has(proxy.ask("SET", "k", "v" * 481, "NX"), "at most 480 bytes")
    until(lambda: the.holders("k") == [None] * 3)


@test
def a_transaction_changes_one_key(the):
    proxy = the.proxy()
    *_, result = proxy.ask_all([("MULTI",), ("SET", "k", "v", "PX", 30000), ("PTTL", "k"), ("GET", "k"),
                                ("EXEC",)])
    equal(result, ["OK", 30000, b"v"])
    equal(proxy.ask("GET", "k"), b"v")
    *_, result = proxy.ask_all([("MULTI",), ("DEL", "k"), ("DEL", "other"), ("EXEC",)])
    has(result, "one key")
    equal(proxy.ask("GET", "k"), b"v")  # the connection is not in a transaction any more
    *_, result = proxy.ask_all([("MULTI",), ("DEL", "k"), ("EXEC",)])
    equal(result, [1])


@test
def a_value_is_replaced_if_it_is_still_there(the):
    proxy, other = the.proxy(), the.proxy()
    proxy.ask("SET", "k", "v", "NX", "PX", 30000)
    equal(other.ask("SET", "k", "w", "XX", "PX", 60000), "OK")
    equal(proxy.ask("GET", "k"), b"w")
    equal(proxy.ask("SET", "none", "w", "XX", "PX", 60000), None)
    equal(proxy.ask("SET", "k", "x", "GET", "PX", 60000), b"w")
    equal(other.ask("GET", "k"), b"x")


@test
def a_hold_without_a_ttl_has_no_ttl_for_the_client(the):
    proxy = the.proxy("--untimed-ttl", "100000")
    equal(proxy.ask("SET", "k", "v", "NX"), "OK")
    equal(proxy.ask("TTL", "k"), -1)
    equal(50000 < the.servers[0].ask("PTTL", "k") <= 100000, True)


@test
def a_silent_minority_changes_nothing(the):
    proxy = the.proxy()
    with the.stopped(0):
        equal(proxy.ask("SET", "k", "v", "NX", "PX", 60000), "OK")
        equal(proxy.ask("GET", "k"), b"v")
        equal(proxy.ask("EVAL", RELEASE, 1, "k", "v"), 1)
        equal(proxy.ask("LOCK", "k", "o", 1000, "WAIT", 100)[0], b"o")


@test
def a_silent_majority_is_an_answer_in_time(the):
    proxy = the.proxy("--server-timeout", "400")
    until(lambda: proxy.ask("SET", "k", "v", "NX", "PX", 60000) in ("OK", None))
    requests = [("GET", "k"), ("PTTL", "k"), ("SET", "x", "v", "NX", "PX", 1000), ("SET", "k", "w", "XX"),
                ("EVAL", RELEASE, 1, "k", "v"), ("LOCK", "y", "o", 1000), ("RENEW", "k", "v"),
                ("LOCK", "z", "o", 1000, "WAIT", 100), ("UNLOCK", "k", "v"), ("DEL", "k")]
    with the.stopped(0, 1):
        for request in requests:
            reply, took = proxy.timed(*request)
            has(reply, "UNAVAILABLE")
            equal((request, took < IN_TIME_S), (request, True))
        equal(proxy.ask("PING"), "PONG")
    until(lambda: proxy.ask("SET", "after", "v", "NX", "PX", 60000) == "OK")


@test
def a_server_that_accepts_and_never_answers_counts_as_down(the):
    deaf = [the.stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
    ports = [s.getsockname()[1] for s in deaf]
    one = Proxy([*the.ports[:2], ports[0]], "--server-timeout", "5000")
    the.stack.callback(one.stop)
    equal(one.ask("SET", "k", "v", "NX", "PX", 60000), "OK")
    equal(one.ask("GET", "k"), b"v")
    equal(one.ask("EVAL", RELEASE, 1, "k", "v"), 1)
    two = Proxy([the.ports[0], *ports])
    the.stack.callback(two.stop)
    for request in [("GET", "k"), ("SET", "k", "v", "NX", "PX", 1000), ("LOCK", "k", "o", 1000)]:
        reply, took = two.timed(*request)
        has(reply, "UNAVAILABLE")
        equal((request, took < 2 * IN_TIME_S), (request, True))  # the first one waits for the first round


@test
def servers_that_are_one_or_are_a_proxy_are_refused(the):
    proxy = the.proxy()
    for ports, why in [([the.ports[0], f"localhost:{the.ports[0]}", the.ports[1]], "are one server"),
                       ([the.ports[0], the.ports[1], proxy.port], "is a proxy")]:
        wrong = Proxy(ports)
        the.stack.callback(wrong.stop)
        for request in [("SET", "k", "v", "NX", "PX", 1000), ("LOCK", "k", "o", 1000), ("GET", "k")]:
            has(wrong.ask(*request), "ERR holdfast-proxy: 127.0.0.1:", why)
        equal(wrong.ask("PING"), "PONG")
    until(lambda: the.holders("k") == [None] * 3)


@test
def only_the_first_database_is_served(the):
    proxy = the.proxy()
    equal(proxy.ask("SELECT", 0), "OK")
    has(proxy.ask("SELECT", 1), "ERR holdfast-proxy serves database 0 only")
    equal(proxy.ask("SET", "k", "v", "NX", "PX", 1000), "OK")
    *_, result = proxy.ask_all([("MULTI",), ("SELECT", 1), ("GET", "k"), ("EXEC",)])
    has(result[0], "cannot call 'select'")
    *_, result = proxy.ask_all([("MULTI",), ("SELECT", 1), ("EXEC",)])
    for request in [("GET", "k"), ("LOCK", "l", "o", 1000), ("UNLOCK", "l", "o"), ("KEYS", "*")]:
        has(proxy.ask(*request), "serves database 0 only")
    *_, result, after = proxy.ask_all([("MULTI",), ("GET", "k"), ("EXEC",), ("PING",)])
    has(result, "serves database 0 only")
    equal(after, "PONG")  # the transaction is over


@test
def the_reply_mode_of_the_client_holds(the):
    proxy = the.proxy()
    proxy.send(("CLIENT", "REPLY", "SKIP"), ("SET", "k", "v", "NX", "PX", 60000), ("PING",))
    equal(proxy.reply(), "PONG")
    proxy.send(("CLIENT", "REPLY", "SKIP"), ("LOCK", "l", "o", 60000), ("GET", "k"))
    equal(proxy.reply(), b"v")
    proxy.send(("CLIENT", "REPLY", "OFF"), ("EVAL", RELEASE, 1, "k", "v"), ("UNLOCK", "l", "o"),
               ("CLIENT", "REPLY", "ON"), ("EXISTS", "k"), ("EXISTS", "l"))
    equal([proxy.reply() for _ in range(3)], ["OK", 0, 0])


@test
def a_pause_stops_requests_before_they_begin(the):
    proxy, other = the.proxy(), None
    other = proxy.another()
    equal(proxy.ask("CLIENT", "PAUSE", 300), "OK")
    begun = time.monotonic()
    equal(other.ask_all([("SET", "k", "v", "NX", "PX", 60000), ("EVAL", RELEASE, 1, "k", "v"),
                         ("GET", "k")]), ["OK", 1, None])
    equal(time.monotonic() - begun > 0.25, True)
    other.close()


@test
def clients_of_resp3_get_its_nulls(the):
    proxy = the.proxy()
    proxy.ask("LOCK", "k", "alice", 60000)
    other = proxy.another()
    other.send(("HELLO", 3), ("GET", "none"), ("LOCK", "k", "bob", 1000), ("SET", "k", "v", "NX"),
               ("PING",))
    received = b""
    while not received.endswith(b"+PONG\r\n"):
        received += other.socket.recv(4096)
    has(received, b"_\r\n_\r\n_\r\n+PONG\r\n")
    other.close()


@test
def requests_in_a_pipeline_are_answered_in_order(the):
    proxy = the.proxy()
    wanted = []
    requests = []
    for i in range(50):
        requests += [("SET", f"k{i}", i, "NX", "PX", 60000), ("GET", f"k{i}"), ("PING",),
                     ("EVAL", RELEASE, 1, f"k{i}", i), ("GET", f"k{i}")]
        wanted += ["OK", str(i).encode(), "PONG", 1, None]
    equal(proxy.ask_all(requests), wanted)


@test
def the_words_of_lock(the):
    proxy, two = the.proxy("--untimed-ttl", "100000"), the.proxy()
    owner, _ = proxy.ask("LOCK", "k", "*", 50000, "NOTE", "why")
    equal((len(owner), two.ask("GET", "k")), (32, owner))
    equal(proxy.ask("UNLOCK", "k", owner), 1)
    has(proxy.ask("LOCK", "k", "o", 60000, "TOKEN", 5), "does not have LOCK ... TICKET and TOKEN")
    proxy.send(("HELLO", 3))
    while not proxy.replies.readline().startswith(b"*0"):  # the list of modules, the last part
        pass
    has(proxy.ask("LOCK", "k", "o.1", 60000, "TICKET", 5), "does not have LOCK ... TICKET and TOKEN")
    has(proxy.ask("LOCK", "k", "o", 60000, "WAIT", 1, "ASYNC"), "does not have ASYNC")
    for request in [("LOCK", "k", "o", 50001), ("SET", "k", "v", "PX", 50001),
                    ("SET", "k", "v", "EX", 10**12), ("RENEW", "k", "o", 50001)]:
        has(proxy.ask(*request), "takes a TTL of at most 50000 ms")
    until(lambda: the.holders("k") == [None] * 3)
    equal(proxy.ask("LOCK", "k", "o", 50000)[0], b"o")
    has(proxy.ask("PEXPIRE", "k", 50001), "takes a TTL of at most 50000 ms")


@test
def readers_share_a_lock(the):
    one, two = the.proxy(), the.proxy()
    equal([one.ask("LOCK", "k", "r1", 60000, "SHARED")[0], two.ask("LOCK", "k", "r2", 60000, "SHARED")[0]],
          [b"r1", b"r2"])
    equal(one.ask("LOCK", "k", "w", 60000), None)
    equal([two.ask("RENEW", "k", "r1"), two.ask("UNLOCK", "k", "r1"), one.ask("UNLOCK", "k", "r2")],
          [1] * 3)
    equal(one.ask("LOCK", "k", "w", 60000)[0], b"w")


@test
def a_lock_delay_is_not_a_free_key(the):
    proxy = the.proxy()
    proxy.ask("LOCK", "k", "a", 100, "DELAY", 60000)
    until(lambda: the.holders("k") == [None] * 3)
    before = the.servers[0].info("total_commands_processed", "stats")
    equal(proxy.ask("LOCK", "k", "b", 1000), None)
    equal(proxy.ask("SET", "k", "v", "NX", "PX", 1000), None)
    equal(proxy.ask("SETNX", "k", "v"), 0)
    has(proxy.ask("SET", "k", "v"), "UNAVAILABLE the lock-delay of the key is not over")
    equal(proxy.ask("GET", "k"), None)
    after = the.servers[0].info("total_commands_processed", "stats")
    equal((int(after) - int(before) < 100, after), (True, after))  # no loop


@test
def a_script_that_reads_the_ttl_reads_that_of_the_servers(the):
    one, two = the.proxy(), the.proxy()
    one.ask("SET", "k", "v", "NX", "PX", 30000)
    equal(two.ask("PEXPIRE", "k", 90000), 1)
    equal(one.ask("EVAL", "local t = redis.call('pttl', KEYS[1]) redis.call('pexpire', KEYS[1], t + 10000) "
                          "return t > 80000", 1, "k"), 1)
    equal(95000 < one.ask("PTTL", "k") <= 100000, True)
    equal(95000 < two.ask("PTTL", "k") <= 101000, True)  # it does not know what the client has asked for
    equal(one.ask("PEXPIRE", "k", 5000), 1)  # shorter than before
    equal(two.ask("PTTL", "k") <= 6000, True)
    equal(one.ask("SET", "k", "v2", "KEEPTTL"), "OK")
    equal(0 < two.ask("PTTL", "k") <= 6000, True)


@test
def a_hold_that_another_proxy_has_released_does_not_come_back(the):
    one, two = the.proxy(), the.proxy()
    one.ask("LOCK", "k", "alice", 60000)
    equal(two.ask("UNLOCK", "k", "alice"), 1)
    equal([one.ask("RENEW", "k", "alice"), one.ask("RENEW", "k", "alice"), one.ask("UNLOCK", "k", "alice")],
          [0, 0, 0])
    until(lambda: the.holders("k") == [None] * 3)
    for i in range(3):
        the.servers[i].kill()
        the.start(i)
    until(lambda: one.ask("LOCK", "other", "o", 60000))
    until(lambda: the.holders("k") == [None] * 3)
    equal(one.ask("LOCK", "k", "alice", 60000)[0], b"alice")


@test
def a_renewal_heals_and_a_release_is_delivered_later(the):
    proxy = the.proxy()
    the.servers[0].kill()
    grant = proxy.ask("LOCK", "k", "alice", 60000)
    the.start(0)
    until(lambda: proxy.ask("RENEW", "k", "alice", 60000) == 1 and all(the.holders("k")))
    # The token of the hold is that of the majority, although the healed server may have a larger one.
    equal([proxy.ask("LOCK", "k", "alice", 60000), the.proxy().ask("LOCK", "k", "alice", 60000)],
          [grant] * 2)
    the.servers[0].kill()
    equal(proxy.ask("UNLOCK", "k", "alice"), 1)
    the.start(0)
    until(lambda: the.holders("k") == [None] * 3)


@test
def an_expired_hold_of_this_proxy_that_another_one_renewed_stays(the):
    one, two = the.proxy(), the.proxy()
    one.ask("SET", "k", "v", "NX", "PX", 500)
    equal(two.ask("PEXPIRE", "k", 60000), 1)
    time.sleep(1)  # what `one` believes of the hold is over
    equal(two.ask("GET", "k"), b"v")
    equal(all(the.holders("k")), True)


@test
def a_script_has_its_bounds(the):
    proxy = the.proxy()
    proxy.ask("SET", "k", "v", "NX", "PX", 60000)
    for request in [("EVAL", "redis.call('del', KEYS[1]) while true do end", 1, "k"),
                    ("EVAL", "while true do end", 0)]:
        has(proxy.ask(*request), "ran longer than busy-reply-threshold")
    equal(proxy.ask("GET", "k"), b"v")
    has(proxy.ask("EVAL", "return redis.call('get', 'k')", 0), "not in KEYS")
    has(proxy.ask("EVAL", "return redis.call('keys', '*')", 0), "cannot call 'keys'")
    has(proxy.ask("EVAL", "return redis.call('client', 'kill', 'id', '1')", 1, "k"), "ERR")
    *_, result = proxy.ask_all([("MULTI",), ("CLIENT", "KILL", "SKIPME", "no"), ("GET", "k"), ("EXEC",)])
    has(result[0], "cannot call 'client|kill'")
    equal(result[1], b"v")


@test
def a_transaction_without_a_majority_is_over(the):
    proxy = the.proxy("--server-timeout", "400")
    with the.stopped(0, 1):
        *_, result = proxy.ask_all([("MULTI",), ("SET", "k", "v"), ("EXEC",)])
        has(result, "UNAVAILABLE")
        equal(proxy.ask("PING"), "PONG")  # not QUEUED
    *_, result = proxy.ask_all([("MULTI",), ("NOSUCH",), ("GET", "k"), ("EXEC",)])
    has(result, "EXECABORT")
    has(proxy.ask("EXEC"), "EXEC without MULTI")
    has(proxy.ask("WATCH", "k"), "does not have 'watch'")


@test
def clients_that_vanish_at_any_moment_leave_a_proxy_that_works(the):
    proxy = the.proxy()
    proxy.ask("LOCK", "held", "o", 60000)
    requests = [("SET", "k", "v", "NX", "PX", 300), ("LOCK", "k", "o", 300, "SESSION"), ("GET", "held"),
                ("LOCK", "held", "x", 300, "WAIT", 1000), ("EVAL", RELEASE, 1, "held", "x"),
                ("LOCK", "held", "o", 60000), ("RENEW", "held", "o"), ("UNLOCK", "k", "o"),
                ("SET", "held", "o", "XX", "PX", 60000)]
    for i in range(20 * len(requests)):
        client = proxy.another()
        client.send(requests[i % len(requests)])
        time.sleep(i % 7 / 3000)
        client.close()
    until(lambda: the.holders("k") == [None] * 3)
    equal(proxy.ask("GET", "held"), b"o")
    until(lambda: not any(s.ask("LOCKS", "INFO", "held")[-1] for s in the.servers))
    one, two = proxy.another(), proxy.another()
    number = one.ask("CLIENT", "ID")
    one.send(("LOCK", "held", "y", 1000, "WAIT", 0))
    until(lambda: any(s.ask("LOCKS", "INFO", "held")[-1] for s in the.servers))
    equal(two.ask("CLIENT", "KILL", "ID", number), 1)
    until(lambda: not any(s.ask("LOCKS", "INFO", "held")[-1] for s in the.servers))
    one.close()
    two.close()


@test
def the_users_of_the_proxy_have_their_rights_there(the):
    proxy = the.proxy()
    equal(proxy.ask("ACL", "SETUSER", "app", "on", ">pw", "+get", "+set", "~app:*"), "OK")
    other = proxy.another()
    equal(other.ask("AUTH", "app", "pw"), "OK")
    equal(other.ask("SET", "app:k", "v", "NX", "PX", 60000), "OK")
    has(other.ask("SET", "k", "v", "NX"), "NOPERM")
    has(other.ask("DEL", "app:k"), "NOPERM")
    other.close()


@test
def holds_of_a_program_without_a_proxy_are_seen(the):
    proxy = the.proxy()
    for server in the.servers:
        server.ask("SET", "k", "native", "PX", 60000)
    equal(proxy.ask("GET", "k"), b"native")
    equal(proxy.ask("SET", "k", "v", "NX", "PX", 1000), None)
    equal(proxy.ask("EVAL", RELEASE, 1, "k", "native"), 1)
    until(lambda: the.holders("k") == [None] * 3)


@test
def the_log_says_which_servers_answer(the):
    proxy = the.proxy()
    the.servers[0].kill()
    until(lambda: "does not answer" in proxy.process.stdout.readline())


@test
def redis_py_locks_exclude_one_another(the):
    clients = [redis.Redis(port=the.proxy().port) for _ in range(2)]
    counter = {"inside": 0, "most": 0, "times": 0}

    def work(client):
        for _ in range(20):
            with client.lock("shared", timeout=30, sleep=0.01):
                counter["inside"] += 1
                counter["most"] = max(counter["most"], counter["inside"])
                counter["times"] += 1
                counter["inside"] -= 1

    threads = [threading.Thread(target=work, args=(client,)) for client in clients for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    equal((counter["most"], counter["times"]), (1, 80))
    lock = clients[0].lock("extended", timeout=10)
    equal(lock.acquire(blocking=False), True)
    equal(lock.extend(10), True)
    equal(15 < clients[1].ttl("extended") <= 20, True)
    equal(lock.reacquire(), True)
    lock.release()
    equal(clients[1].exists("extended"), 0)


@test
def the_program_refuses_what_it_cannot_serve(_):
    for options, why in [([], "--servers is missing"), (["--servers", "redis://a"], "Holdfast servers"),
                         (["--servers", "a,b", "--dir", "x"], "dir"), (["--servers", "a:0"], "--servers"),
                         (["--servers", "me:secret@a,b,c"], "HOLDFAST_PASSWORD")]:
        done = subprocess.run([COMMAND, "proxy", "--port", "auto", *options], check=False, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
        equal(done.returncode, 1)
        has(done.stdout, why)
    shown = subprocess.run([COMMAND, "proxy", "--help"], check=True, capture_output=True, text=True)
    has(shown.stdout, "Usage: holdfast proxy", "--servers", "--untimed-ttl", "--tls-port")
    equal("--appendonly" in shown.stdout, False)


if __name__ == "__main__":
    assert HOLDFAST
    run_tests(rig)
