// A second stack on which one task runs. The task can be suspended at any point and resumed later. Scripts
// that run too long need this, since Lua cannot yield from every place. Uses Boost.Context.
#pragma once

#include <functional>
#include <memory>

namespace holdfast {

class Fiber {
 public:
  // The task must not throw.
  explicit Fiber(std::function<void()> task);
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  // The task must not be under way.
  ~Fiber();

  // Runs the task until it ends or calls pause(). Returns whether it has ended. It must not be under way.
  bool start();
  // Resumes the task after pause(). Returns like start().
  bool resume();
  bool under_way() const;

  // Called by the task: returns to the caller of start() or resume(), until the next resume().
  void pause();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
