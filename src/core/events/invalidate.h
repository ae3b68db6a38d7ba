// CLIENT TRACKING: records the keys that requests read, and sends messages when such a key changes.
#pragma once

#include <span>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

struct Command;
struct Context;

// Records the keys that this request read, as the client may cache them.
void remember_reads(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv);

// Evicts some of the tracked keys that exceed a lowered limit, and sends invalidations to their readers.
void forget_surplus_keys(Context& ctx);

// Sends invalidations to all readers of a key that changed; invalidate_all() for all keys.
void invalidate(Context& ctx, std::string_view key);
void invalidate_all(Context& ctx);

// After a request: sends the client the invalidations of its own changes.
void send_own_invalidations(Context& ctx);

// Once per loop iteration: sends all changes to the clients with BCAST.
void broadcast_invalidations(Context& ctx);

void start_tracking(Context& ctx, Conn& c, ClientTracking wanted);
void stop_tracking(Context& ctx, Conn& c);

}  // namespace holdfast
