// A value, or one line that says why there is none: the error type of the code outside the core.
#pragma once

#include <string>
#include <utility>
#include <variant>

// The library for programs has a Result of its own, and one program may link both. So this one is in a
// namespace within the namespace.
namespace holdfast {
inline namespace shell {

// One line for a person: what failed, and what to do about it. No newline.
struct Failure {
  std::string why;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : held_(std::in_place_index<0>, std::move(value)) {}
  Result(Failure failure) : held_(std::in_place_index<1>, std::move(failure)) {}

  explicit operator bool() const { return held_.index() == 0; }
  T& operator*() { return std::get<0>(held_); }
  T* operator->() { return &std::get<0>(held_); }
  const std::string& error() const { return std::get<1>(held_).why; }

 private:
  std::variant<T, Failure> held_;
};

// Success without a value.
struct Done {};

}  // namespace shell
}  // namespace holdfast
