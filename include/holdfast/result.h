// The result of a request to acquire, renew or release a lock: the overall outcome and that of each server.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

enum class Outcome : uint8_t {
  kOk,
  kBusy,         // other clients hold the lock or wait for it, and the call did not wait
  kTimeout,      // the wait ended without a grant
  kExpired,      // the TTL is over, or LOCKS BREAK ended the hold: another client may hold the lock
  kNotOwner,     // another owner holds the lock
  kUnreachable,  // too few servers answered to decide the request
  kDeadlock,     // the wait could never end: this owner would wait for itself
  kRefused,      // a server rejected the request; the text has its reason
  kCancelled,    // the caller cancelled the request, or the client was destroyed
};

// Returns the outcome in words, as in "busy" or "not owner".
std::string_view name_of(Outcome outcome);

// The answer of one server.
struct ServerReport {
  std::string server;  // host:port, embedded or embedded:name
  Outcome outcome = Outcome::kUnreachable;
  uint64_t token = 0;  // the fencing token of a grant; 0: none
  std::string text;    // the text of an error, or the reason why there was no answer
};

// The outcome of a request, and the answer of each server that has the key. Plain data.
struct Result {
  Outcome outcome = Outcome::kUnreachable;
  std::string message;  // for people: the cause and the remedy
  std::vector<ServerReport> servers;

  bool ok() const { return outcome == Outcome::kOk; }
  explicit operator bool() const { return ok(); }
};

}  // namespace holdfast
