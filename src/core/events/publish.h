// Messages on their way to subscribers.
#pragma once

#include <cstdint>
#include <string_view>

namespace holdfast {

struct Conn;
struct Context;

// Sends a message to all who subscribed to the channel or to a pattern that matches it; returns how many
// times it was sent.
int64_t publish(Context& ctx, std::string_view channel, std::string_view message);
int64_t publish_to_shard(Context& ctx, std::string_view channel, std::string_view message);

// A connection has gone or was reset: it hears of nothing any more. At most so many of each kind.
void unsubscribe_all(Context& ctx, Conn& c, size_t most = SIZE_MAX);

}  // namespace holdfast
