// Sends messages to subscribers.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

struct Conn;
struct Context;

// Sends a message to all subscribers of the channel or of a matching pattern. Returns how many times it was
// sent.
int64_t publish(Context& ctx, std::string_view channel, std::string_view message);
int64_t publish_to_shard(Context& ctx, std::string_view channel, std::string_view message);

// Removes subscriptions of a connection that disconnected or was reset, at most `most` of each kind.
void unsubscribe_all(Context& ctx, Conn& c, size_t most = SIZE_MAX);

}  // namespace holdfast
