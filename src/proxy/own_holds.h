// The holds that this proxy has acquired or renewed, by key: with them it renews and releases without
// asking the servers first. Nothing depends on them: another proxy does the same by asking, and may have
// ended or renewed such a hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/base/types.h"

namespace holdfast::proxy {

// An exclusive hold.
struct OwnHold {
  std::string key;
  std::string value;              // the client's
  std::string owner;              // on the servers: see owner_name.h
  uint64_t token = 0;             // 0: not known
  std::optional<DurationMs> ttl;  // as this proxy knows it; nullopt: none
  TimeMs end;                     // until when a quorum certainly has it, if no client has ended it
};

class OwnHolds {
 public:
  // Beyond so many holds the one that ends first is forgotten.
  static constexpr size_t kMost = 65536;

  // Replaces the former hold of the key.
  void put(OwnHold hold, TimeMs now);
  // Returns the hold of the key, if its end has not passed; else null.
  const OwnHold* find(const std::string& key, TimeMs now);
  // The same, if it has this owner.
  const OwnHold* find(const std::string& key, const std::string& owner, TimeMs now);
  // Forgets the hold, if it has this owner.
  void forget(const std::string& key, const std::string& owner);
  size_t size() const { return holds_.size(); }

 private:
  using Holds = std::map<std::string, OwnHold>;

  void erase(Holds::iterator hold);
  void erase_ended(TimeMs now);

  Holds holds_;
  std::set<std::pair<TimeMs, std::string>> ends_;
};

}  // namespace holdfast::proxy
