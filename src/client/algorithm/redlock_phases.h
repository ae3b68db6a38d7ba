// The phases of a Redlock, and what it keeps in each of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/types.h"
#include "holdfast/result.h"

namespace holdfast::client::redlock {

// The answer of a server to a request: kNo is a plain no, kRefused an error, kLost no answer.
enum class Vote : uint8_t { kNone, kPending, kYes, kNo, kRefused, kLost };

// LOCK was sent to all servers with one owner.
struct Attempt {
  struct Server {
    Vote lock = Vote::kNone;  // answer to LOCK; not kYes after FENCE has found no hold
    uint64_t token = 0;       // the largest token that it is known to have given this hold
  };
  std::string owner;
  TimeMs valid_until = kNever;  // of the hold that the attempt would get
  std::vector<Server> servers;

  size_t count(Vote vote) const;
  uint64_t largest_token() const;  // of the grants
};

// The same request was sent to all servers. Only answers to requests of the round count.
struct Round {
  uint64_t from = 0;        // the id of its first request
  std::vector<Vote> votes;  // by server

  size_t count(Vote vote) const;
};

// A LOCK that waits in the queue of the only server, or was granted there as a SESSION hold.
struct QueuedWait {
  uint64_t id = 0;
  std::string owner;
};

struct Idle {};

struct Locking {
  Attempt attempt;
  // The wait was granted, and the attempt takes the grant over.
  std::optional<QueuedWait> wait;
};

struct Queueing {
  QueuedWait wait;
};

struct Fencing {
  Attempt attempt;
  uint64_t token = 0;  // a quorum must confirm it
  Round round;
};

// Between two attempts.
struct Pausing {
  std::string owner;  // of the attempt that has failed
  TimeMs until;
  bool freed = false;  // on_freed() has shortened the pause
};

struct Renewal {
  DurationMs ttl{0};
  TimeMs valid_until;  // of the hold, if the renewal succeeds
  bool heals = false;  // servers without the hold get LOCK
  Round round;
  std::vector<bool> without;     // by server: it answered that it has no hold
  std::vector<bool> to_heal;     // by server: it gets LOCK as soon as the rules allow it
  std::optional<Status> result;  // nullopt while too few servers have answered
};

struct Held {
  Attempt attempt;
  uint64_t token = 0;
  TimeMs since;  // begin of `at_least` of release()
  TimeMs valid_until;
  std::optional<Renewal> renewal;  // the last one
};

struct Releasing {
  std::string owner;
  bool keeps = false;  // RENEW was sent instead of UNLOCK
  Round round;
};

struct Over {
  std::string owner;   // the last one
  bool keeps = false;  // its hold expires by itself
};

using Phase = std::variant<Idle, Locking, Queueing, Fencing, Pausing, Held, Releasing, Over>;

}  // namespace holdfast::client::redlock
