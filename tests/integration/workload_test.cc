// The acceptance workload of an older lock framework: 1,655 jobs, 566 at a time. Each waits without limit
// for one lock, holds it for 35 ms, and increments a shared counter. The workload lasts 1,655 x 35 ms = 58
// s, so it runs concurrently with the other tests, in its own thread and with its own server.
#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <deque>
#include <future>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client.h"
#include "crowd.h"
#include "server_harness.h"

namespace holdfast::integration {
namespace {

constexpr size_t kJobs = 1655;
constexpr size_t kAtATime = 566;
constexpr std::chrono::milliseconds kHold{35};

struct WorkloadResult {
  std::string fault;  // the first fault; empty if there is none
  size_t jobs_done = 0;
  std::string counter;
  Clock::duration took{};
  int exit_status = -1;
};

class Workload {
 public:
  WorkloadResult run(const std::stop_token& stop) {
    const Clock::time_point start = Clock::now();
    start_first_jobs();
    while (result_.jobs_done < kJobs && result_.fault.empty() && !stop.stop_requested()) do_next_job();
    result_.counter = control_.ask("GET counter");
    result_.took = Clock::now() - start;
    result_.exit_status = server_.stop(SIGTERM);
    return result_;
  }

 private:
  static std::string owner_of(size_t job) { return "job" + std::to_string(job); }

  // Sends the requests one after the other, so that their order in the server is known.
  void start_first_jobs() {
    control_.ask("SET counter 0");
    for (size_t worker = 0; worker < kAtATime; ++worker) {
      start_job(worker);
      const auto waiting = static_cast<int64_t>(worker);
      until("the request has arrived", [&] {
        return control_.ask("EXISTS lock") == "1" && info(control_, "locks", "lock_waiters") == waiting;
      });
    }
  }

  void start_job(size_t worker) {
    crowd_.send(worker, "LOCK lock " + owner_of(next_job_) + " 0 WAIT 0");
    queue_.emplace_back(worker, next_job_++);
  }

  // The worker that has waited longest must get the lock. It reads the counter, waits, and writes it back:
  // two holders at a time would lose an increment.
  void do_next_job() {
    const auto [worker, job] = queue_.front();
    queue_.pop_front();
    const int64_t token = token_of(expect(worker), owner_of(job));
    if (token <= last_token_) return fail("no grant to " + owner_of(job) + ", or its token is not larger");
    last_token_ = token;
    crowd_.send(worker, "GET counter");
    const std::string counter = expect(worker);
    const std::optional<Heard> early = crowd_.hear(Clock::now() + kHold);
    if (early) return fail("a reply came while the lock was held: " + early->reply);
    finish_job(worker, job, std::stoul("0" + counter.substr(std::min<size_t>(1, counter.size()))));
  }

  void finish_job(size_t worker, size_t job, size_t counter) {
    if (counter != job) return fail("the counter is " + std::to_string(counter) + " at " + owner_of(job));
    crowd_.send(worker, "SET counter " + std::to_string(counter + 1));
    if (expect(worker) != "+OK") return fail("the counter cannot be written");
    ++result_.jobs_done;
    unlock_and_go_on(worker, job);
  }

  // The worker's next job requests the lock at once. No other request is in flight, so its place is the
  // last.
  void unlock_and_go_on(size_t worker, size_t job) {
    crowd_.send(worker, "UNLOCK lock " + owner_of(job));
    if (next_job_ < kJobs) start_job(worker);
    if (!hears_own_release(worker)) fail("UNLOCK of " + owner_of(job) + " did not get the reply 1");
  }

  // The reply to the release and the next grant come on two connections, in any order.
  bool hears_own_release(size_t worker) {
    const Heard first = crowd_.hear();
    if (first.who == worker) return first.reply == "1";
    early_grant_ = first;
    const Heard second = crowd_.hear();
    return second.who == worker && second.reply == "1";
  }

  std::string expect(size_t worker) {
    const Heard heard = early_grant_ ? *std::exchange(early_grant_, std::nullopt) : crowd_.hear();
    if (heard.who == worker) return heard.reply;
    fail("connection " + std::to_string(heard.who) + " got " + heard.reply + " out of turn");
    return "";
  }

  void fail(const std::string& why) {
    if (result_.fault.empty()) result_.fault = why;
  }

  Server server_;
  Client control_{server_};
  Crowd crowd_{server_, kAtATime};
  std::deque<std::pair<size_t, size_t>> queue_;  // pairs of worker and job, in the order of their requests
  size_t next_job_ = 0;
  int64_t last_token_ = 0;
  std::optional<Heard> early_grant_;
  WorkloadResult result_;
};

// Ends the workload early if its result is not wanted.
struct Background {
  std::stop_source stop;
  std::future<WorkloadResult> result;
  ~Background() { stop.request_stop(); }
};

Background& background() {
  static Background the_one;
  return the_one;
}

WorkloadResult run_workload(const std::stop_token& stop) {
  try {
    return Workload().run(stop);
  } catch (const std::exception& e) {
    WorkloadResult result;
    result.fault = e.what();
    return result;
  }
}

void start_workload() {
  if (background().result.valid()) return;
  background().result = std::async(std::launch::async, run_workload, background().stop.get_token());
}

// Starts the workload with the first test that runs. A skipped test runs only as a part of another one, in
// a process of its own.
struct EarlyStart : doctest::IReporter {
  explicit EarlyStart(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_start(const doctest::TestCaseData& test) override {
    if (!test.m_skip) start_workload();
  }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("early-start", 1, EarlyStart);

TEST_CASE("1,655 jobs, 566 at a time, hold one lock for 35 ms each: one at a time, in FIFO order") {
  start_workload();
  const WorkloadResult result = background().result.get();
  CHECK(result.fault == "");
  CHECK(result.jobs_done == kJobs);
  CHECK(result.counter == "\"1655\"");
  CHECK(result.took >= kJobs * kHold);
  CHECK(result.exit_status == 0);
}

}  // namespace
}  // namespace holdfast::integration
