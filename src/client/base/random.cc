// Random bytes from getrandom(2).
#include "client/base/random.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace holdfast::client {

void fill_random(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = getrandom(bytes.data(), bytes.size(), 0);
    if (n < 0 && errno != EINTR) throw std::runtime_error("the system returned no random numbers");
    if (n > 0) bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

uint64_t random_below(uint64_t n) {
  thread_local std::array<uint64_t, 32> numbers;
  thread_local size_t left = 0;
  if (left == 0) {
    fill_random({reinterpret_cast<uint8_t*>(numbers.data()), sizeof numbers});
    left = numbers.size();
  }
  return numbers[--left] % n;
}

}  // namespace holdfast::client
