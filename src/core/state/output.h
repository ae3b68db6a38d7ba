// Output of connections, and its limits.
#pragma once

#include "core/codec/reply.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"

namespace holdfast {

// Marks the connection as one with output to send. The caller then writes the output.
inline void mark_dirty(Context& ctx, Conn& c) {
  if (c.dirty) return;
  c.dirty = true;
  ctx.fx.dirty.push_back(c.id);
}

// Returns a writer for output that is not the reply to the present request.
inline Reply push_to(Context& ctx, Conn& c) {
  mark_dirty(ctx, c);
  return {c.running ? c.later : c.out, c.protocol};
}

// Whether the connection must still authenticate.
bool needs_auth(const EngineState& s, const Conn& c);

// Sets the output limit of a connection by its kind: not authenticated, subscriber, or any other. The
// caller calls it when the kind or the configured limits change.
void renew_output_limit(const EngineState& s, Conn& c);
// Closes a connection whose unsent output is over its limit. It gets no more output.
void close_slow_reader(Context& ctx, Conn& c);

// Ends the connection's own request: writes the pushes that arrived while it ran. They follow its reply.
inline void flush_later(Context& ctx, Conn& c) {
  c.running = false;
  if (c.out.overflowed() || c.later.overflowed()) [[unlikely]]
    return close_slow_reader(ctx, c);
  if (c.later.empty()) return;
  c.out.append(c.later.view());
  c.later.reset(0);
}

}  // namespace holdfast
