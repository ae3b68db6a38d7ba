// For runs that may fail: a process of its own for each, so that a failed assertion ends only that process.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <string_view>

#include "end_child.h"

namespace holdfast::simulation {

// Memory that a child process writes and its parent reads, even after an assertion has ended the child.
class SharedText {
 public:
  SharedText() {
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory != MAP_FAILED);
    bytes_ = static_cast<char*>(memory);
  }
  ~SharedText() { munmap(bytes_, kBytes); }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;

  void replace(std::string_view text) {
    set_size(0);
    append(text);
  }
  void append(std::string_view text) {
    const size_t at = size();
    if (at + text.size() + sizeof(size_t) > kBytes) return;
    std::memcpy(bytes_ + sizeof(size_t) + at, text.data(), text.size());
    set_size(at + text.size());
  }
  std::string_view view() const { return {bytes_ + sizeof(size_t), size()}; }

 private:
  static constexpr size_t kBytes = 64U << 20U;
  size_t size() const {
    size_t n = 0;
    std::memcpy(&n, bytes_, sizeof n);
    return n;
  }
  void set_size(size_t n) { std::memcpy(bytes_, &n, sizeof n); }
  char* bytes_ = nullptr;
};

// Whether `work` returns true in a process of its own. With `quiet` that process has no stderr.
template <class Work>
bool succeeds_apart(bool quiet, Work work) {
  std::cout.flush();
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);  // without doctest's own handler
    if (quiet) dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    const bool good = work();
    std::cout.flush();
    end_child(good ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace holdfast::simulation
