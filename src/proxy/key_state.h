// What a majority of servers says about a key. Pure: answers to LOCKS INFO go in, a judgement comes out.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/base/value.h"
#include "core/base/types.h"

namespace holdfast::proxy {

// A hold, as one server shows it.
struct SeenHold {
  std::string owner;  // on the server: see owner_name.h
  uint64_t token = 0;
  std::string mode;                // as in LOCKS INFO
  std::optional<DurationMs> left;  // the rest of the TTL; nullopt: no TTL
};

// The answer of one server.
struct SeenKey {
  enum class Kind : uint8_t { kKey, kOtherType, kNoAnswer };
  Kind kind = Kind::kNoAnswer;
  std::vector<SeenHold> holds;
  bool delayed = false;  // a lock-delay runs
  std::string why;       // kNoAnswer: for people
};

SeenKey read_info(const client::Value& answer);

// A hold that a quorum of servers has.
struct QuorumHold {
  std::string owner;
  uint64_t token = 0;  // the largest that a quorum of servers has reached
  std::string mode;
  std::optional<DurationMs> left;  // for so long a quorum has it
  std::vector<bool> servers;       // which servers have it
};

struct KeyState {
  // kUndecided: the servers that have answered leave it open whether a quorum has a hold.
  enum class Kind : uint8_t { kFree, kHeld, kOtherType, kUndecided };
  Kind kind = Kind::kUndecided;
  std::vector<QuorumHold> holds;  // kHeld: at least one
  // kFree: no client can acquire the key, because lock-delays run on too many servers.
  bool delayed = false;
};

// Judges the answers so far, one element a server; nullopt: none yet. The state is final when it is not
// kUndecided: later answers do not change it.
KeyState judge(std::span<const std::optional<SeenKey>> seen, size_t quorum);

}  // namespace holdfast::proxy
