// A child process under test: started with given arguments and limits, its output caught, its end awaited
// for a bounded time. Knows nothing of servers and protocols.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace holdfast::integration {

using Clock = std::chrono::steady_clock;

// How long anything may take before a test calls it hung. Nothing here asserts speed, so this is far more
// than a loaded machine with sanitizers needs.
inline constexpr std::chrono::seconds kPatience{60};

// Milliseconds left until then, for poll(); never negative.
int left_ms(Clock::time_point deadline);

// Asks again and again until the answer is true; throws std::runtime_error after kPatience. For conditions
// that talk to the server, whose answers set the pace.
template <typename Condition>
void until(std::string_view what, Condition condition) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline) throw std::runtime_error("never happened: " + std::string(what));
  }
}

// Owns a file descriptor.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { close(); }

  int get() const { return fd_; }
  int release();
  void close();

 private:
  int fd_;
};

// Reads a pipe to its end in a thread of its own, so that whoever writes never blocks.
class Capture {
 public:
  explicit Capture(Fd fd);
  ~Capture();

  std::string text() const;
  // Whether `part` came before the pipe ended or kPatience was over.
  bool wait_for(std::string_view part) const;
  // Everything, once the pipe has ended.
  std::string whole() const;

 private:
  void run();

  Fd fd_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::string text_;
  bool ended_ = false;
  std::thread thread_;
};

struct Launch {
  std::vector<std::string> args;  // behind the program's name
  std::vector<std::string> env =
      {};                // NAME=value, beside or instead of what stands in the environment here
  rlim_t max_files = 0;  // soft and hard limit of open files; 0: as it is here
  bool weak = false;     // without what root may do beyond others: low ports, any file, more files
};

class Process {
 public:
  // Throws std::runtime_error if the process cannot be made. It never outlives the thread that made it.
  Process(const std::string& program, const Launch& launch);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Kills it if it still runs.
  ~Process();

  pid_t pid() const { return pid_; }
  const Capture& out() const { return *out_; }
  const Capture& err() const { return *err_; }

  void signal(int number) const;
  // As /proc has it: 'T' stands still, 'Z' has ended.
  char state() const;
  // Waits for its end and returns its exit status, or 128 and the signal's number, as a shell does. One
  // that does not end within kPatience is killed.
  int wait();

 private:
  pid_t pid_ = -1;
  bool running_ = false;
  int status_ = -1;
  std::unique_ptr<Capture> out_;
  std::unique_ptr<Capture> err_;
};

}  // namespace holdfast::integration
