// Sets the output limits, and closes connections that are over them.
#include "core/state/output.h"

#include <algorithm>

#include "core/base/config.h"
#include "core/command/acl.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"

namespace holdfast {

bool needs_auth(const EngineState& s, const Conn& c) {
  return !c.authenticated && !s.acl.allows_unauthenticated();
}

void renew_output_limit(const EngineState& s, Conn& c) {
  // Enough for the replies to a login, and for some hundred errors. No limit is lower, so that a client can
  // always log in and set another limit.
  constexpr size_t kPreauthOutputBytes = size_t{16} << 10U;
  const Limits& limits = s.config.limits;
  uint64_t bytes = c.subscriptions() > 0 ? limits.pubsub_output_bytes : limits.output_buffer_bytes;
  bytes = bytes == 0 ? Buffer::kUnlimited : std::max<uint64_t>(bytes, kPreauthOutputBytes);
  if (needs_auth(s, c)) bytes = std::min<uint64_t>(bytes, c.out.size() + kPreauthOutputBytes);
  c.out.set_limit(std::min(bytes, Buffer::kUnlimited));
  c.later.set_limit(c.out.limit());
}

void close_slow_reader(Context& ctx, Conn& c) {
  c.out.mark_overflowed();
  if (c.closing) return;
  c.closing = true;
  ctx.fx.closes.push_back(c.id);
}

}  // namespace holdfast
