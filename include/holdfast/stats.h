// Figures about the work of a Client: counters for Client::stats(), events for ClientOptions::on_event.
// Plain data.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/result.h"

namespace holdfast {

using std::chrono::microseconds;

// Why a client lost a lock that it held.
enum class LossReason : uint8_t {
  kNone,         // no loss
  kGone,         // servers answered that they do not have the hold: LOCKS BREAK, DEL, or lost data
  kUnreachable,  // renewals got too few answers until the validity ended
  kRefused,      // servers rejected the renewals until the validity ended
  kExpired,  // the validity ended and no renewal had failed: renewals are off, or the process was stopped
};

// Returns the reason in words, as in "gone" or "unreachable".
std::string_view name_of(LossReason reason);

// A number of durations, their sum and the longest.
struct Durations {
  uint64_t count = 0;
  microseconds total{0};
  microseconds longest{0};

  void add(microseconds duration) {
    ++count;
    total += duration;
    longest = std::max(longest, duration);
  }
  microseconds mean() const { return count == 0 ? microseconds(0) : total / static_cast<int64_t>(count); }
};

// The losses by their reason: see LossReason.
struct Losses {
  uint64_t gone = 0;
  uint64_t unreachable = 0;
  uint64_t refused = 0;
  uint64_t expired = 0;

  uint64_t total() const { return gone + unreachable + refused + expired; }
};

// One server, as the address of the client names it. A Redis Cluster counts as one server.
struct ServerStats {
  std::string server;        // host:port, embedded or embedded:name
  uint64_t requests = 0;     // requests of locks and leases that have ended, with an answer or without one
  uint64_t failures = 0;     // of these, requests without an answer: a timeout, or a broken connection
  uint64_t connections = 0;  // connections that opened; each wait in a server's queue has its own
  uint64_t reconnections = 0;  // connections that opened after another one broke or could not be opened
  Durations round_trips;       // of the requests with an answer, without requests that wait in a queue
};

// Counters since the client was made. They never decrease.
struct ClientStats {
  uint64_t acquisitions = 0;     // calls to acquire a lock that have ended, with a grant or without one
  uint64_t attempts = 0;         // attempts of these and of present calls: 1 or more for each call
  uint64_t grants = 0;           // acquisitions that ended with the lock
  uint64_t renewals = 0;         // renewals that succeeded, also by Hold::extend()
  uint64_t failed_renewals = 0;  // renewals that too few servers confirmed
  Durations waits;               // acquisitions that did not end with their first attempt, granted or not
  Durations holds;               // from the grant to the release or the loss; without leave()
  Losses losses;
  std::vector<ServerStats> servers;  // in the order of the address
};

// One event. The texts are valid during the call of ClientOptions::on_event.
struct ClientEvent {
  enum class Kind : uint8_t {
    kGranted,         // key, token, duration since the call
    kNotGranted,      // key, outcome, duration since the call
    kRenewed,         // key, token, duration of the renewal
    kRenewalFailed,   // key, token, outcome, duration of the renewal
    kReleased,        // key, token, outcome of the release, duration since the grant
    kLost,            // key, token, loss, duration since the grant
    kAnswer,          // server, duration: the round trip of a request
    kNoAnswer,        // server, duration until the client gave the request up
    kConnected,       // server
    kConnectionLost,  // server: a connection broke, or could not be opened
  };
  Kind kind = Kind::kGranted;
  std::string_view key = {};
  uint64_t token = 0;
  microseconds duration{0};
  std::string_view server = {};
  Outcome outcome = Outcome::kOk;
  LossReason loss = LossReason::kNone;
};

// Returns the kind in words, as in "granted" or "connection lost".
std::string_view name_of(ClientEvent::Kind kind);

}  // namespace holdfast
