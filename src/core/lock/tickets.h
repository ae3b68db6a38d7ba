// Requests by ticket: they enter the queue or refresh their place there, and their attempts end. waiting.h
// serves them, votes.h has the rules of votes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/lock/acquire.h"
#include "core/state/context.h"
#include "core/state/ticket.h"

namespace holdfast {

struct Conn;

struct TicketRequest : LockRequest {
  Attempt attempt;  // of the owner
  uint64_t time = 0;
  bool provisional = false;
  Token counted;               // the vote that its client counts; 0: none
  std::optional<TimeMs> seen;  // the newest time of this server that its client has received
  std::vector<Attempt> over;   // attempts of any slots of the key that are known to be over
};

enum class TicketOutcome : uint8_t {
  kVote,
  kQueued,
  kHeld,          // the owner has a hold that it has confirmed
  kOver,          // the attempt is over
  kTooMany,       // the limit of waiters of the server is reached
  kTooManyOnKey,  // the limit of waiters of one key is reached
  kDeadlock,      // waiting would close a cycle of waits
  kOtherMode,     // the owner holds the lock, or waits for it, in another mode
  kWrongType,     // the key holds neither a string nor a lock
};

struct TicketAnswer {
  TicketOutcome outcome = TicketOutcome::kQueued;
  Token token;         // of a hold
  TimeMs since;        // of a hold: it lasts at least for the TTL of the request from then on
  uint64_t floor = 0;  // the largest ticket time of the key before the first request of this owner
};

TicketAnswer ask_by_ticket(Context& ctx, Conn& c, const TicketRequest& r);

// Whose word ends an attempt.
enum class EndedBy : uint8_t {
  kOwner,  // its own client, by UNLOCK
  kOther,  // another client, which has heard of it
  kLater,  // a later attempt of its slot
};
// Ends an attempt of a slot and all before it: its waiting request and its hold. No effect if it is known
// to be over.
void end_attempts(Context& ctx, DbIndex db, const Key& key, const Attempt& attempt, EndedBy by);

// Removes the waiting request of an attempt, or of one before it, from the queue.
void end_wait(Context& ctx, DbIndex db, const Key& key, const Attempt& attempt);

// Ends the vote of the owner if it has that token. Its request waits again. Returns whether it did.
bool yield_vote(Context& ctx, DbIndex db, const Key& key, std::string_view owner, Token token);
// The owner's hold is no vote any more: its request leaves the queue.
void confirm_vote(Context& ctx, DbIndex db, const Key& key, std::string_view owner);

}  // namespace holdfast
