// A request with placeholders for a key, an owner and a deadline, which are numbers of a fixed width. It is
// made once, and each use rewrites only these numbers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::bench {

// The values of {key}, 35 bytes; {owner}, 40 bytes; and {deadline}, milliseconds of the wall clock.
struct Numbers {
  uint64_t key = 0;
  uint64_t owner = 0;
  uint64_t deadline_ms = 0;
};

class Request {
 public:
  // `words`: separated by blanks. `expected`: the required begin of the reply.
  Request(std::string_view words, std::string expected);

  void append_to(std::string& out, const Numbers& numbers) const;
  // Ends the program if the reply does not begin with `expected`.
  void check(std::string_view reply) const;

 private:
  struct Place {
    size_t at;  // of the last digit
    size_t digits;
    uint64_t Numbers::*number;
  };
  void add_word(std::string_view word);

  std::string bytes_;
  std::vector<Place> places_;
  std::string words_;
  std::string expected_;
};

// A random generator with the same numbers for the same seed (xorshift64*).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15U + 1) {}
  uint64_t below(uint64_t n) {
    state_ ^= state_ >> 12U;
    state_ ^= state_ << 25U;
    state_ ^= state_ >> 27U;
    return (state_ * 0x2545F4914F6CDD1DU >> 32U) * n >> 32U;
  }

 private:
  uint64_t state_;
};

}  // namespace holdfast::bench
