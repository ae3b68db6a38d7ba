// Measures stalls: the latency of requests at a fixed rate.
#include <fmt/format.h>
#include <sched.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <memory>

#include "load/load.h"

namespace holdfast::bench {

namespace {

class Prober : public Connection::User {
 public:
  Prober(uv_loop_t* loop, const Options& options)
      : options_(options), random_(options.keys), connection_(loop, options.address, *this) {
    uv_poll_init(loop, &poll_, timer_);
    poll_.data = this;
  }
  ~Prober() override { close(timer_); }
  Prober(const Prober&) = delete;
  Prober& operator=(const Prober&) = delete;

  const Histogram& times() const { return times_; }

  void begin() {
    const uint64_t step_ns = 1000000000 / options_.rate;
    const timespec step{static_cast<time_t>(step_ns / 1000000000), static_cast<long>(step_ns % 1000000000)};
    const itimerspec times{step, step};
    timerfd_settime(timer_, 0, &times, nullptr);
    next_due_ns_ = uv_hrtime() + step_ns;
    uv_poll_start(&poll_, UV_READABLE,
                  [](uv_poll_t* poll, int, int) { static_cast<Prober*>(poll->data)->send_due(); });
  }

  void on_reply(std::string_view reply) override {
    options_.cycle[answered_++ % options_.cycle.size()].check(reply);
    times_.record(uv_hrtime() - oldest_due_ns_);
    oldest_due_ns_ += 1000000000 / options_.rate;
  }

 private:
  void send_due() {
    uint64_t ticks = 0;
    if (read(timer_, &ticks, sizeof ticks) != sizeof ticks) return;
    if (oldest_due_ns_ == 0) oldest_due_ns_ = next_due_ns_;
    bytes_.clear();
    for (; ticks > 0; --ticks, ++sent_) {
      const size_t at = sent_ % options_.cycle.size();
      if (at == 0) numbers_.key = options_.in_order ? sent_ : random_.below(options_.keys);
      options_.cycle[at].append_to(bytes_, numbers_);
    }
    connection_.send(bytes_);
  }

  const Options& options_;
  Random random_;
  int timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  uv_poll_t poll_;
  Numbers numbers_;
  std::string bytes_;
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
  uint64_t next_due_ns_ = 0;
  uint64_t oldest_due_ns_ = 0;  // due time of the oldest unanswered request
  Histogram times_;
  Connection connection_;
};

}  // namespace

void run_open(uv_loop_t* loop, const Options& options) {
  // Real-time priority, so that it measures the server and not its own wait for a core. Without the
  // permission it runs at normal priority.
  const sched_param first{.sched_priority = 10};
  sched_setscheduler(0, SCHED_FIFO, &first);
  Prober prober(loop, options);
  prober.begin();
  uv_timer_t timer;
  uv_timer_init(loop, &timer);
  uv_timer_start(
      &timer, [](uv_timer_t* t) { uv_stop(t->loop); }, static_cast<uint64_t>(options.seconds * 1000), 0);
  uv_signal_t signal;
  uv_signal_init(loop, &signal);
  uv_signal_start(
      &signal, [](uv_signal_t* s, int) { uv_stop(s->loop); }, SIGTERM);
  uv_run(loop, UV_RUN_DEFAULT);
  fmt::print("{}\n", times_json(prober.times()));
}

}  // namespace holdfast::bench
