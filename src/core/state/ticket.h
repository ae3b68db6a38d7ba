// Waits by ticket: those of a client that waits for the same lock on several servers. Its attempts have the
// owners `<slot>.<number>`. A ticketed request that is granted has a vote: a hold that its client confirms
// or yields. Until then it stays in its queue. docs/protocol.md has the rules.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/parse.h"
#include "core/base/timers.h"
#include "core/base/types.h"

namespace holdfast {

struct Waiter;

// A request gets a vote only if its client was heard so recently.
inline constexpr DurationMs kPatience{800};
// And only if its client has received something that the server sent so recently.
inline constexpr DurationMs kHearing{1200};
// The server asks for the same vote again after this time.
inline constexpr DurationMs kInquiryPause{100};
// How many owners that are over a request may name, and a reply names.
inline constexpr size_t kMostOverNamed = 8;
inline constexpr size_t kMostOverTold = 4;

// An owner of a ticketed request. All attempts of a slot with smaller numbers are over.
struct Attempt {
  std::string_view slot;
  uint64_t number = 0;
};

// Returns nullopt if the owner is not of the form `<slot>.<number>`, with a number below 2^53.
inline std::optional<Attempt> read_attempt(std::string_view owner) {
  const size_t dot = owner.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return std::nullopt;
  const auto number = parse_int_in(owner.substr(dot + 1), 0, static_cast<int64_t>(kMaxToken));
  if (!number) return std::nullopt;
  return Attempt{owner.substr(0, dot), static_cast<uint64_t>(*number)};
}

inline std::string owner_of(const Attempt& a) {
  return std::string(a.slot).append(1, '.').append(std::to_string(a.number));
}

// What a ticketed request has beside a plain one.
struct Ticket {
  Attempt attempt;           // the slot is a part of Waiter::owner
  uint64_t time = 0;         // the ticket is (time, slot)
  bool provisional = false;  // may still change; the server asks for no vote on its behalf
  uint64_t floor = 0;        // the largest ticket time of the key before this request
  Token vote;                // the token of its unconfirmed hold; 0: it has no vote
  TimeMs asked{-1};          // when the server last asked for the vote; negative: not yet
  TimeMs shown;              // when it arrived, as if its client had received something then
  TimeMs stale_since{0};     // its vote expired then: it gets no other one until its client is heard
  TimeMs leaves = kNever;    // its connection ended: then it leaves the queue
  bool was_queued = false;   // its client was told that it waits
  bool in_request = false;   // its request runs now, and will tell of its vote
  bool set_aside = false;    // is in TicketClient::set_aside, at `aside`
  std::list<Waiter*>::iterator aside;
};

// What a connection has that sends ticketed requests. Its timer fires while the server returns its requests
// to their queues.
struct TicketClient : Timer {
  explicit TicketClient(ConnId id) : Timer(TimerKind::kReturnWaits), conn(id) {}
  ConnId conn;
  TimeMs heard{-kMaxTtlMs};  // when it was last heard
  TimeMs seen{-kMaxTtlMs};   // the newest time of this server that it has received
  // Its requests that the server has set aside, as the client was not heard. The oldest first.
  std::list<Waiter*> set_aside;
  size_t to_return = 0;  // so many of them are looked at when the timer fires
};

}  // namespace holdfast
