// CLIENT TRACKING: what is remembered of requests that read, and the messages when a key changes.
#pragma once

#include <span>
#include <string_view>

#include "core/state/conn.h"

namespace holdfast {

struct Command;
struct Turn;

// Notes that the connection may keep what this request has read.
void remember_reads(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv);

// Forgets a few of the keys that are too many since the limit was lowered; their readers are told.
void forget_surplus_keys(Turn& t);

// Tells who has read the key that it changed.
void invalidate(Turn& t, std::string_view key);
void invalidate_all(Turn& t);

// After a request: tells who made it of its own changes.
void tell_own_invalidations(Turn& t);

// Once a turn: tells those with BCAST what has changed.
void broadcast_invalidations(Turn& t);

void start_tracking(Turn& t, Conn& c, ClientTracking wanted);
void stop_tracking(Turn& t, Conn& c);

}  // namespace holdfast
