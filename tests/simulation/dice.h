// Random choices from one seed, the same with every compiler and library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace holdfast::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) : source_(seed) {}

  uint64_t below(uint64_t n) { return source_() % n; }
  int64_t between(int64_t lowest, int64_t highest) {
    return lowest + static_cast<int64_t>(below(static_cast<uint64_t>(highest - lowest + 1)));
  }
  bool one_in(uint64_t n) { return below(n) == 0; }
  template <class T>
  T pick(std::initializer_list<T> of) {
    return of.begin()[below(of.size())];
  }
  template <class T>
  const T& pick(const std::vector<T>& of) {
    return of[below(of.size())];
  }

 private:
  std::mt19937_64 source_;
};

}  // namespace holdfast::simulation
