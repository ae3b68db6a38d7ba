// The index of subscriptions: the subscribers of each channel and pattern. Owns the index; each Conn lists
// its own channels and patterns.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

class PubSub {
 public:
  // Keyed by serial, so that messages go to the connections in the order in which they connected.
  using Subscribers = absl::btree_map<uint64_t, ConnId>;

  bool empty() const { return channels.empty() && patterns.empty(); }

  // A tree, not a hash table: a hash table that grows delays all clients.
  using Names = absl::btree_map<std::string, Subscribers, std::less<>>;
  // Adds a connection that has not subscribed to the name; removes one that has.
  void add(Names& names, const std::string& name, Conn& c);
  void remove(Names& names, const std::string& name, Conn& c);

  Names channels;
  Names patterns;
  Names shard_channels;  // SSUBSCRIBE: separate from `channels`
  uint64_t bytes = 0;    // estimated bytes of the names, here and in Conn
};

}  // namespace holdfast
