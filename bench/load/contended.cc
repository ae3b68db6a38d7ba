// Measures many clients with one lock: the idle time of the lock between two holds, and the share of each
// client.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "load/load.h"

namespace holdfast::bench {

namespace {

struct Run {
  uv_loop_t* loop;
  const Options& options;
  bool warm = false;
  bool held = false;
  uint64_t released_ns = 0;  // when the last release was sent
  Histogram gaps{};
  Histogram pings{};
  std::vector<uint64_t> shares{};  // of each client
};

bool is_null(std::string_view reply) { return reply.starts_with("$-1") || reply.starts_with("*-1"); }

class Client : public Connection::User {
 public:
  Client(Run& run, uint64_t number)
      : run_(run), number_(number), connection_(run.loop, run.options.address, *this) {
    uv_timer_init(run.loop, &timer_);
    timer_.data = this;
  }

  void begin() { ask(); }

  void on_reply(std::string_view reply) override {
    const Options& options = run_.options;
    if (releasing_) {
      options.cycle[1].check(reply);
      releasing_ = false;
      return ask();
    }
    if (options.retry_ms > 0 && is_null(reply)) {
      uv_timer_start(
          &timer_, [](uv_timer_t* t) { static_cast<Client*>(t->data)->ask(); }, options.retry_ms, 0);
      return;
    }
    options.cycle[0].check(reply);
    take();
  }

 private:
  void ask() { send(run_.options.cycle[0]); }

  void take() {
    if (run_.held) fail("two clients hold the lock at the same time");
    run_.held = true;
    if (run_.warm) {
      run_.gaps.record(uv_hrtime() - run_.released_ns);
      ++run_.shares[number_];
    }
    if (run_.options.hold_ms == 0) return release();
    uv_timer_start(
        &timer_, [](uv_timer_t* t) { static_cast<Client*>(t->data)->release(); }, run_.options.hold_ms, 0);
  }

  void release() {
    run_.held = false;
    run_.released_ns = uv_hrtime();
    releasing_ = true;
    send(run_.options.cycle[1]);
  }

  void send(const Request& request) {
    bytes_.clear();
    request.append_to(bytes_, {0, number_, 0});
    connection_.send(bytes_);
  }

  Run& run_;
  uint64_t number_;
  std::string bytes_;
  bool releasing_ = false;
  uv_timer_t timer_;
  Connection connection_;
};

// Measures the latency of PING under the same load.
class Pinger : public Connection::User {
 public:
  explicit Pinger(Run& run) : run_(run), connection_(run.loop, run.options.address, *this) {}
  void begin() { send(); }
  void on_reply(std::string_view) override {
    if (run_.warm) run_.pings.record(uv_hrtime() - sent_ns_);
    send();
  }

 private:
  void send() {
    sent_ns_ = uv_hrtime();
    connection_.send("*1\r\n$4\r\nPING\r\n");
  }

  Run& run_;
  uint64_t sent_ns_ = 0;
  Connection connection_;
};

void print(const Run& run, double seconds) {
  const auto [least, most] = std::minmax_element(run.shares.begin(), run.shares.end());
  fmt::print(R"({{"rate": {:.0f}, "least": {}, "most": {}, "gaps": {}, "pings": {}}})"
             "\n",
             static_cast<double>(run.gaps.count()) / seconds, *least, *most, times_json(run.gaps),
             times_json(run.pings));
}

}  // namespace

void run_contended(uv_loop_t* loop, const Options& options) {
  if (options.cycle.size() != 2)
    fail("needs two requests: one that takes the lock, one that gives it back");
  Run run{loop, options};
  run.shares.resize(options.connections);
  std::vector<std::unique_ptr<Client>> clients;
  for (uint64_t i = 0; i < options.connections; ++i) clients.push_back(std::make_unique<Client>(run, i));
  Pinger pinger(run);
  for (const auto& client : clients) client->begin();
  if (!options.no_pings) pinger.begin();
  uv_timer_t timer;
  uv_timer_init(loop, &timer);
  timer.data = &run;
  const auto begin = [](uv_timer_t* t) {
    auto* r = static_cast<Run*>(t->data);
    r->warm = true;
    uv_timer_start(
        t, [](uv_timer_t* e) { uv_stop(e->loop); }, static_cast<uint64_t>(r->options.seconds * 1000), 0);
  };
  uv_timer_start(&timer, begin, static_cast<uint64_t>(options.warmup_seconds * 1000), 0);
  uv_run(loop, UV_RUN_DEFAULT);
  print(run, options.seconds);
}

}  // namespace holdfast::bench
