// The phases of a TicketWait, and what it keeps in each of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "client/algorithm/ballot.h"
#include "client/algorithm/ticket_requests.h"
#include "client/base/time_us.h"
#include "holdfast/result.h"

namespace holdfast::client {

// A request, and what the driver hands back with its answer.
struct Asked {
  size_t server = 0;
  TicketRequest request;
  TimeUs at;  // not after the sending
};

// The ticket of an acquisition. It is fixed when a majority of servers has told its floor (C1), and then
// stays the same over parking and reconnection.
struct Ticket {
  uint64_t time = 0;
  uint64_t hint = 0;  // for tokens
  bool fixed = false;
  bool provisional = false;                     // requests say that it may change
  std::vector<std::optional<uint64_t>> floors;  // by server, before this ticket arrived there
  std::vector<bool> refuses_hint;               // by server: its clock is far behind this client's
  std::vector<bool> refuses;                    // by server: the same, for the ticket
};

// One attempt of the slot: queued on all servers under one owner.
struct Attempt {
  std::string owner;
  Ballot ballot;
  DurationUs vote;                 // V
  DurationUs live;                 // X
  std::vector<TimeUs> refresh_at;  // by server: when to send the wait again
};

// An attempt is queued on all servers.
struct Waiting {
  // A quorum of votes has different tokens: RENEW raises the smaller ones to `token` (C3). That confirms
  // them, so they cannot be given back one by one.
  struct Raising {
    uint64_t token = 0;
    TimeUs repeat_at;
  };
  Attempt attempt;
  TimeUs since;                      // begin of the attempt
  std::optional<TimeUs> first_vote;  // since when it has votes
  TimeUs nudge_at = kNeverUs;        // when to ask the servers that have not voted (C5)
  std::optional<Raising> raising;
  std::vector<std::optional<Outcome>> refused;  // by server: why it did not vote at once; for a single try
};

// No quorum is live: the client has left all queues until one is (C6).
struct Parked {
  std::optional<TimeUs> live_since;  // since when a quorum is live again
  TimeUs look_at;
};

// The lock is held.
struct Holding {
  // A renewal. Only answers to requests of the round count, so its validity begins with the round.
  struct Round {
    DurationMs ttl{0};
    TimeUs begun;
    TimeUs repeat_at;
    std::vector<bool> yes;      // by server: it has the hold until the end of the TTL
    std::vector<bool> without;  // by server: it has no hold, as far as known
    std::vector<bool> failed;   // by server: a RENEW was lost, or rejected with an error
    bool repairs = true;        // servers without the hold are asked to take it again
  };
  Attempt attempt;
  uint64_t token = 0;
  TimeUs since;
  TimeUs valid_until;
  TimeUs confirm_at;                 // kNeverUs: the first round has begun
  std::vector<bool> ended;           // by server: the hold has ended there, and no repair began since
  std::vector<TimeUs> repair_at;     // by server: when it was last asked to take the hold again
  bool confirmed = false;            // a quorum has confirmed its votes
  std::vector<bool> remember{};      // by server: it was among those in the last round with a quorum
  std::optional<Round> round{};      // the last one
  TimeUs report_at = kNeverUs;       // when a renewal without a quorum of answers has failed
  std::optional<Outcome> renewal{};  // the outcome of the last renewal; kExpired is final: see is_lost()

  // Too few servers have the hold: nothing renews it any more.
  bool is_lost() const { return renewal == Outcome::kExpired; }
};

// The lock is released, but no other client gets it before `until`: the servers keep the hold for that
// long.
struct Keeping {
  Attempt attempt;
  uint64_t token = 0;
  TimeUs until;
  TimeUs report_at;                // when not to wait for a quorum of answers any more
  std::vector<bool> yes;           // by server: its hold ends at that time
  std::optional<Outcome> outcome;  // nullopt: too few servers have answered
};

// UNLOCK is under way.
struct Releasing {
  Outcome reason = Outcome::kOk;              // kOk: a hold is released
  std::optional<Outcome> outcome;             // nullopt: too few servers have answered
  std::vector<std::optional<bool>> released;  // by server: whether UNLOCK has found the hold, as answered
  std::vector<bool> repeated;                 // by server: UNLOCK was sent more than once
  TimeUs report_at;                           // when not to wait for a quorum of answers any more
  TimeUs give_up_at;                          // when all that is left has expired
};

struct Over {
  Outcome outcome = Outcome::kCancelled;
};

struct Idle {};

using Phase = std::variant<Idle, Waiting, Parked, Holding, Keeping, Releasing, Over>;

}  // namespace holdfast::client
