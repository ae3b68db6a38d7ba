// Which connections have subscribed to which channel or pattern. Owns the index; what each connection has
// subscribed to stands in its Conn.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

class PubSub {
 public:
  // By serial, so that the order in which they are told is the order in which they came.
  using Subscribers = absl::btree_map<uint64_t, ConnId>;

  bool empty() const { return channels.empty() && patterns.empty(); }

  // A tree, not a hash table, as one that grows keeps everybody waiting.
  using Names = absl::btree_map<std::string, Subscribers, std::less<>>;
  // Puts a subscriber in who is not yet in, and takes one out who must be in.
  void add(Names& names, const std::string& name, Conn& c);
  void remove(Names& names, const std::string& name, Conn& c);

  Names channels;
  Names patterns;
  Names shard_channels;  // SSUBSCRIBE: a world of names of its own
  uint64_t bytes = 0;    // of the names, here and in Conn, by estimate
};

}  // namespace holdfast
