// The parts of a Loop, for code that adds handles of libuv to it.
#pragma once

#include <uv.h>

#include <array>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "client/transport/transport.h"

namespace holdfast::client {

struct Loop::Core {
  Core() = default;
  explicit Core(uv_loop_t& outside) : uv(outside), thread_id(std::this_thread::get_id()) {}

  uv_loop_t own{};
  uv_loop_t& uv = own;
  uv_async_t wake{};
  std::atomic<std::thread::id> thread_id;
  std::thread thread;
  std::array<char, size_t{64} << 10> read_buffer;  // valid during the callback of a read

  std::mutex mutex;  // guards the next two
  std::vector<std::function<void()>> posted;
  bool awake = true;  // `wake` is not closed

  void run() noexcept;
  bool run_posted();  // returns false if there was no work
  int open_wake();    // returns an error of libuv
  void close_wake();
};

}  // namespace holdfast::client
