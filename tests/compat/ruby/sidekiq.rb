# Sidekiq's queues without its process: jobs are pushed, fetched by a blocking pop, scheduled, retried
# and buried. Lists, sets and sorted sets, and the script by which Sidekiq takes the jobs that are due.
require "sidekiq"
require "sidekiq/api"
require "sidekiq/fetch"
require "sidekiq/scheduled"
require_relative "steps"

# Stands for a class of the application; nothing runs it here.
class Work
  include Sidekiq::Job
  sidekiq_options queue: "work"
end

HOUR_S = 3600

def redis
  Sidekiq.redis { |connection| yield connection }
end

# The arguments of the jobs in a queue, from the next one to the last.
def arguments(queue)
  queue.map(&:args).reverse
end

def fetcher(*queues)
  Sidekiq::BasicFetch.new(queues: queues, strict: true)
end

def queues
  queue = Sidekiq::Queue.new("work")
  ids = (1..3).map { |n| Work.perform_async(n) }
  step "push", [ids.uniq.size, queue.size, arguments(queue)], [3, 3, [[1], [2], [3]]]
  step "the queues are a set, a queue is a list",
       redis { |r| [r.smembers("queues"), r.type("queue:work"), r.type("queues")] },
       [["work"], "list", "set"]
  step "delete a job", [queue.find_job(ids[1]).delete, arguments(queue)], [true, [[1], [3]]]
  Sidekiq::Client.push_bulk("class" => Work, "args" => (1..1500).map { |n| [n] })
  step "1500 at once", [queue.size, queue.find_job(ids[2]).args, queue.count], [1502, [3], 1502]
  step "latency", queue.latency < EVENT_LIMIT_S, true
  queue.clear
  step "clear", [queue.size, Sidekiq::Queue.all.size], [0, 0]
end

def fetching
  2.times { |n| Work.perform_async(n) }
  work = fetcher("low", "work").retrieve_work
  step "fetch the oldest", [work.queue_name, Sidekiq.load_json(work.job)["args"]], ["work", [0]]
  work.requeue
  step "requeue: it is the next again", arguments(Sidekiq::Queue.new("work")), [[0], [1]]
  2.times { fetcher("work").retrieve_work }
  waiting = Thread.new { fetcher("urgent", "work").retrieve_work }
  wait_for("a waiter") { redis { |r| r.info("clients")["blocked_clients"] == "1" } }
  Work.perform_async("late")
  step "a blocked fetch gets a new job", Sidekiq.load_json(result_of(waiting).job)["args"], ["late"]
  crowd = Array.new(5) { Thread.new { Array.new(20) { fetcher("work").retrieve_work.job } } }
  100.times { |n| Work.perform_async(n) }
  jobs = crowd.flat_map { |each| result_of(each) }.map { |job| Sidekiq.load_json(job)["args"][0] }
  step "five fetchers, each job once", jobs.sort == (0..99).to_a, true
end

def schedules
  scheduled = Sidekiq::ScheduledSet.new
  Work.perform_in(HOUR_S, "later")
  Work.perform_in(2 * HOUR_S, "much later")
  step "scheduled", [scheduled.size, scheduled.map(&:args)], [2, [["much later"], ["later"]]]
  early_s = scheduled.min_by(&:score).score - Time.now.to_f
  step "the score is the time", (early_s - HOUR_S).abs < EVENT_LIMIT_S, true
  Sidekiq::Scheduled::Enq.new.enqueue_jobs
  step "nothing is due", [scheduled.size, Sidekiq::Queue.new("work").size], [2, 0]
  scheduled.min_by(&:score).reschedule(Time.now.to_f - 1)
  Sidekiq::Scheduled::Enq.new.enqueue_jobs
  step "one is due", [scheduled.size, arguments(Sidekiq::Queue.new("work"))], [1, [["later"]]]
  redis { |r| r.script(:flush) }
  scheduled.first.add_to_queue
  step "at once", [scheduled.size, Sidekiq::Queue.new("work").size], [0, 2]
  Sidekiq::Queue.new("work").clear
end

def retries
  retries = Sidekiq::RetrySet.new
  dead = Sidekiq::DeadSet.new
  job = { "class" => "Work", "queue" => "work", "args" => ["failed"], "jid" => "j1", "retry_count" => 0 }
  retries.schedule(Time.now.to_f + HOUR_S, job)
  step "a retry", [retries.size, retries.find_job("j1").args], [1, ["failed"]]
  retries.find_job("j1").kill
  step "buried", [retries.size, dead.size, dead.first.args], [0, 1, ["failed"]]
  dead.find_job("j1").retry
  step "out of the grave", [dead.size, arguments(Sidekiq::Queue.new("work"))], [0, [["failed"]]]
  stats = Sidekiq::Stats.new
  step "statistics",
       [stats.enqueued, stats.scheduled_size, stats.retry_size, stats.dead_size, stats.queues],
       [1, 0, 0, 0, { "work" => 1 }]
end

Redis.silence_deprecations = true # Sidekiq 6 is older than Debian's redis-rb
Sidekiq.configure_client { |config| config.redis = { host: HOST, port: PORT, size: 8 } }
queues
fetching
schedules
retries
