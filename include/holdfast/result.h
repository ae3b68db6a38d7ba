// What each request returns: a Status, or a Result, which is a Status with a value. Locks and leases have
// the same ones. No request of this library reports a failure by an exception. A program that prefers
// exceptions calls value().
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/error.h"

namespace holdfast {

// The answer of one server.
struct ServerReport {
  std::string server;  // host:port, embedded or embedded:name
  Outcome outcome = Outcome::kUnreachable;
  uint64_t token = 0;                      // the fencing token of a grant; 0: none
  std::string text;                        // the text of an error, or the reason why there was no answer
  ServerError error = ServerError::kNone;  // the code of that error
};

// The outcome of a request, and the answer of each server that has the key. Plain data.
struct [[nodiscard]] Status {
  Outcome outcome = Outcome::kUnreachable;
  std::string message;  // for people: the cause and the remedy
  std::vector<ServerReport> servers = {};
  std::vector<std::string> keys = {};  // kBusy of a lease: all keys that are not free
  // The exception of a LeaseStore of the program. If the request did not fail because of the store, this is
  // the reason why documents remain there; they expire with their TTL.
  std::exception_ptr cause = {};

  bool ok() const { return outcome == Outcome::kOk; }
  explicit operator bool() const { return ok(); }
};

// The exception of value(), and of the functions of Mutex that cannot return a Status.
class Error : public std::runtime_error {
 public:
  explicit Error(Status status);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// Throws Error. Not in line, so that each access to a value is small.
[[noreturn]] void throw_error(const Status& status);

// The status of a request, with a value if the outcome is kOk.
template <class T>
class [[nodiscard]] Result : public Status {
 public:
  // `failure` must not be kOk.
  Result(Status failure) : Status(std::move(failure)) {}
  Result(Status success, T value) : Status(std::move(success)), value_(std::move(value)) {}

  bool has_value() const { return value_.has_value(); }
  // Throw Error if there is no value.
  T& value() & { return checked(), *value_; }
  const T& value() const& { return checked(), *value_; }
  T&& value() && { return checked(), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void checked() const {
    if (!value_) throw_error(*this);
  }

  std::optional<T> value_;
};

}  // namespace holdfast
