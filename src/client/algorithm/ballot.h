// The votes that one attempt has, by server, and what follows from them: whether a quorum has given the
// lock, with which token, and until when (rules C2 and C3 of docs/safety.md).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "client/algorithm/pulse.h"
#include "client/base/time_us.h"
#include "client/base/validity.h"

namespace holdfast::client {

// Returns a time of the client that is not after the server's time `since`. The clocks may drift apart.
TimeUs not_after(const Pulse::Pair& pair, TimeMs since, double drift);

// Returns until when a client can rely on what a server keeps for `life` from `base` on.
TimeUs valid_until(TimeUs base, DurationUs life, double drift);

struct BallotRules {
  size_t servers = 1;
  size_t quorum = 1;
  DurationUs life{500'000};  // V
  double drift = kDrift;
};

class Ballot {
 public:
  explicit Ballot(const BallotRules& rules);

  // The server's vote has this token. It lasts for V, or longer, from `base` on.
  void record(size_t server, uint64_t token, TimeUs base);
  // The server has a later vote of this attempt, with this larger token. When it was given is unknown: not
  // before the vote that the client has recorded, so the time of that one stays.
  void supersede(size_t server, uint64_t token);
  // The server has no vote for this attempt any more.
  void drop(size_t server) { votes_[server].reset(); }
  // The client gives the vote with that token back. The server may not get the message, and may repeat the
  // vote, which must never count again. A later vote there has a larger token.
  void yield(size_t server, uint64_t token);
  bool has_yielded(size_t server, uint64_t token) const { return token <= yielded_[server]; }

  bool has(size_t server) const { return votes_[server].has_value(); }
  // The token of the vote; 0: none.
  uint64_t token(size_t server) const { return votes_[server] ? votes_[server]->token : 0; }
  bool empty() const;
  // Whether the vote counts: before counts_until(). Then at least 0.4 V of it is left.
  bool counts(size_t server, TimeUs now) const { return now < counts_until(server); }
  TimeUs counts_until(size_t server) const;
  size_t counting(TimeUs now) const;

  struct Win {
    uint64_t token = 0;
    TimeUs until;
  };
  // A quorum of counting votes with one token, and until when they are valid.
  std::optional<Win> win(TimeUs now) const;
  // The smallest token that a quorum of the counting votes can have, if those with smaller ones are raised
  // to it; nullopt without a quorum of counting votes.
  std::optional<uint64_t> reachable_token(TimeUs now) const;

  static constexpr double kLeft = 0.4;  // of V

 private:
  struct Vote {
    uint64_t token = 0;
    TimeUs base;
  };
  BallotRules rules_;
  std::vector<std::optional<Vote>> votes_;  // by server
  std::vector<uint64_t> yielded_;           // by server: the largest token
};

}  // namespace holdfast::client
