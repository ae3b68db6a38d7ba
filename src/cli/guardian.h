// A tiny process that outlives us for a moment: when we end without a word, by SIGKILL say, it kills the
// command's process group. Without it the command would go on without its lock.
#pragma once

#include <sys/types.h>

namespace holdfast {

class Guardian {
 public:
  Guardian();  // nobody is guarded yet
  ~Guardian() { dismiss(); }
  Guardian(const Guardian&) = delete;
  Guardian& operator=(const Guardian&) = delete;

  // Before the first process of the group does anything: who dies in between has left nothing behind.
  void guard(pid_t group) const;
  // While the group's first process has not been waited for: later its number may belong to others.
  void dismiss();

 private:
  pid_t pid_ = -1;
  int pipe_ = -1;  // the writing end; that it closes is how the guardian sees our end
};

}  // namespace holdfast
