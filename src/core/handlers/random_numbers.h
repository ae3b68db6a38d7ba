// Random numbers for one request, from one draw of the shell's random source. Evenly distributed, and not
// for secrets: a client that sees some of them may learn others.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/base/config.h"
#include "core/base/hash.h"

namespace holdfast {

class RandomNumbers {
 public:
  explicit RandomNumbers(const Config& config) {
    uint8_t bytes[sizeof seed_];
    config.random(bytes);
    std::memcpy(&seed_, bytes, sizeof seed_);
  }

  uint64_t next() {
    char count[sizeof count_];
    ++count_;
    std::memcpy(count, &count_, sizeof count);
    return hash_bytes({count, sizeof count}, seed_);
  }

 private:
  uint64_t seed_ = 0;
  uint64_t count_ = 0;
};

}  // namespace holdfast
