# Debian's redis-rb as a client, and the lock that Ruby programs build with it: SET NX PX, and a script that
# compares and deletes.
require "digest"
require "redis"
require_relative "steps"

ALL_BYTES = (0..255).to_a.pack("C*").freeze
COMPARE_AND_DELETE = <<~LUA.freeze
  if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
  return 0
LUA
COMPARE_AND_PEXPIRE = <<~LUA.freeze
  if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
  return 0
LUA
NO_SCRIPT = "Redis::CommandError: NOSCRIPT No matching script. Please use EVAL.".freeze
WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value".freeze

def client(**options)
  Redis.new(host: HOST, port: PORT, timeout: EVENT_LIMIT_S, **options)
end

def handshake(r)
  step "ping", [r.ping, r.ping("text")], %w[PONG text]
  step "echo of all bytes", r.echo(ALL_BYTES).b == ALL_BYTES, true
  other = client(db: 3, id: "a-name")
  step "name, database", [other.call("CLIENT", "GETNAME"), other.set("only-here", "x"),
       r.exists?("only-here")],
       ["a-name", "OK", false]
  step "database 99", error_of { client(db: 99).ping }, "Redis::CommandError: ERR DB index is out of range"
  step "select", [r.select(3), r.get("only-here"), r.select(0)], %w[OK x OK]
  step "info", [r.info["redis_version"].to_i >= 7, r.info("replication")["role"]], [true, "master"]
  step "time", (r.time[0] - Time.now.to_i).abs < 60, true
  step "client list", r.client(:list).map { |c| c["name"] }.include?("a-name"), true
  step "quit", [other.quit, other.connected?, other.ping], ["OK", false, "PONG"]
end

def strings(r)
  step "set, get", [r.set("s", "a\r\n\0b"), r.get("s"), r.get("none")], ["OK", "a\r\n\0b", nil]
  step "binary", [r.set(ALL_BYTES, ALL_BYTES), r.get(ALL_BYTES).b == ALL_BYTES, r.del(ALL_BYTES)],
       ["OK", true, 1]
  big = Digest::SHA256.digest("seed") * 150_000
  step "4.8 MB there and back", [r.set("big", big), r.get("big").b == big, r.unlink("big")], ["OK", true, 1]
  step "set nx, xx, get", [r.set("s", "x", nx: true), r.set("t", "x", xx: true), r.set("t", "1", nx: true),
                           r.set("t", "2", get: true)], [false, false, true, "1"]
  step "setnx, getset, getdel", [r.setnx("t", "x"), r.getset("t", "3"), r.getdel("t")], [false, "2", "3"]
  step "mset, mget", [r.mset("a", "1", "b", "2"), r.mapped_mget("a", "none"), r.mget("a", "b")],
       ["OK", { "a" => "1", "none" => nil }, %w[1 2]]
  step "msetnx", [r.msetnx("a", "9", "c", "9"), r.mapped_msetnx("c" => "3")], [false, true]
  step "counters", [r.incr("n"), r.incrby("n", 10), r.decr("n"), r.decrby("n", 20),
       r.incrbyfloat("n", 0.5)],
       [1, 11, 10, -10, -9.5]
  step "append, setrange, getrange", [r.append("app", "abcd"), r.setrange("app", 6, "z"),
       r.getrange("app", 1, 5),
                                      r.strlen("app")], [4, 7, "bcd\0\0", 7]
end

def expiry(r)
  step "set px", [r.set("e", "x", px: 30_000), r.pttl("e").between?(29_000, 30_000), r.ttl("e")],
       ["OK", true, 30]
  step "keepttl", [r.set("e", "y", keepttl: true), r.ttl("e"), r.set("e", "z"), r.ttl("e")],
       ["OK", 30, "OK", -1]
  step "expire", [r.expire("e", 100, xx: true), r.expire("e", 100, nx: true), r.expire("e", 50, gt: true),
                  r.expire("e", 50, lt: true), r.expire("none", 1)], [false, true, false, true, false]
  step "expireat, persist", [r.expireat("e", 4_102_444_800), r.pexpireat("e", 4_102_444_800_000),
       r.persist("e"),
                             r.ttl("e"), r.ttl("none")], [true, true, true, -1, -2]
  step "getex", [r.getex("e", px: 9_000), r.pttl("e").between?(1, 9_000), r.getex("e", persist: true),
       r.ttl("e")],
       ["z", true, "z", -1]
  step "setex, psetex", [r.setex("f", 10, "1"), r.psetex("f", 20_000, "1"), r.ttl("f")], ["OK", "OK", 20]
  step "an expire time of zero", error_of { r.setex("f", 0, "x") },
       "Redis::CommandError: ERR invalid expire time in 'setex' command"
  r.set("short", "x", px: 40)
  step "it goes", wait_for("expiry") { r.get("short").nil? }, true
end

def keys(r)
  r.flushall
  step "mapped_mset", r.mapped_mset((0...300).to_h { |i| ["key:#{i}", i] }), "OK"
  step "scan, keys", [r.scan_each(match: "key:*", count: 40).to_a.uniq.size, r.keys("key:29[01]").sort],
       [300, %w[key:290 key:291]]
  step "exists, del, touch, type", [r.exists("key:1", "none"), r.del("key:1", "none"), r.touch("key:2"),
                                    r.type("key:2"), r.type("none")], [1, 1, 1, "string", "none"]
  step "rename", [r.rename("key:2", "new"), r.renamenx("new", "key:3"), error_of { r.rename("none", "x") }],
       ["OK", false, "Redis::CommandError: ERR no such key"]
  step "copy, move", [r.copy("new", "new2"), r.copy("new", "new2"), r.copy("new", "there", db: 5)],
       [true, false, true]
  step "object, randomkey", [r.object("encoding", "new"), r.randomkey.nil?], ["int", false]
  step "flush", [r.flushdb, r.dbsize], ["OK", 0]
end

def hashes(r)
  step "hset", [r.hset("h", "f", "\0\xFF".b), r.hset("h", { "f" => "1", "g" => "2" }),
       r.mapped_hmset("h", "i" => 3)],
       [1, 1, "OK"]
  step "hget", [r.hget("h", "f"), r.hget("h", "x"), r.hmget("h", "g", "x"), r.mapped_hmget("h", "g")],
       ["1", nil, ["2", nil], { "g" => "2" }]
  step "hgetall", [r.hgetall("h"), r.hgetall("none")], [{ "f" => "1", "g" => "2", "i" => "3" }, {}]
  step "hkeys, hvals, hlen", [r.hkeys("h"), r.hvals("h"), r.hlen("h"), r.hexists("h", "f"),
       r.hsetnx("h", "f", 9)],
       [%w[f g i], %w[1 2 3], 3, true, false]
  step "hincrby", [r.hincrby("h", "f", 5), r.hincrbyfloat("h", "f", 0.5), r.hstrlen("h", "f")], [6, 6.5, 3]
  step "hdel", [r.hdel("h", "f", "x"), r.hdel("h", "g", "i"), r.exists?("h")], [1, 2, false]
  r.mapped_hmset("large", (0...2000).to_h { |i| ["f#{i}", i] })
  step "hscan", r.hscan_each("large", count: 50).to_a.uniq.size, 2000
end

def errors(r)
  r.set("s", "text")
  r.hset("h", "f", "v")
  step "wrong type", error_of { r.get("h") }, "Redis::CommandError: #{WRONG_TYPE}"
  step "not an integer", error_of { r.incr("s") },
       "Redis::CommandError: ERR value is not an integer or out of range"
  step "unknown command", error_of { r.call("NOSUCH", "a") },
       "Redis::CommandError: ERR unknown command 'NOSUCH', with args beginning with: 'a'"
  step "arity", error_of { r.call("GET") },
       "Redis::CommandError: ERR wrong number of arguments for 'get' command"
  step "the connection lives", r.get("s"), "text"
end

def pipelines(r)
  r.flushall
  got = r.pipelined do |p|
    p.set("p", 1)
    p.incr("p")
    p.hset("ph", "f", "v")
    p.hgetall("ph")
    p.get("none")
  end
  step "a pipeline", got, ["OK", 2, 1, { "f" => "v" }, nil]
  step "an error in it", error_of { r.pipelined { |p| p.incr("p"); p.incr("ph"); p.incr("p") } },
       "Redis::CommandError: #{WRONG_TYPE}"
  step "the rest was done", r.get("p"), "4"
  step "10,000 at once", r.pipelined { |p| 10_000.times { p.incr("many") } }.last, 10_000
  step "futures", begin
    future = nil
    r.pipelined { |p| future = p.mapped_mget("p", "none") }
    future.value
  end, { "p" => "4", "none" => nil }
end

def transactions(r)
  step "multi", r.multi { |t| t.set("m", 1); t.incr("m"); t.get("m") }, ["OK", 2, "2"]
  step "an error of execution", [error_of { r.multi { |t| t.incr("m"); t.hget("m", "f") } }, r.get("m")],
       ["Redis::CommandError: #{WRONG_TYPE}", "3"]
  step "an error of queueing", error_of { r.multi { |t| t.set("m", 9); t.call("NOSUCH") } },
       "Redis::CommandError: ERR unknown command 'NOSUCH', with args beginning with:"
  step "nothing was done", r.get("m"), "3"
  other = client
  step "watch", r.watch("m") { |w| value = w.get("m").to_i; w.multi { |t| t.set("m", value + 1) } }, ["OK"]
  step "watch, changed", [r.watch("m") { |w| other.set("m", 100); w.multi { |t| t.set("m", 5) } },
       r.get("m")],
       [nil, "100"]
  step "unwatch", [r.watch("m"), other.incr("m"), r.unwatch, r.multi { |t| t.get("m") }],
       ["OK", 101, "OK", ["101"]]
  r.set("short", "x", px: 300)
  step "watch sees an expiry", r.watch("short") { |w|
    wait_for("expiry") { !other.exists?("short") }
    w.multi { |t| t.set("m", 5) }
  }, nil
end

def scripts(r)
  r.script(:flush)
  sha = Digest::SHA1.hexdigest(COMPARE_AND_DELETE)
  step "not loaded", [r.script(:exists, sha), error_of { r.evalsha(sha, ["k"], ["v"]) }], [false, NO_SCRIPT]
  step "load", [r.script(:load, COMPARE_AND_DELETE) == sha, r.script(:exists, [sha, "0" * 40])],
       [true, [true, false]]
  r.set("k", "v")
  step "evalsha", [r.evalsha(sha, ["k"], ["x"]), r.evalsha(sha, ["k"], ["v"])], [0, 1]
  step "eval", r.eval("return {1, 3.99, true, false, {KEYS[1], ARGV[1]}, {ok='FINE'}}", ["k\0"],
       ["\xFF".b]),
       [1, 3, 1, nil, ["k\0", "\xFF"], "FINE"]
  step "an error", error_of { r.eval("return redis.error_reply('MY own')") }, "Redis::CommandError: MY own"
  step "a runtime error", error_of { r.eval("return nosuch.x") }.split(" script: ")[0],
       "Redis::CommandError: ERR user_script:1: Script attempted to access nonexistent global variable " \
       "'nosuch'"
end

# A thread that subscribes to two patterns, and after the message "end" to two channels.
def listener(heard)
  Thread.new do
    c = client
    c.psubscribe("n?ws", "jobs.*") do |on|
      on.psubscribe { |name, count| heard << [:psubscribe, name, count] }
      on.pmessage do |pattern, name, text|
        heard << [pattern, name, text]
        c.punsubscribe("jobs.*", "n?ws") if text == "end"
      end
      on.punsubscribe { |name, count| heard << [:punsubscribe, name, count] }
    end
    c.subscribe("one", "two") do |on|
      on.subscribe { |name, count| heard << [:subscribe, name, count] }
      on.message do |name, text|
        heard << [name, text]
        c.unsubscribe("two", "one") if text == "end"
      end
      on.unsubscribe { |name, count| heard << [:unsubscribe, name, count] }
    end
    c.ping
  end
end

def pubsub(r)
  heard = Queue.new
  thread = listener(heard)
  step "psubscribe", [heard.pop, heard.pop], [[:psubscribe, "n?ws", 1], [:psubscribe, "jobs.*", 2]]
  step "publish", [r.publish("news", "a\r\n\0"), r.publish("jobs.1", "x"), r.publish("none", "x")],
       [1, 1, 0]
  step "pmessages", [heard.pop, heard.pop], [["n?ws", "news", "a\r\n\0"], ["jobs.*", "jobs.1", "x"]]
  step "channels and subscribers", [r.pubsub(:numpat), r.pubsub(:channels)], [2, []]
  step "punsubscribe", [r.publish("news", "end"), heard.pop, heard.pop, heard.pop],
       [1, %w[n?ws news end], [:punsubscribe, "jobs.*", 1], [:punsubscribe, "n?ws", 0]]
  step "subscribe", [heard.pop, heard.pop], [[:subscribe, "one", 1], [:subscribe, "two", 2]]
  step "remaining subscribers", [r.pubsub(:channels).sort, r.pubsub(:numsub, "one", "none")],
       [%w[one two], ["one", 1, "none", 0]]
  step "publish in a transaction", r.multi { |t| t.publish("one", "1"); t.publish("two", "2") }, [1, 1]
  step "messages", [heard.pop, heard.pop], [%w[one 1], %w[two 2]]
  step "unsubscribe", [r.publish("one", "end"), heard.pop, heard.pop, heard.pop],
       [1, %w[one end], [:unsubscribe, "two", 1], [:unsubscribe, "one", 0]]
  step "commands again", result_of(thread), "PONG"
  quiet = error_of { client.subscribe_with_timeout(0.1, "quiet") { |on| on.message { |*| nil } } }
  step "no message", quiet.split(": ")[0], "Redis::TimeoutError"
end

# The lock of many Ruby programs.
class Mutual
  def initialize(redis, name, owner)
    @redis, @name, @owner = redis, name, owner
  end

  def lock(ttl_ms)
    @redis.set(@name, @owner, nx: true, px: ttl_ms)
  end

  def unlock
    script(COMPARE_AND_DELETE)
  end

  def extend_to(ttl_ms)
    script(COMPARE_AND_PEXPIRE, ttl_ms)
  end

  private

  def script(text, *arguments)
    @redis.evalsha(Digest::SHA1.hexdigest(text), [@name], [@owner, *arguments])
  rescue Redis::CommandError => e
    raise unless e.message.start_with?("NOSCRIPT")
    @redis.eval(text, [@name], [@owner, *arguments])
  end
end

def locks(r)
  mine, theirs = Mutual.new(r, "res", "me"), Mutual.new(client, "res", "you\0\xFF".b)
  step "acquire", [mine.lock(30_000), r.pttl("res").between?(29_000, 30_000)], [true, true]
  step "contention", theirs.lock(30_000), false
  step "extend", [mine.extend_to(60_000), r.pttl("res") > 59_000, theirs.extend_to(1)], [1, true, 0]
  step "release", [theirs.unlock, mine.unlock, mine.unlock, theirs.lock(30_000)], [0, 1, 0, true]
  step "after script flush", [r.script(:flush), theirs.unlock], ["OK", 1]
  mine.lock(40)
  step "expiry lets the next in", wait_for("expiry") { theirs.lock(30_000) }, true
  step "release of a lost lock", [mine.unlock, r.get("res").b, theirs.unlock], [0, "you\0\xFF".b, 1]
end

# 40 threads, each with its own connection. At most one of them holds the lock at any time.
def fight
  inside = most = entered = 0
  guard = Mutex.new
  threads = Array.new(40) do |number|
    Thread.new do
      lock = Mutual.new(client, "fought", "thread #{number}")
      3.times do
        wait_for("the lock") { lock.lock(60_000) }
        guard.synchronize { inside += 1; entered += 1; most = [most, inside].max }
        sleep 0.001
        guard.synchronize { inside -= 1 }
        lock.unlock
      end
    end
  end
  threads.each { |thread| result_of(thread) }
  step "40 clients, one at a time", [entered, most], [120, 1]
end

def mixing(r)
  lock = Mutual.new(r, "mix", "lib")
  lock.lock(30_000)
  native "LOCK is refused", client.call("LOCK", "mix", "me", 10_000), nil
  waiter = Thread.new { client.call("LOCK", "mix", "me", 10_000, "WAIT", 15_000) }
  wait_for("a waiter") { r.info("clients")["blocked_clients"] == "1" }
  begun = now_s
  lock.unlock
  got = result_of(waiter)
  native "release wakes the LOCK that waits", [got[0], got[1].class], ["me", Integer]
  native "at once", now_s - begun < 5, true
  native "the library is refused", [lock.lock(1000), lock.unlock], [false, 0]
  native "UNLOCK lets it in", [r.call("UNLOCK", "mix", "me"), lock.lock(1000), lock.unlock], [1, true, 1]
end

def main
  r = client
  r.flushall
  [:handshake, :strings, :expiry, :keys, :hashes, :errors, :pipelines, :transactions, :scripts, :pubsub,
   :locks].each { |part| send(part, r) }
  fight
  mixing(r) if HOLDFAST
end

main
