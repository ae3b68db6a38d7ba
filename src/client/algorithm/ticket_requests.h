// The requests and answers of a client that waits by ticket (docs/protocol.md: LOCK ... TICKET), as types.
// A request is encoded once, by encode(); an answer is read once, by one of the functions below. No other
// code of the client knows a word of the wire, and none decides by the text of an error.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/base/value.h"
#include "core/base/types.h"
#include "holdfast/error.h"
#include "holdfast/result.h"

namespace holdfast::client {

enum class LockMode : uint8_t { kExclusive, kShared, kCounted };

// What all requests of an acquisition have in common.
struct LockTerms {
  std::string key;
  LockMode mode = LockMode::kExclusive;
  uint32_t limit = 1;   // kCounted: the largest number of holders
  std::string note;     // empty: none
  DurationMs delay{0};  // the server refuses other holders for so long after an expiry; 0: none
};

// The owner of attempt n of a slot: "<slot>.<n>".
std::string owner_of(std::string_view slot, uint64_t attempt);
// What stands before the last dot: the receiver of a push.
std::string_view slot_of(std::string_view owner);
// The number behind it; 0 if there is none.
uint64_t attempt_of(std::string_view owner);

// LOCK ... TICKET: waits, or refreshes the wait and the vote. Answer: WaitAnswer.
struct WaitRequest {
  std::string owner;
  DurationMs life{0};             // of a vote
  uint64_t ticket = 0;            // its time; the slot decides between equal ones
  uint64_t hint = 0;              // for the token; 0: none
  uint64_t has = 0;               // the token of the vote that the client counts there; 0: none
  std::optional<TimeMs> seen;     // the newest time that the server has told
  bool provisional = false;       // the ticket may still change
  std::vector<std::string> over;  // attempts that have ended, at most kMostOver
};
inline constexpr size_t kMostOver = 8;

// LOCKS YIELD: ends the vote with that token; the wait stays. Answer: Count.
struct YieldRequest {
  std::string owner;
  uint64_t token = 0;
};

// RENEW ... TOKEN: confirms a vote or renews a hold. Answer: Count, the hold's token. With token 0 it is
// the plain RENEW, which may also shorten the hold. Answer: Count, 1.
struct RenewRequest {
  std::string owner;
  DurationMs ttl{0};
  uint64_t token = 0;
};

// UNLOCK: ends the hold, the vote and the wait. Answer: Count.
struct UnlockRequest {
  std::string owner;
};

// LOCKS HEARTBEAT. Answer: HeartbeatAnswer.
struct HeartbeatRequest {
  std::optional<TimeMs> seen;
};

using TicketRequest =
    std::variant<WaitRequest, YieldRequest, RenewRequest, UnlockRequest, HeartbeatRequest>;

// Returns the words of the request.
std::vector<std::string> encode(const TicketRequest& request, const LockTerms& terms);

// --- answers ---

struct WaitAnswer {
  enum class State : uint8_t { kQueued, kVote, kHeld };
  State state = State::kQueued;
  uint64_t token = 0;  // 0: queued
  TimeMs since{};      // the server's time of the grant, or of the last extension
  TimeMs now{};        // the server's time
  uint64_t floor = 0;  // the largest ticket that the server knew before
  std::vector<std::string> over;
};

struct Count {
  int64_t number = 0;
};

struct HeartbeatAnswer {
  std::string run_id;
  TimeMs now{};
};

// Why there is no answer to a request.
struct Refusal {
  enum class Code : uint8_t {
    kLost,        // no answer will come: the connection broke
    kFull,        // max-waiters, max-waiters-per-key
    kAhead,       // ticket or token is further ahead than max-token-lead
    kOver,        // this attempt, or a later one of its slot, has ended
    kRecovering,  // the server waits after a restart
    kDeadlock,
    kUnknown,  // the server does not know the request: one of a version without tickets
    kOther,
  };
  Code code = Code::kOther;
  std::string text;                        // for people
  ServerError error = ServerError::kNone;  // of a server
};

// How an acquisition ends because of it, if it ends.
Outcome outcome_of(const Refusal& refusal);

using Answer = std::variant<Refusal, WaitAnswer, Count, HeartbeatAnswer>;

// Reads the answer to a request. An answer of a wrong shape becomes a Refusal (kOther).
Answer read_answer(const TicketRequest& request, const Value& value);

// --- pushes ---

// The server has granted a vote to a wait.
struct VotePush {
  std::string owner;
  uint64_t token = 0;
  TimeMs since{};
  TimeMs now{};
  uint64_t floor = 0;
  std::vector<std::string> over;
};

// An older ticket waits for the vote.
struct InquirePush {
  std::string owner;
  uint64_t token = 0;
};

using Push = std::variant<VotePush, InquirePush>;

struct KeyedPush {
  std::string key;
  Push push;
};

// Reads a push ["lock", "vote" or "inquire", key, owner, ...]; nullopt for any other.
std::optional<KeyedPush> read_push(const Value& value);

}  // namespace holdfast::client
