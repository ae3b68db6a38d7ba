// A second stack on which one task runs, and can be put off in the middle to go on later: what a script
// needs that takes too long, since Lua cannot give way by itself wherever it is. Boost.Context.
#pragma once

#include <functional>
#include <memory>

namespace holdfast {

class Fiber {
 public:
  // No exception may leave the task.
  explicit Fiber(std::function<void()> task);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // A task must not be under way.
  ~Fiber();

  // Runs the task until it ends or calls pause(); true: it has ended. It must not be under way.
  bool start();
  // Lets the task go on after it called pause(), in the same way.
  bool resume();
  bool under_way() const;

  // For the task: back to whoever started or resumed it, until resume().
  void pause();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
