// What a call does at the servers, each with one result. A callback is never called within the function
// that takes it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/result.h"
#include "proxy/key_state.h"
#include "proxy/quorum.h"

namespace holdfast::proxy {

class Gateway;

// The servers that failed to answer, each with the reason: "host:port why". For -UNAVAILABLE.
using Silence = std::vector<std::string>;

Silence silence_of(const Quorum& quorum, const Status& status);

// Reads the state of the key. If the state is undecided, `silence` says why.
using OnState = std::function<void(const KeyState& state, const Silence& silence)>;
void read_key(Gateway& gateway, const std::string& key, const OnState& done);

// kYes: a quorum did it. kNo: no quorum has this hold. kUnknown: the servers that answered leave it open.
enum class Verdict : uint8_t { kYes, kNo, kUnknown };
using OnVerdict = std::function<void(Verdict verdict, const Silence& silence)>;

// A hold on the servers, as far as the proxy knows it.
struct HoldName {
  std::string key;
  std::string value;   // the client's
  std::string owner;   // owner_name.h
  uint64_t token = 0;  // 0: not known
};

// Ends the hold of this owner, and no other one. A server that does not answer gets the request again when
// it answers.
void release_hold(Gateway& gateway, const std::string& key, const std::string& owner,
                  const OnVerdict& done);

// A new TTL, which counts from the answer to the client; nullopt: none.
struct NewTtl {
  std::optional<DurationMs> ttl;
  bool as_before = false;  // the TTL that the hold has got last, which only the servers know
};
void renew_hold(Gateway& gateway, const HoldName& hold, const NewTtl& ttl, const OnVerdict& done);

// Puts another value in place of the hold of this owner, as SET does: a new hold, without a wait.
void replace_hold(Gateway& gateway, const HoldName& hold, const std::string& value,
                  std::optional<DurationMs> ttl, const OnVerdict& done);

// The TTL on the servers so that the client has its own from the answer on, if the servers need `round` for
// it; nullopt: that of holds without a TTL.
DurationMs server_ttl(const Gateway& gateway, std::optional<DurationMs> ttl, DurationMs round);
// The TTL that the client may still rely on, from the rest of that on the servers; at least 1 ms. Not more
// than the client has asked for, if the proxy that asked the servers had rounds of the same duration.
DurationMs client_ttl(const Gateway& gateway, DurationMs left);

}  // namespace holdfast::proxy
