// Tasks on fibers. A mutex that another task holds pauses the task that wants it: the linker passes
// pthread_mutex_lock() of all objects to the function below.
#include "scheduler.h"

#include <pthread.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <limits>
#include <utility>

namespace holdfast::simulation {
namespace {

Scheduler* present = nullptr;

}  // namespace

Scheduler::Scheduler() {
  assert(present == nullptr);
  present = this;
}

Scheduler::~Scheduler() {
  assert(tasks_.empty());
  present = nullptr;
}

Scheduler& Scheduler::get() {
  assert(present != nullptr);
  return *present;
}

uint64_t Scheduler::start(std::function<void()> body, int64_t at_us) {
  if (spare_.empty()) {
    spare_.push_back(std::make_unique<Task>());
    Task* task = spare_.back().get();
    task->fiber = std::make_unique<Fiber>([task] { task->body(); });
  }
  tasks_.push_back(std::move(spare_.back()));
  spare_.pop_back();
  Task& task = *tasks_.back();
  task.number = ++last_number_;
  task.at_us = std::max(at_us, now_us_);
  task.turn = ++last_turn_;
  task.body = std::move(body);
  return task.number;
}

void Scheduler::wake(uint64_t number) {
  for (const auto& task : tasks_) {
    if (task->number != number || task->at_us <= now_us_) continue;
    task->at_us = now_us_;
    task->turn = ++last_turn_;
  }
}

void Scheduler::pause_until(int64_t at_us) {
  assert(running_ != nullptr);
  Task& task = *running_;
  task.at_us = std::max(at_us, now_us_);
  task.turn = ++last_turn_;
  task.fiber->pause();
}

void Scheduler::pause_behind_others() {
  assert(running_ != nullptr && tasks_.size() > 1 && "a task waits, and no other can end that");
  int64_t next_us = std::numeric_limits<int64_t>::max();
  for (const auto& task : tasks_) {
    if (task.get() != running_) next_us = std::min(next_us, task->at_us);
  }
  pause_until(next_us);
}

Scheduler::Task* Scheduler::first() const {
  const auto before = [](const auto& a, const auto& b) {
    return std::pair(a->at_us, a->turn) < std::pair(b->at_us, b->turn);
  };
  const auto found = std::min_element(tasks_.begin(), tasks_.end(), before);
  return found == tasks_.end() ? nullptr : found->get();
}

void Scheduler::run(Task& task) {
  running_ = &task;
  const bool ended = task.fiber->under_way() ? task.fiber->resume() : task.fiber->start();
  running_ = nullptr;
  if (!ended) return;
  task.body = nullptr;
  const auto at =
      std::find_if(tasks_.begin(), tasks_.end(), [&](const auto& t) { return t.get() == &task; });
  spare_.push_back(std::move(*at));
  tasks_.erase(at);
}

void Scheduler::run_until(int64_t at_us) {
  while (!halted_) {
    Task* task = first();
    if (task == nullptr || task->at_us > at_us) {
      now_us_ = std::max(now_us_, at_us);
      return;
    }
    now_us_ = std::max(now_us_, task->at_us);
    run(*task);
  }
}

bool Scheduler::take_halt() { return std::exchange(halted_, false); }

void Scheduler::drain() {
  while (!tasks_.empty()) {
    for (size_t i = tasks_.size(); i > 0; --i) {
      if (i <= tasks_.size()) run(*tasks_[i - 1]);
    }
  }
  halted_ = false;
}

}  // namespace holdfast::simulation

extern "C" int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex);
extern "C" int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  while (true) {
    const int error = pthread_mutex_trylock(mutex);
    if (error != EBUSY) return error;
    holdfast::simulation::Scheduler::get().pause_behind_others();
  }
}
