"""redis-py: pub/sub, keyspace events, invalidation by way of another connection, MONITOR."""
import redis

from steps import EVENT_LIMIT_S, HOST, PORT, Background, error_of, step, until


def heard(p):
    """The next message, as (type, pattern, channel, data)."""
    got = until("a message", lambda: p.get_message(timeout=EVENT_LIMIT_S))
    return got["type"], got["pattern"], got["channel"], got["data"]


def pubsub(r):
    p = r.pubsub()
    p.subscribe("news", b"\x00\xff")
    step("subscribe", [heard(p), heard(p)],
         [("subscribe", None, b"news", 1), ("subscribe", None, b"\x00\xff", 2)])
    p.psubscribe("n?ws", "other.*")
    step("psubscribe", [heard(p), heard(p)],
         [("psubscribe", None, b"n?ws", 3), ("psubscribe", None, b"other.*", 4)])
    step("publish", [r.publish("news", b"a\r\n\x00"), r.publish("other.x", "1"), r.publish("nobody", "x")],
         [2, 1, 0])
    step("messages", [heard(p), heard(p), heard(p)],
         [("message", None, b"news", b"a\r\n\x00"), ("pmessage", b"n?ws", b"news", b"a\r\n\x00"),
          ("pmessage", b"other.*", b"other.x", b"1")])
    step("subscribers", [sorted(r.pubsub_channels()), r.pubsub_numsub("news", "nobody"), r.pubsub_numpat()],
         [[b"\x00\xff", b"news"], [(b"news", 1), (b"nobody", 0)], 2])
    p.ping("are you there")
    step("ping while subscribed", heard(p), ("pong", None, None, b"are you there"))
    p.connection.send_command("GET", "x")
    step("get while subscribed", error_of(p.parse_response),
         "ResponseError: Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET "
         "are allowed in this context")
    transaction = r.pipeline()
    step("publish in a transaction and in a script",
         [transaction.publish("news", "1").publish("news", "2").execute(),
          r.eval("redis.call('publish', 'news', '3') return redis.call('publish', 'none', '4')", 0)],
         [[2, 2], 0])
    step("they come in order", [heard(p)[3] for _ in range(6)], [b"1", b"1", b"2", b"2", b"3", b"3"])
    p.unsubscribe("news")
    step("unsubscribe", heard(p), ("unsubscribe", None, b"news", 3))
    p.punsubscribe()
    p.unsubscribe()
    got = [heard(p) for _ in range(3)]
    step("unsubscribe from all", [sorted(name for _, _, name, _ in got), [left for _, _, _, left in got]],
         [[b"\x00\xff", b"n?ws", b"other.*"], [2, 1, 0]])
    step("a channel without subscribers", r.publish("news", "x"), 0)
    p.close()
    handlers(r)


def handlers(r):
    got = []
    p = r.pubsub(ignore_subscribe_messages=True)
    p.subscribe(**{"jobs": lambda message: got.append(message["data"])})
    worker = p.run_in_thread(sleep_time=0.01)
    until("a subscriber", lambda: r.pubsub_numsub("jobs") == [(b"jobs", 1)])
    for i in range(100):
        r.publish("jobs", i)
    until("100 messages", lambda: len(got) == 100)
    worker.stop()
    worker.join()
    step("a handler in a thread", [int(n) for n in got] == list(range(100)), True)
    listeners = [r.pubsub() for _ in range(50)]
    for listener in listeners:
        listener.subscribe("all")
        heard(listener)
    step("to 50 subscribers", r.publish("all", "x"), 50)
    step("all of them get the message", {heard(listener)[3] for listener in listeners}, {b"x"})
    for listener in listeners:
        listener.close()
    step("unsubscribe", until("an empty channel", lambda: r.pubsub_numsub("all") == [(b"all", 0)]), True)


def keyspace_events(r):
    r.flushall()
    step("switch on", [r.config_set("notify-keyspace-events", "KEA"),
                       r.config_get("notify-keyspace-events")],
         [True, {"notify-keyspace-events": "AKE"}])
    p = r.pubsub()
    p.psubscribe("__key*@0__:*")
    heard(p)
    r.set("k", "v", px=30)
    step("set, expire, expired", [heard(p)[2:] for _ in range(6)],
         [(b"__keyspace@0__:k", b"set"), (b"__keyevent@0__:set", b"k"),
          (b"__keyspace@0__:k", b"expire"), (b"__keyevent@0__:expire", b"k"),
          (b"__keyspace@0__:k", b"expired"), (b"__keyevent@0__:expired", b"k")])
    r.hset("h", "f", "1")
    r.eval("redis.call('hincrby', 'h', 'f', 2) redis.call('rename', 'h', 'i') redis.call('del', 'i')", 0)
    step("hashes, in a script", [heard(p)[2:] for _ in range(10)][1::2],
         [(b"__keyevent@0__:hset", b"h"), (b"__keyevent@0__:hincrby", b"h"),
          (b"__keyevent@0__:rename_from", b"h"), (b"__keyevent@0__:rename_to", b"i"),
          (b"__keyevent@0__:del", b"i")])
    redis.Redis(HOST, PORT, db=2).set("elsewhere", "x")
    r.incr("n")
    step("only of this database", heard(p)[2:], (b"__keyspace@0__:n", b"incrby"))
    step("switch off", r.config_set("notify-keyspace-events", ""), True)
    p.close()


def tracking(r):
    """In RESP2 another connection gets the invalidations: CLIENT TRACKING ON REDIRECT."""
    p = r.pubsub()
    p.subscribe("__redis__:invalidate")
    heard(p)
    listener = [int(c["id"]) for c in r.client_list() if c["sub"] == "1"][0]
    reader = redis.Redis(HOST, PORT, single_connection_client=True)
    step("tracking on", reader.client_tracking_on(clientid=listener), b"OK")
    step("tracking info", [reader.client_getredir() == listener, reader.client_trackinginfo()[:2]],
         [True, ["flags", [b"on"]]])
    r.mset({"t1": "1", "t2": "2"})
    step("read", reader.mget("t1", "t2"), [b"1", b"2"])
    r.set("t1", "x")
    step("a write causes an invalidation", heard(p)[2:], (b"__redis__:invalidate", [b"t1"]))
    r.set("t1", "y")
    r.delete("t2")
    step("once for each reading", heard(p)[2:], (b"__redis__:invalidate", [b"t2"]))
    step("read in a script", reader.eval("return redis.call('get', 't1')", 1, "t1"), b"y")
    r.pexpire("t1", 1_000_000)
    step("a new ttl causes an event", heard(p)[2:], (b"__redis__:invalidate", [b"t1"]))
    r.set("short", "x", px=300)
    step("read a key that expires", reader.get("short"), b"x")
    step("the expiry causes an event", heard(p)[2:], (b"__redis__:invalidate", [b"short"]))
    reader.get("t1")
    r.flushall()
    step("flushall causes an invalidation", heard(p)[2:], (b"__redis__:invalidate", None))
    step("tracking off", reader.client_tracking_off(), b"OK")
    p.close()


def monitor(r):
    with redis.Redis(HOST, PORT).monitor() as m:
        r.set("seen", b"a \"quote\"\n")
        r.eval("return redis.call('get', KEYS[1])", 1, "seen")
        got = [m.next_command() for _ in range(3)]
    step("monitor", [(c["db"], c["client_type"], c["command"]) for c in got],
         [(0, "tcp", 'SET seen a "quote"\\n'), (0, "tcp", "EVAL return redis.call('get', KEYS[1]) 1 seen"),
          (0, "lua", "get seen")])


def pause(r):
    step("client pause, of writes", r.client_pause(1_000_000, all=False), True)
    writer = Background(r.set, "paused", "x")
    step("reads continue", [r.get("paused"), r.get("paused"), writer.is_alive()], [None, None, True])
    step("client unpause", [r.client_unpause(), writer.result(), r.get("paused")], [b"OK", True, b"x"])
