// The time of a simulated world in microseconds, and what happens at which time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace holdfast::simulation::ticket {

class Events {
 public:
  using Action = std::function<void()>;

  int64_t now_us() const { return now_us_; }
  // Runs the action at that time, or now if that is past. Actions of one time run in the order of the
  // calls.
  void at(int64_t us, Action action) { queue_.push({std::max(us, now_us_), ++last_, std::move(action)}); }
  void after(int64_t us, Action action) { at(now_us_ + us, std::move(action)); }
  // Runs the actions up to this time.
  void run_until(int64_t us) {
    while (!queue_.empty() && queue_.top().us <= us) {
      Event event = std::move(const_cast<Event&>(queue_.top()));
      queue_.pop();
      now_us_ = event.us;
      event.action();
    }
    now_us_ = us;
  }

 private:
  struct Event {
    int64_t us = 0;
    uint64_t number = 0;
    Action action;
    bool operator<(const Event& other) const {
      return us != other.us ? us > other.us : number > other.number;  // the earliest one on top
    }
  };
  std::priority_queue<Event> queue_;
  int64_t now_us_ = 0;
  uint64_t last_ = 0;
};

}  // namespace holdfast::simulation::ticket
