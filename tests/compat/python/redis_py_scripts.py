"""redis-py: pipelines, transactions with WATCH, and scripts."""
import hashlib

import redis

from steps import COMPARE_AND_DELETE, HOST, PORT, error_of, step, until

NO_SCRIPT = "NoScriptError: No matching script. Please use EVAL."


def pipelines(r):
    p = r.pipeline(transaction=False)
    p.set("p", "1").incr("p").hset("ph", "f", "v").hgetall("ph").get("none")
    step("a pipeline", p.execute(), [True, 2, 1, {b"f": b"v"}, None])
    p.incr("p").incr("ph").incr("p")
    got = p.execute(raise_on_error=False)
    step("an error amid a pipeline", [got[0], str(got[1]), got[2]],
         [3, "WRONGTYPE Operation against a key holding the wrong kind of value", 4])
    for i in range(10_000):
        p.set(f"many:{i}", i)
    step("10,000 at once", sum(p.execute()), 10_000)
    p.mget([f"many:{i}" for i in range(10_000)])
    step("10,000 keys of one command", [int(v) for v in p.execute()[0]] == list(range(10_000)), True)
    step("an empty one", p.execute(), [])
    step("clean", r.flushall(), True)


def transactions(r):
    p = r.pipeline()
    step("multi, exec", p.set("m", "1").incr("m").get("m").execute(), [True, 2, b"2"])
    p.incr("m").hget("m", "f")
    got = p.execute(raise_on_error=False)
    step("an error of execution", [got[0], str(got[1])],
         [3, "WRONGTYPE Operation against a key holding the wrong kind of value"])
    p.set("m", "9").execute_command("NOSUCH")
    step("an error of queueing aborts", error_of(p.execute).split(" of pipeline")[0],
         "ResponseError: Command # 2 (NOSUCH)")
    step("nothing was done", r.get("m"), b"3")
    p.watch("m")
    value = int(p.get("m"))
    p.multi()
    p.set("m", value + 1)
    step("watch, unchanged", p.execute(), [True])
    p.watch("m")
    r.set("m", "100")
    p.multi()
    p.set("m", "5")
    step("watch, changed", [error_of(p.execute), r.get("m")],
         ["WatchError: Watched variable changed.", b"100"])
    p.watch("m")
    r.set("m", "101")
    p.unwatch()
    p.multi()
    step("unwatch", p.set("m", "6").execute(), [True])
    watched_expiry(r, p)
    watched_absence(r, p)
    step("transaction()", r.transaction(lambda t: (t.multi(), t.incr("m")), "m"), [7])
    retries(r)


def watched_expiry(r, p):
    r.set("short", "x", px=300)
    p.watch("short")
    until("expiry", lambda: not r.exists("short"))
    p.multi()
    p.set("m", "7")
    step("watch sees an expiry", error_of(p.execute), "WatchError: Watched variable changed.")


def watched_absence(r, p):
    p.watch("absent")
    r.set("absent", "now there")
    p.multi()
    p.get("absent")
    step("watch sees a creation", error_of(p.execute), "WatchError: Watched variable changed.")
    p.watch("absent")
    redis.Redis(HOST, PORT, db=1).set("absent", "elsewhere")
    p.multi()
    p.get("absent")
    step("not one in another database", p.execute(), [b"now there"])
    p.watch("absent")
    r.flushall()
    p.multi()
    step("watch sees flushall", error_of(p.set("absent", "x").execute),
         "WatchError: Watched variable changed.")
    step("and set again", r.set("m", "6"), True)


def retries(r):
    """transaction() retries if another client changed the key in between, here twice."""
    tries = 0

    def body(p):
        nonlocal tries
        tries += 1
        value = int(p.get("c") or 0)
        if tries < 3:
            r.incr("c")
        p.multi()
        p.set("c", value * 10)

    step("transaction() tries again", [r.transaction(body, "c"), tries, r.get("c")], [[True], 3, b"20"])


def scripts(r):
    r.flushall()
    r.script_flush()
    release = r.register_script(COMPARE_AND_DELETE)
    step("not loaded", [r.script_exists(release.sha), error_of(r.evalsha, release.sha, 1, "k", "v")],
         [[False], NO_SCRIPT])
    step("script object, after NOSCRIPT", [r.set("k", "v"), release(keys=["k"], args=["other"]),
                                           release(keys=["k"], args=["v"])], [True, 0, 1])
    step("now loaded", [r.script_exists(release.sha, "0" * 40),
                        r.script_load(COMPARE_AND_DELETE) == release.sha],
         [[True, False], True])
    sha = hashlib.sha1(b"return 7").hexdigest()
    step("eval loads too", [r.eval("return 7", 0), r.evalsha(sha, 0), r.evalsha(sha.upper(), 0)], [7, 7, 7])
    step("script flush", [r.script_flush(), r.script_exists(release.sha)], [True, [False]])
    p = r.pipeline()
    r.set("k", "v")
    release(keys=["k"], args=["v"], client=p)
    step("in a pipeline", p.get("k").execute(), [1, None])
    conversions(r)
    script_errors(r)


def conversions(r):
    everything = "return {1, 3.99, 'a\\0b', true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}, 'end'}"
    step("values from Lua", r.eval(everything, 1, b"\x00k", b"\xff"),
         [1, 3, b"a\x00b", 1, None, [b"\x00k", b"\xff"], b"FINE", b"end"])
    step("an array ends at nil", r.eval("return {1, nil, 3}", 0), [1])
    step("values in Lua", r.eval(
        "return {redis.call('set', 'l', 'v').ok, redis.call('get', 'none') == false,"
        " type(redis.call('incr', 'n')), #redis.call('mget', 'l', 'none'), redis.sha1hex('x')}", 0),
        [b"OK", 1, b"number", 2, b"11f6ad8ec52a2984abaafd7c3b516503785c2072"])
    step("a whole number stays one", [r.eval("return redis.call('set', 'big', 2^53)", 0), r.get("big")],
         [b"OK", b"9007199254740992"])
    step("cjson", r.eval("return cjson.encode({a = cjson.decode(ARGV[1])[2]})", 0, '[1, "two"]'),
         b'{"a":"two"}')
    step("cmsgpack, bit, struct", r.eval(
        "return {cmsgpack.unpack(cmsgpack.pack('x')), bit.band(6, 3), struct.unpack('>I2', '\\1\\2')}", 0),
        [b"x", 2, 258, 3])
    step("select does not leak", [r.eval("redis.call('select', 4) return redis.call('set', 'in4', 'x')", 0),
                                  r.exists("in4"), redis.Redis(HOST, PORT, db=4).get("in4")],
                                  [b"OK", 0, b"x"])
    step("eval_ro", [r.eval_ro("return redis.call('get', KEYS[1])", 1, "l"),
                     error_of(r.eval_ro, "return redis.call('del', KEYS[1])", 1, "l").split(" script:")[0]],
         [b"v", "ResponseError: Write commands are not allowed from read-only scripts."])


def script_errors(r):
    step("a runtime error", error_of(r.eval, "local x = nil; return x.y", 0).split(" script: ")[0],
         "ResponseError: user_script:1: attempt to index local 'x' (a nil value)")
    step("a syntax error", error_of(r.eval, "return }", 0),
         "ResponseError: Error compiling script (new function): user_script:1: unexpected symbol near '}'")
    step("a global", error_of(r.eval, "x = 1", 0).split(" script: ")[0],
         "ResponseError: user_script:1: Attempt to modify a readonly table")
    step("error_reply", error_of(r.eval, "return redis.error_reply('MY own')", 0), "ResponseError: MY own")
    step("pcall", r.eval("return redis.pcall('nosuch')['err']", 0),
         b"ERR Unknown Redis command called from script")
    step("call", error_of(r.eval, "return redis.call('nosuch')", 0).split(" script: ")[0],
         "ResponseError: Unknown Redis command called from script")
    step("numkeys", [error_of(r.eval, "return 1", 2, "k"), error_of(r.eval, "return 1", -1)],
         ["ResponseError: Number of keys can't be greater than number of args",
          "ResponseError: Number of keys can't be negative"])
    r.set("half", "0")
    step("an error does not undo", [error_of(r.eval, "redis.call('set', 'half', '1') error('no')", 0)
                                    .split(" script: ")[0], r.get("half")],
         ["ResponseError: user_script:1: no", b"1"])
