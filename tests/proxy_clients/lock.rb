# A lock by hand with redis-rb: SET NX PX, and scripts that compare. Arguments: the ports of two proxies.
require "redis"

RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0".freeze
EXTEND = "if redis.call('get', KEYS[1]) == ARGV[1] then " \
         "return redis.call('pexpire', KEYS[1], ARGV[2]) end return 0".freeze
$stdout.sync = true

def say(what, value)
  puts "#{what} #{value ? true : false}"
end

def wait_for_the_test
  puts "ready"
  $stdin.gets
end

def acquire(redis, value)
  redis.set("job", value, nx: true, px: 30_000)
end

def run(redis, script, *words)
  redis.eval(script, keys: ["job"], argv: words) == 1
end

one, two = ARGV.map { |port| Redis.new(host: "127.0.0.1", port: port.to_i) }
say "held", acquire(one, "one")
say "other", acquire(two, "one")
wait_for_the_test
say "extended", run(one, EXTEND, "one", 40_000)
say "other", acquire(two, "two")
say "released", run(one, RELEASE, "one")
wait_for_the_test
say "other", acquire(two, "two")
say "released", run(two, RELEASE, "two")
