"""Debian's redis-py as a client: the calls of an application, and their results."""
import datetime
import hashlib
import time

import redis

from redis_py_events import keyspace_events, monitor, pause, pubsub, tracking
from redis_py_scripts import pipelines, scripts, transactions
from steps import HOST, PORT, Background, error_of, step, until

ALL_BYTES = bytes(range(256))


def handshake(r):
    step("ping", r.ping(), True)
    step("echo of all bytes", r.echo(ALL_BYTES) == ALL_BYTES, True)
    named = redis.Redis(HOST, PORT, db=3, client_name="a-name", decode_responses=True)
    step("name from the handshake", named.client_getname(), "a-name")
    step("set in database 3", named.set("only-here", "x"), True)
    step("database 0 has it not", r.exists("only-here"), 0)
    step("client info knows the database", named.client_info()["db"], 3)
    step("database 99", error_of(redis.Redis(HOST, PORT, db=99).ping),
         "ResponseError: DB index is out of range")
    step("an unknown user", error_of(redis.Redis(HOST, PORT, username="nobody", password="x").ping),
         "ResponseError: WRONGPASS invalid username-password pair or user is disabled.")
    step("info: a version", int(r.info("server")["redis_version"].split(".")[0]) >= 7, True)
    step("info: role", r.info("replication")["role"], "master")
    step("info: keyspace", r.info("keyspace")["db3"]["keys"], 1)
    step("time", abs(r.time()[0] - time.time()) < 60, True)


def strings(r):
    step("set", r.set("s", b"a\r\n\x00b"), True)
    step("get", r.get("s"), b"a\r\n\x00b")
    step("get of nothing", r.get("none"), None)
    step("a binary key", [r.set(ALL_BYTES, ALL_BYTES), r.get(ALL_BYTES) == ALL_BYTES, r.delete(ALL_BYTES)],
         [True, True, 1])
    big = hashlib.sha256(b"seed").digest() * 150_000
    step("4.8 MB there and back", [r.set("big", big), r.get("big") == big, r.strlen("big"),
                                   r.delete("big")],
         [True, True, 4_800_000, 1])
    step("set nx, xx", [r.set("s", "x", nx=True), r.set("t", "x", xx=True), r.set("t", "1", nx=True)],
         [None, None, True])
    step("set with get", [r.set("t", "2", get=True), r.set("fresh", "3", get=True)], [b"1", None])
    step("setnx", [r.setnx("t", "x"), r.setnx("u", "x")], [False, True])
    step("getset, getdel", [r.getset("t", "4"), r.getdel("t"), r.getdel("t")], [b"2", b"4", None])
    step("mset, mget", [r.mset({"a": "1", "b": "2"}), r.mget("a", "none", "b")], [True, [b"1", None, b"2"]])
    step("msetnx", [r.msetnx({"a": "9", "c": "9"}), r.msetnx({"c": "3", "d": "4"})], [False, True])
    step("counters", [r.incr("n"), r.incrby("n", 10), r.decr("n"), r.decrby("n", 20),
                      r.incrbyfloat("n", 0.5)],
         [1, 11, 10, -10, -9.5])
    step("append, strlen", [r.append("app", "ab"), r.append("app", "cd"), r.strlen("app")], [2, 4, 4])
    step("getrange, setrange", [r.getrange("app", 1, -2), r.setrange("app", 6, "z"), r.get("app")],
         [b"bc", 7, b"abcd\x00\x00z"])
    step("substr", r.substr("app", 0, 1), b"ab")


def expiry(r):
    step("set px", [r.set("e", "x", px=30_000), 29_000 < r.pttl("e") <= 30_000, r.ttl("e")],
         [True, True, 30])
    step("keepttl keeps the ttl of set ex", [r.set("e", "y", keepttl=True), r.ttl("e"), r.set("e", "z"),
                                       r.ttl("e")],
         [True, 30, True, -1])
    step("ttl of nothing", [r.ttl("none"), r.pttl("none")], [-2, -2])
    step("expire nx xx gt lt", [r.expire("e", 100, xx=True), r.expire("e", 100, nx=True),
                                r.expire("e", 50, gt=True), r.expire("e", 50, lt=True), r.ttl("e")],
         [False, True, False, True, 50])
    step("expire of nothing", [r.expire("none", 1), r.persist("none")], [False, False])
    step("persist", [r.persist("e"), r.persist("e"), r.ttl("e")], [True, False, -1])
    at = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)
    step("expireat", [r.expireat("e", at), r.execute_command("EXPIRETIME", "e")], [True, 4102444800])
    step("pexpireat", [r.pexpireat("e", 4102444800123), r.execute_command("PEXPIRETIME", "e")],
         [True, 4102444800123])
    step("getex", [r.getex("e", persist=True), r.ttl("e"), r.getex("e", px=5000), 0 < r.pttl("e") <= 5000],
         [b"z", -1, b"z", True])
    step("setex, psetex", [r.setex("f", 10, "1"), r.psetex("g", 10_000, "2"), r.ttl("f"), r.ttl("g")],
         [True, True, 10, 10])
    step("set exat in the past", [r.set("p", "x", exat=1), r.exists("p")], [True, 0])
    step("expire in the past", [r.set("p", "x"), r.expire("p", -1), r.exists("p")], [True, True, 0])
    r.set("short", "x", px=40)
    step("it goes", until("expiry", lambda: r.get("short") is None), True)
    for name, call in (("zero", lambda: r.setex("f", 0, "x")), ("huge", lambda: r.expire("f", 2 ** 62))):
        step(f"an expire time that is {name}", error_of(call).split(" in ")[0],
             "ResponseError: invalid expire time")
    step("clean", r.flushdb(), True)


def keys(r):
    step("mset", r.mset({f"key:{i}": i for i in range(300)}), True)
    step("keys", sorted(r.keys("key:29[0-2]")), [b"key:290", b"key:291", b"key:292"])
    step("scan meets all", len(set(r.scan_iter("key:*", count=50))), 300)
    step("dbsize, randomkey", [r.dbsize(), r.randomkey()[:4]], [300, b"key:"])
    step("exists, touch, unlink, delete", [r.exists("key:1", "key:1", "none"), r.touch("key:1", "none"),
                                           r.unlink("key:1", "none"), r.delete("key:2", "key:3")],
                                           [2, 1, 1, 2])
    step("type", [r.type("key:4"), r.type("none")], [b"string", b"none"])
    step("rename", [r.rename("key:4", "new"), r.renamenx("new", "key:5"), error_of(r.rename, "none", "x")],
         [True, False, "ResponseError: no such key"])
    step("copy", [r.copy("new", "new2"), r.copy("new", "new2"), r.copy("new", "new2", replace=True),
                  r.copy("new", "there", destination_db=5)], [True, False, True, True])
    step("object encoding", [r.object("encoding", "key:6"), r.object("encoding", "none")], [b"int", None])
    step("swapdb", [r.swapdb(0, 5), r.keys(), r.swapdb(0, 5), r.dbsize()], [True, [b"there"], True, 298])
    step("flush", [r.flushall(), r.dbsize()], [True, 0])


def hashes(r):
    step("hset", [r.hset("h", "f", b"\x00\xff"), r.hset("h", mapping={"f": "1", "g": "2"})], [1, 1])
    step("hget", [r.hget("h", "f"), r.hget("h", "none"), r.hmget("h", "g", "none")],
         [b"1", None, [b"2", None]])
    step("hgetall", [r.hgetall("h"), r.hgetall("none")], [{b"f": b"1", b"g": b"2"}, {}])
    step("hkeys, hvals, hlen, hstrlen", [r.hkeys("h"), r.hvals("h"), r.hlen("h"), r.hstrlen("h", "f")],
         [[b"f", b"g"], [b"1", b"2"], 2, 1])
    step("hsetnx, hexists", [r.hsetnx("h", "f", "x"), r.hsetnx("h", "i", "x"), r.hexists("h", "i")],
         [0, 1, True])
    step("hincrby", [r.hincrby("h", "n", 5), r.hincrby("h", "n", -7), r.hincrbyfloat("h", "n", 0.25)],
         [5, -2, -1.75])
    step("hincrby of text", error_of(r.hincrby, "h", "i"), "ResponseError: hash value is not an integer")
    step("hdel", [r.hdel("h", "f", "none"), r.hdel("h", "g", "i", "n"), r.exists("h")], [1, 3, 0])
    step("a large one", r.hset("large", mapping={f"f{i}": i for i in range(2000)}), 2000)
    step("hscan meets all", len(dict(r.hscan_iter("large", count=100))), 2000)
    step("its type", [r.type("large"), r.object("encoding", "large"), r.delete("large")],
         [b"hash", b"hashtable", 1])


def errors(r):
    r.hset("h", "f", "v")
    r.set("s", "text")
    wrong = "ResponseError: WRONGTYPE Operation against a key holding the wrong kind of value"
    step("wrong type", [error_of(r.get, "h"), error_of(r.hget, "s", "f")], [wrong, wrong])
    step("not an integer", error_of(r.incr, "s"), "ResponseError: value is not an integer or out of range")
    step("unknown command", error_of(r.execute_command, "NOSUCH", "a", "b c"),
         "ResponseError: unknown command 'NOSUCH', with args beginning with: 'a' 'b c' ")
    step("arity", error_of(r.execute_command, "GET"),
         "ResponseError: wrong number of arguments for 'get' command")
    step("syntax", error_of(r.execute_command, "SET", "s", "x", "NOPE"), "ResponseError: syntax error")
    step("subcommand", error_of(r.execute_command, "CLIENT", "NOPE"),
         "ResponseError: unknown subcommand 'NOPE'. Try CLIENT HELP.")
    step("the connection lives", r.get("s"), b"text")
    step("clean", r.flushall(), True)


def administration(r):
    step("config set, get", [r.config_set("slowlog-max-len", 7), r.config_get("slowlog-max-len")],
         [True, {"slowlog-max-len": "7"}])
    step("an unknown option", error_of(r.config_set, "no-such", "1"),
         "ResponseError: Unknown option or number of arguments for CONFIG SET - 'no-such'")
    step("slowlog", [r.config_set("slowlog-log-slower-than", 0), r.slowlog_reset(), r.get("slow"),
                     r.slowlog_get(10)[0]["command"], r.config_set("slowlog-log-slower-than", 10000)],
         [True, True, None, b"GET slow", True])
    step("role", r.role(), [b"master", 0, []])
    step("wait for no replicas", r.wait(0, 10), 0)
    step("memory usage", [r.set("m", "x" * 1000), r.memory_usage("m") > 1000, r.memory_usage("none")],
         [True, True, None])
    get = r.command()["get"]
    step("command table", [get["name"], get["arity"], sorted(get["flags"]), get["first_key_pos"]],
         ["get", 2, ["fast", "readonly"], 1])
    step("command getkeys", r.command_getkeys("MSET", "a", "1", "b", "2"), ["a", "b"])
    step("dbsize, flushall async", [r.dbsize(), r.flushall(asynchronous=True), r.dbsize()], [1, True, 0])


def clients(r):
    victim = redis.Redis(HOST, PORT, client_name="victim", single_connection_client=True)
    victim.ping()
    row = [c for c in r.client_list() if c["name"] == "victim"][0]
    step("client list", [row["db"], row["flags"], row["cmd"]], ["0", "N", "ping"])
    step("client kill", r.client_kill_filter(_id=row["id"]), 1)
    step("the killed client gets an error", error_of(victim.ping).split(":")[0], "ConnectionError")
    step("and connects again", victim.client_id() != int(row["id"]), True)
    quitter = redis.Connection(HOST, PORT)
    quitter.send_command("PING")
    quitter.send_command("QUIT")
    step("quit", [quitter.read_response(), quitter.read_response()], [b"PONG", b"OK"])
    step("and closed", error_of(quitter.read_response), "ConnectionError: Connection closed by server.")
    pool = redis.ConnectionPool(host=HOST, port=PORT, max_connections=200)
    connections = [pool.get_connection("_") for _ in range(200)]
    for connection in connections:
        connection.send_command("INCR", "many")
    step("200 connections at once", sorted(c.read_response() for c in connections) == list(range(1, 201)),
         True)
    shared = redis.Redis(connection_pool=redis.BlockingConnectionPool(10, host=HOST, port=PORT))
    workers = [Background(lambda: [shared.incr("shared") for _ in range(40)]) for _ in range(25)]
    step("25 threads share 10", len({n for w in workers for n in w.result()}), 1000)


def main():
    r = redis.Redis(HOST, PORT)
    r.flushall()
    for part in (handshake, strings, expiry, keys, hashes, errors, administration, clients, pipelines,
                 transactions, scripts, pubsub, keyspace_events, tracking, monitor, pause):
        part(r)


main()
