// Random choices from one seed, the same with every compiler and library.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace holdfast::simulation {

// A source that is made in no time, for choices that have a seed each (splitmix64).
class QuickSource {
 public:
  explicit QuickSource(uint64_t seed) : state_(seed) {}
  uint64_t operator()() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111eb;
    return z ^ (z >> 31U);
  }

 private:
  uint64_t state_;
};

template <class Source>
class DiceOf {
 public:
  explicit DiceOf(uint64_t seed) : source_(seed) {}

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
  Source source_;
};

using Dice = DiceOf<std::mt19937_64>;
using QuickDice = DiceOf<QuickSource>;

}  // namespace holdfast::simulation
