// Who has subscribed to which channel or pattern. Owns the index; what each connection has subscribed to
// stands in its Conn.
#pragma once

#include <absl/container/btree_map.h>

#include <string>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

struct Turn;

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

// Sends a message to all who subscribed to the channel or to a pattern that matches it; returns how many
// times it was sent.
int64_t publish(Turn& t, std::string_view channel, std::string_view message);
int64_t publish_to_shard(Turn& t, std::string_view channel, std::string_view message);

// A connection has gone or was reset: it hears of nothing any more. At most so many of each kind.
void unsubscribe_all(Turn& t, Conn& c, size_t most = SIZE_MAX);

}  // namespace holdfast
