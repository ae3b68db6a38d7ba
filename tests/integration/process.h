// A child process under test: starts with given arguments and limits, captures its output, and waits a
// limited time for its end. Independent of servers and protocols.
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

// The timeout after which a test fails as hung. No test checks speed, so this is far more than a loaded
// machine with sanitizers needs.
inline constexpr std::chrono::seconds kPatience{60};

// The milliseconds until the deadline, for poll(); never negative.
int left_ms(Clock::time_point deadline);

// Calls condition() repeatedly until it is true. Throws std::runtime_error after kPatience. For conditions
// that send requests to the server: its replies limit the rate of the calls.
template <typename Condition>
void until(std::string_view what, Condition condition) {
  const Clock::time_point deadline = Clock::now() + kPatience;
  while (!condition()) {
    if (Clock::now() > deadline)
      throw std::runtime_error("condition not true in time: " + std::string(what));
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

// Reads a pipe to its end in its own thread, so that the writer never blocks.
class Capture {
 public:
  explicit Capture(Fd fd);
  ~Capture();

  std::string text() const;
  // Waits for `part`. Returns false if the pipe ends or kPatience is over before.
  bool wait_for(std::string_view part) const;
  // Waits for the end of the pipe, and returns the whole text.
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
  std::vector<std::string> args;      // after the program's name
  std::vector<std::string> env = {};  // NAME=value, added to or replacing variables of this environment
  rlim_t max_files = 0;               // soft and hard limit of open files; 0: unchanged
  bool weak = false;                  // without root's privileges: low ports, any file, more files
};

// The environment of a process that loads the shared library before all others.
std::vector<std::string> preloaded(const std::string& library);

class Process {
 public:
  // Throws std::runtime_error if it cannot start the process. The process ends with the thread that made
  // it.
  Process(const std::string& program, const Launch& launch);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  // Kills the process if it still runs.
  ~Process();

  pid_t pid() const { return pid_; }
  const Capture& out() const { return *out_; }
  const Capture& err() const { return *err_; }

  void signal(int number) const;
  // The state in /proc: 'T' is stopped, 'Z' has ended.
  char state() const;
  // Waits for the end and returns the exit status, or 128 plus the signal's number, as a shell does. Kills
  // the process if it does not end within kPatience.
  int wait();

 private:
  pid_t pid_ = -1;
  bool running_ = false;
  int status_ = -1;
  std::unique_ptr<Capture> out_;
  std::unique_ptr<Capture> err_;
};

}  // namespace holdfast::integration
