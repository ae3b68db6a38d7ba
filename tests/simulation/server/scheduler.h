// The tasks of a simulated machine: the server's loop and the jobs of its thread pool. Each runs on a stack
// of its own, and pauses wherever the real one may be delayed: at each operation on the disk, and where the
// loop sleeps. Time passes only between pauses. One scheduler exists at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/fiber.h"

namespace holdfast::simulation {

class Scheduler {
 public:
  Scheduler();
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;
  // The scheduler that exists now.
  static Scheduler& get();

  int64_t now_us() const { return now_us_; }
  // For work that takes time without a pause.
  void spend(int64_t us) { now_us_ += us; }

  // Begins a task that first runs at this moment. Returns its number.
  uint64_t start(std::function<void()> body, int64_t at_us);
  // Lets a paused task continue now.
  void wake(uint64_t task);

  // Called by a task: lets the other tasks run until this moment.
  void pause_until(int64_t at_us);
  // Called by a task that waits for another: lets at least one other task run.
  void pause_behind_others();
  uint64_t running() const { return running_ == nullptr ? 0 : running_->number; }

  // Runs tasks until this moment, or until a task calls halt().
  void run_until(int64_t at_us);
  void halt() { halted_ = true; }
  bool take_halt();
  // Runs all tasks to their end; time does not pass.
  void drain();
  bool idle() const { return tasks_.empty(); }

 private:
  struct Task {
    uint64_t number = 0;
    int64_t at_us = 0;
    uint64_t turn = 0;  // of tasks for the same moment the one with the smallest turn runs first
    std::function<void()> body;
    std::unique_ptr<Fiber> fiber;
  };
  Task* first() const;
  void run(Task& task);

  int64_t now_us_ = 0;
  uint64_t last_number_ = 0;
  uint64_t last_turn_ = 0;
  bool halted_ = false;
  Task* running_ = nullptr;
  std::vector<std::unique_ptr<Task>> tasks_;
  std::vector<std::unique_ptr<Task>> spare_;  // ended tasks, whose stacks are used again
};

}  // namespace holdfast::simulation
