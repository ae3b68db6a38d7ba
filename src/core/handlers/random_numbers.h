// Random numbers for one request, from one draw of the shell's random source, and the count of random
// members. Evenly distributed, and not for secrets: a client that sees some of them may learn others.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/base/parse.h"
#include "core/state/request.h"

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

// Reads the count of SRANDMEMBER or ZRANDMEMBER, which may be negated. Returns nullopt after an error
// reply.
inline std::optional<int64_t> read_random_count(Request& r, size_t i) {
  const auto count = parse_int(r.arg(i));
  if (!count) {
    reply_not_an_integer(r);
  } else if (*count == INT64_MIN) {
    r.reply.error(
        "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807");
    return std::nullopt;
  }
  return count;
}

}  // namespace holdfast
