// How much a connection may leave unread.
#pragma once

#include "core/state/state.h"

namespace holdfast {

// Whether the connection has still to say who it is.
inline bool needs_auth(const EngineState& s, const Conn& c) {
  return !c.authenticated && !s.acl.allows_unauthenticated();
}

// Sets how much the connection may leave unread, by what it is: one that has still to log in, a subscriber
// or any other. To be called when that changes, or the limits do.
void renew_output_limit(const EngineState& s, Conn& c);
// The connection has left unread more than it may: it is to be closed, and hears nothing more.
void close_slow_reader(Context& ctx, Conn& c);

}  // namespace holdfast
