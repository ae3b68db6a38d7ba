// The limits of a connection's unsent output.
#pragma once

#include "core/state/state.h"

namespace holdfast {

// Whether the connection must still authenticate.
inline bool needs_auth(const EngineState& s, const Conn& c) {
  return !c.authenticated && !s.acl.allows_unauthenticated();
}

// Sets the output limit of a connection by its kind: not authenticated, subscriber, or any other. The
// caller calls it when the kind or the configured limits change.
void renew_output_limit(const EngineState& s, Conn& c);
// Closes a connection whose unsent output is over its limit. It gets no more output.
void close_slow_reader(Context& ctx, Conn& c);

}  // namespace holdfast
