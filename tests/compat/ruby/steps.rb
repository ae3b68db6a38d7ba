# What the Ruby case shares: steps that are printed and checked, errors as text, waiting for an event.

HOST = ENV.fetch("HOST")
PORT = Integer(ENV.fetch("PORT"))
HOLDFAST = ENV["HOLDFAST"] == "1"
EVENT_LIMIT_S = 20

$stdout.sync = true

# A line `name: outcome`, the same on every run; ends the program where the outcome is another one.
def step(name, got, expected)
  puts "#{name}: #{got.inspect}"
  abort "#{name}: expected #{expected.inspect}, got #{got.inspect}" unless got.eql?(expected)
end

# A step with Holdfast's own commands, which only Holdfast's side of the comparison has.
def native(name, got, expected)
  step("native: #{name}", got, expected)
end

# The error that the block ends with, as text.
def error_of
  "no error but #{yield.inspect}"
rescue StandardError => e
  "#{e.class}: #{e.message}"
end

def now_s
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Asks until the block gives something; returns that.
def wait_for(what)
  deadline = now_s + EVENT_LIMIT_S
  while now_s < deadline
    got = yield
    return got if got
    sleep 0.005
  end
  abort "#{what}: has not come in #{EVENT_LIMIT_S} s"
end

# What a thread returns, or that it does not.
def result_of(thread)
  thread.join(EVENT_LIMIT_S) ? thread.value : "has not returned"
end
