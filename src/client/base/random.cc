// Random bytes from getrandom(2).
#include "client/base/random.h"

#include <sys/random.h>

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

}  // namespace holdfast::client
