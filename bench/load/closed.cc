// Measures the throughput: sends as many requests as the server answers.
#include <fmt/format.h>

#include <memory>

#include "load/load.h"

namespace holdfast::bench {

namespace {

struct Run {
  uv_loop_t* loop;
  const Options& options;
  uint64_t next_key = 0;  // with keys in order
  uint64_t sent = 0;
  uint64_t answered = 0;
  uint64_t counted_from = 0;  // replies before the end of the warm-up
  uint64_t began_ns = 0;
  uint64_t ended_ns = 0;
  uint64_t open = 0;  // open connections
  bool over = false;
  bool warm = false;
  Histogram times{};
};

// Connection n uses the keys with key % connections == n. A key's server is the key modulo the size of the
// ring, and the number of connections is a multiple of that size.
Address server_of(const Options& options, uint64_t number) {
  Address address = options.address;
  if (!options.ring.empty()) address.socket = options.ring[number % options.ring.size()];
  return address;
}

class Client : public Connection::User {
 public:
  Client(Run& run, uint64_t number)
      : run_(run),
        number_(number),
        random_(number + 1),
        connection_(run.loop, server_of(run.options, number), *this) {
    numbers_.owner = number;
  }

  void begin() { send_batch(); }

  void on_reply(std::string_view reply) override {
    const Options& options = run_.options;
    options.cycle[expected_].check(reply);
    if (++expected_ == options.cycle.size()) expected_ = 0;
    ++run_.answered;
    if (--missing_ > 0) return;
    if (run_.warm) run_.times.record(uv_hrtime() - sent_ns_);
    send_batch();
  }

 private:
  void send_batch() {
    const Options& options = run_.options;
    if (run_.over || (options.requests > 0 && run_.sent >= options.requests)) return finish();
    batch_.clear();
    for (uint64_t i = 0; i < options.pipeline; ++i) {
      if (next_ == 0) take_key();
      options.cycle[next_].append_to(batch_, numbers_);
      if (++next_ == options.cycle.size()) next_ = 0;
    }
    missing_ = options.pipeline;
    run_.sent += options.pipeline;
    sent_ns_ = uv_hrtime();
    connection_.send(batch_);
  }

  // Chooses the next key. No two connections use the same key. With keys in order each key is used once.
  void take_key() {
    const Options& options = run_.options;
    if (options.in_order) {
      numbers_.key = run_.next_key++;
    } else {
      numbers_.key = random_.below(options.keys / options.connections) * options.connections + number_;
    }
    numbers_.key += options.first_key;
    numbers_.deadline_ms = options.deadline_ms + numbers_.key % options.spread_ms;
  }

  void finish() {
    connection_.close();
    if (--run_.open == 0) {
      run_.ended_ns = uv_hrtime();
      uv_stop(run_.loop);
    }
  }

  Run& run_;
  uint64_t number_;
  Random random_;
  Numbers numbers_;
  std::string batch_;
  uint64_t missing_ = 0;
  size_t next_ = 0;      // index in the cycle of the next request to send
  size_t expected_ = 0;  // index in the cycle of the next reply
  uint64_t sent_ns_ = 0;
  Connection connection_;
};

}  // namespace

void run_closed(uv_loop_t* loop, const Options& options) {
  Run run{loop, options};
  run.open = options.connections;
  std::vector<std::unique_ptr<Client>> clients;
  for (uint64_t i = 0; i < options.connections; ++i) clients.push_back(std::make_unique<Client>(run, i));
  for (const auto& client : clients) client->begin();
  uv_timer_t timer;
  uv_timer_init(loop, &timer);
  timer.data = &run;
  static const auto end = [](uv_timer_t* t) { static_cast<Run*>(t->data)->over = true; };
  const auto begin = [](uv_timer_t* t) {
    auto* r = static_cast<Run*>(t->data);
    r->warm = true;
    r->began_ns = uv_hrtime();
    r->counted_from = r->answered;
    if (r->options.requests == 0)
      uv_timer_start(t, end, static_cast<uint64_t>(r->options.seconds * 1000), 0);
  };
  const double warmup_s = options.requests > 0 ? 0 : options.warmup_seconds;
  uv_timer_start(&timer, begin, static_cast<uint64_t>(warmup_s * 1000), 0);
  uv_run(loop, UV_RUN_DEFAULT);
  if (run.open > 0) fail("connections are missing at the end");
  const double seconds = static_cast<double>(run.ended_ns - run.began_ns) / 1e9;
  const uint64_t counted = run.answered - run.counted_from;
  fmt::print(R"({{"requests": {}, "seconds": {:.3f}, "rate": {:.0f}, "times": {}}})"
             "\n",
             counted, seconds, static_cast<double>(counted) / seconds, times_json(run.times));
  uv_close(reinterpret_cast<uv_handle_t*>(&timer), nullptr);
  uv_run(loop, UV_RUN_DEFAULT);
}

}  // namespace holdfast::bench
