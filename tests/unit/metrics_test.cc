// Metrics, readiness and rates.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "core/engine/metrics.h"
#include "core/engine/metrics_writer.h"
#include "core/engine/readiness.h"
#include "core/state/context.h"
#include "core/state/stats.h"
#include "unit/session.h"

namespace holdfast {

namespace {

std::string metrics(Engine& engine, MetricsFormat format = MetricsFormat::kPrometheus, int64_t at_ms = 0) {
  std::string out;
  write_metrics(engine.state(), session_time(at_ms), {}, format, out);
  return out;
}

// The value of a sample, as text; "absent" if there is no such line.
std::string value_of_sample(const std::string& text, const std::string& sample) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(sample + " ")) return line.substr(sample.size() + 1);
  }
  return "absent";
}

std::string failing(Engine& engine, int64_t at_ms = 0) {
  std::string names;
  for (const ReadyCheck& c : readiness(engine.state(), session_time(at_ms))) {
    CHECK(c.ok == c.why.empty());
    if (!c.ok) names.append(c.name).append(" ");
  }
  return names;
}

std::string written(MetricsFormat format, void (*write)(MetricsWriter&)) {
  std::string out;
  MetricsWriter w(format, out);
  write(w);
  w.finish();
  return out;
}

}  // namespace

TEST_CASE("DurationHistogram: a duration at a bound is in the bucket of the bound") {
  for (size_t n = 0; n < DurationHistogram::kBounds; ++n) {
    for (const uint64_t more : {uint64_t{0}, uint64_t{1}}) {
      DurationHistogram h;
      h.record_us(DurationHistogram::bound_us(n) + more);
      CHECK(h.in_bucket(n + more) == 1);
      CHECK(h.count() == 1);
    }
  }
  DurationHistogram h;
  h.record_us(0);
  h.record({-5});
  h.record_us(UINT64_MAX / 2);
  CHECK(h.in_bucket(0) == 2);
  CHECK(h.in_bucket(DurationHistogram::kBounds) == 1);
}

TEST_CASE("Metrics: grants by mode and queue, with their waits") {
  Engine engine(session_config());
  TestClient a(engine), b(engine);
  a.must({"LOCK", "k", "alice", "0"});
  a.must({"LOCK", "s", "alice", "0", "SHARED"});
  a.must({"LOCK", "l", "alice", "0", "LIMIT", "2"});
  b.must({"LOCK", "k", "bob", "0", "WAIT", "0"});
  a.at(session_time(3));
  a.must({"UNLOCK", "k", "alice"});
  const std::string text = metrics(engine);
  CHECK(value_of_sample(text, R"(holdfast_lock_grants_total{mode="exclusive",queued="no"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_lock_grants_total{mode="exclusive",queued="yes"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_lock_grants_total{mode="shared",queued="no"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_lock_grants_total{mode="semaphore",queued="no"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_lock_wait_seconds_bucket{mode="exclusive",le="0.0016"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_lock_wait_seconds_bucket{mode="exclusive",le="0.0032"})") == "2");
  CHECK(value_of_sample(text, R"(holdfast_lock_wait_seconds_sum{mode="exclusive"})") == "0.003");
  CHECK(value_of_sample(text, R"(holdfast_lock_hold_seconds_sum{mode="exclusive"})") == "0.003");
  CHECK(value_of_sample(text, R"(holdfast_locks{mode="exclusive"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_locks{mode="shared"})") == "1");
  CHECK(value_of_sample(text, R"(holdfast_locks{mode="semaphore"})") == "1");
}

TEST_CASE("Metrics: each end of a hold has its reason") {
  Engine engine(session_config());
  TestClient a(engine);
  for (const char* key : {"unlocked", "broken", "deleted", "overwritten"}) a.must({"LOCK", key, "a", "0"});
  a.must({"LOCK", "expired", "a", "5"});
  a.must({"UNLOCK", "unlocked", "a"});
  a.must({"LOCKS", "BREAK", "broken"});
  a.must({"DEL", "deleted"});
  a.must({"SET", "overwritten", "b"});
  TestClient b(engine);
  b.must({"LOCK", "session", "b", "0", "SESSION"});
  b.disconnect();
  Effects fx;
  engine.tick(session_time(20), fx);
  const std::string text = metrics(engine);
  for (const char* reason : {"unlock", "expired", "broken", "session", "deleted", "overwritten"}) {
    const std::string sample = std::string("holdfast_lock_ends_total{reason=\"") + reason + "\"}";
    CHECK(value_of_sample(text, sample) == "1");
  }
  CHECK(value_of_sample(text, "holdfast_expired_keys_total") == "1");
}

TEST_CASE("Metrics: each refusal has its reason") {
  Config config = session_config();
  config.limits.waiters_per_key = 1;
  Engine engine(config);
  TestClient a(engine), b(engine), c(engine);
  a.must({"LOCK", "k", "alice", "0"});
  b.must({"LOCK", "m", "bob", "0"});
  b.must({"LOCK", "k", "bob", "1"});               // held
  b.must({"LOCK", "k", "bob", "0", "WAIT", "0"});  // waits
  CHECK(a.ask({"LOCK", "m", "alice", "0", "WAIT", "0"}).starts_with("-DEADLOCK"));
  CHECK(c.ask({"LOCK", "k", "carol", "0", "WAIT", "0"}).starts_with("-ERR too many waiters"));
  engine.availability().refusal = "MISCONF the disk is full";
  CHECK(a.ask({"LOCK", "n", "alice", "0"}).starts_with("-MISCONF"));
  engine.availability().refusal.clear();
  engine.availability().recovering_until = session_time(10).mono;
  CHECK(a.ask({"LOCK", "n", "alice", "0"}).starts_with("-RECOVERING"));
  engine.availability().recovering_until = {};
  engine.state().config.limits.memory_bytes = 1;
  CHECK(a.ask({"LOCK", "n", "alice", "0"}).starts_with("-OOM"));
  const std::string text = metrics(engine);
  for (const char* reason : {"held", "deadlock", "waiters", "disk", "recovering", "memory"}) {
    const std::string sample = std::string("holdfast_lock_refusals_total{reason=\"") + reason + "\"}";
    CHECK(value_of_sample(text, sample) == "1");
  }
}

TEST_CASE("Metrics: waits end for a reason, and the queues are measured without a walk") {
  Engine engine(session_config());
  TestClient a(engine), b(engine), c(engine), d(engine);
  a.must({"LOCK", "k", "alice", "0"});
  b.must({"LOCK", "k", "bob", "0", "WAIT", "5"});
  c.at(session_time(2));
  c.must({"LOCK", "k", "carol", "0", "WAIT", "0"});
  d.at(session_time(2));
  d.must({"LOCK", "k", "dora", "0", "WAIT", "0"});
  std::string text = metrics(engine, MetricsFormat::kPrometheus, 4);
  CHECK(value_of_sample(text, "holdfast_waiters") == "3");
  CHECK(value_of_sample(text, "holdfast_longest_queue") == "3");
  CHECK(value_of_sample(text, "holdfast_oldest_waiter_seconds") == "0.004");
  Effects fx;
  engine.tick(session_time(5), fx);
  c.disconnect();
  a.at(session_time(6));
  a.must({"CLIENT", "UNBLOCK", "4"});
  text = metrics(engine);
  for (const char* reason : {"timeout", "disconnected", "unblocked"}) {
    const std::string sample = std::string("holdfast_lock_wait_ends_total{reason=\"") + reason + "\"}";
    CHECK(value_of_sample(text, sample) == "1");
  }
  CHECK(value_of_sample(text, "holdfast_waiters") == "0");
  CHECK(value_of_sample(text, "holdfast_longest_queue") == "0");
  CHECK(value_of_sample(text, "holdfast_oldest_waiter_seconds") == "0");
}

TEST_CASE("Metrics: a counter has its suffix in its samples; in OpenMetrics its family has none") {
  const auto write = [](MetricsWriter& w) { w.counter("holdfast_x_total", "Help.", 7); };
  CHECK(written(MetricsFormat::kPrometheus, write) ==
        "# HELP holdfast_x_total Help.\n# TYPE holdfast_x_total counter\nholdfast_x_total 7\n");
  CHECK(written(MetricsFormat::kOpenMetrics, write) ==
        "# HELP holdfast_x Help.\n# TYPE holdfast_x counter\nholdfast_x_total 7\n# EOF\n");
}

TEST_CASE("Metrics: the version is an info family in OpenMetrics, and a gauge in Prometheus") {
  const auto write = [](MetricsWriter& w) {
    w.info("x_info", "Help.");
    w.sample({{"version", "1"}}, 1);
  };
  CHECK(written(MetricsFormat::kPrometheus, write) ==
        "# HELP x_info Help.\n# TYPE x_info gauge\nx_info{version=\"1\"} 1\n");
  CHECK(written(MetricsFormat::kOpenMetrics, write) ==
        "# HELP x Help.\n# TYPE x info\nx_info{version=\"1\"} 1\n# EOF\n");
}

TEST_CASE("Metrics: label values are escaped, and are always ASCII") {
  const auto write = [](MetricsWriter& w) {
    w.gauge("x", "Help.");
    w.sample({{"code", "a\\b\"c\nd\xff\x01"}, {"other", ""}}, 2.5);
  };
  CHECK(written(MetricsFormat::kPrometheus, write) ==
        "# HELP x Help.\n# TYPE x gauge\nx{code=\"a\\\\b\\\"c\\nd??\",other=\"\"} 2.5\n");
}

TEST_CASE("Metrics: the text of an engine has no key, owner or user name") {
  Engine engine(session_config());
  TestClient a(engine);
  a.must({"LOCK", "secretkey", "secretowner", "0"});
  a.must({"ACL", "SETUSER", "secretuser"});
  for (const auto format : {MetricsFormat::kPrometheus, MetricsFormat::kOpenMetrics}) {
    CHECK(metrics(engine, format).find("secret") == std::string::npos);
  }
}

TEST_CASE("Readiness: a server without a fault passes all checks") {
  Engine engine(session_config());
  CHECK(failing(engine).empty());
  CHECK(is_ready(readiness(engine.state(), session_time(0))));
}

TEST_CASE("Readiness: each check fails for its own reason") {
  Engine engine(session_config());
  const TestClient a(engine);
  engine.availability().loading = true;
  CHECK(failing(engine) == "loading ");
  engine.availability().loading = false;
  engine.availability().recovering_until = session_time(10).mono;
  CHECK(failing(engine, 9) == "recovering ");
  CHECK(failing(engine, 10).empty());
  engine.availability().recovering_until = {};
  engine.availability().refusal = "MISCONF no disk";
  CHECK(failing(engine) == "journal ");
  engine.availability().refusal.clear();
  Config& config = engine.state().config;
  config.storage.facts = [] {
    return std::vector<std::pair<std::string, std::string>>{{"rdb_last_bgsave_status", "err"}};
  };
  CHECK(failing(engine) == "snapshot ");
  config.storage.facts = nullptr;
  config.limits.memory_bytes = 1;
  CHECK(failing(engine) == "memory ");
  config.limits.memory_bytes = 0;
  config.limits.clients = 1;
  CHECK(failing(engine) == "clients ");
  CHECK(value_of_sample(metrics(engine), R"(holdfast_ready{check="clients"})") == "0");
  CHECK(value_of_sample(metrics(engine), R"(holdfast_ready{check="memory"})") == "1");
  config.limits.clients = 2;
  CHECK(failing(engine).empty());
}

TEST_CASE("TrafficRates: the mean of the last 1.6 s, and 0 after an idle time") {
  TrafficRates rates;
  TrafficTotals totals;
  CHECK(rates.rates(totals, {0}).commands == 0);
  for (int64_t ms = 0; ms <= 5000; ms += 100) {
    REQUIRE(rates.due({ms}));
    rates.take(totals, {ms});
    CHECK_FALSE(rates.due({ms + 99}));
    totals.commands += 50;  // 500 per second
    totals.read_bytes += 1000;
  }
  CHECK(rates.rates(totals, {5100}).commands == doctest::Approx(500));
  CHECK(rates.rates(totals, {5100}).read_bytes == doctest::Approx(10000));
  CHECK(rates.rates(totals, {100000}).commands < 1);
}

}  // namespace holdfast
