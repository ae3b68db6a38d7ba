# Helpers of the Ruby case: steps that print and check their outcome, errors as text, waits for events.

HOST = ENV.fetch("HOST")
PORT = Integer(ENV.fetch("PORT"))
HOLDFAST = ENV["HOLDFAST"] == "1"
EVENT_LIMIT_S = 20

$stdout.sync = true

# Prints `name: outcome`, the same on every run. Ends the program if the outcome is not the expected one.
def step(name, got, expected)
  puts "#{name}: #{got.inspect}"
  abort "#{name}: expected #{expected.inspect}, got #{got.inspect}" unless got.eql?(expected)
end

# A step with commands of Holdfast, which only its side of the comparison runs.
def native(name, got, expected)
  step("native: #{name}", got, expected)
end

# Returns the error of the block, as text.
def error_of
  "no error but #{yield.inspect}"
rescue StandardError => e
  "#{e.class}: #{e.message}"
end

def now_s
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# Polls until the block returns a value; returns that value.
def wait_for(what)
  deadline = now_s + EVENT_LIMIT_S
  while now_s < deadline
    got = yield
    return got if got
    sleep 0.005
  end
  abort "#{what}: did not happen in #{EVENT_LIMIT_S} s"
end

# Returns the value of a thread, or that the thread did not end.
def result_of(thread)
  thread.join(EVENT_LIMIT_S) ? thread.value : "has not returned"
end
