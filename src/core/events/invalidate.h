// CLIENT TRACKING: what is remembered of requests that read, and the messages when a key changes.
#pragma once

#include <span>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

struct Command;
struct Context;

// Notes that the connection may keep what this request has read.
void remember_reads(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv);

// Forgets a few of the keys that are too many since the limit was lowered; their readers are told.
void forget_surplus_keys(Context& ctx);

// Tells who has read the key that it changed.
void invalidate(Context& ctx, std::string_view key);
void invalidate_all(Context& ctx);

// After a request: tells who made it of its own changes.
void send_own_invalidations(Context& ctx);

// Once a turn: tells those with BCAST what has changed.
void broadcast_invalidations(Context& ctx);

void start_tracking(Context& ctx, Conn& c, ClientTracking wanted);
void stop_tracking(Context& ctx, Conn& c);

}  // namespace holdfast
