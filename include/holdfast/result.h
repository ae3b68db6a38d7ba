// What became of an attempt to take, keep or give back a lock, on the whole and on each server.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

enum class Outcome : uint8_t {
  kOk,
  kBusy,         // others hold it, or wait for it, and the call was not to wait
  kTimeout,      // the wait is over without a grant
  kExpired,      // the hold's time is over, or it was taken away: somebody else may have the lock
  kNotOwner,     // somebody else holds it
  kUnreachable,  // so few servers answered that nothing could be decided
  kDeadlock,     // the wait could never have ended: this owner would have waited for itself
  kRefused,      // a server said no for a reason of its own; the text has it
  kCancelled,    // by the caller, or as the client was destroyed
};

// In words, as in "busy".
std::string_view name_of(Outcome outcome);

// What one server answered.
struct ServerReport {
  std::string server;  // host:port, embedded or embedded:name
  Outcome outcome = Outcome::kUnreachable;
  uint64_t token = 0;  // of a grant
  std::string text;    // of an error, or why there was no answer
};

struct Result {
  Outcome outcome = Outcome::kUnreachable;
  std::string message;  // for people: what happened and what to do
  std::vector<ServerReport> servers;

  bool ok() const { return outcome == Outcome::kOk; }
  explicit operator bool() const { return ok(); }
};

}  // namespace holdfast
