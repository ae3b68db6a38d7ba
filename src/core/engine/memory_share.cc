#include "core/engine/memory_share.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/config.h"
#include "core/lock/waiting.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

// The bytes that a connection makes the server keep beside its data and its replies.
uint64_t kept_bytes(const Conn& c) {
  const uint64_t queued = c.transaction == nullptr ? 0 : c.transaction->requests.bytes();
  return c.unparsed_bytes + queued + c.wait_bytes + c.name_bytes;
}

uint64_t share_bytes(const EngineState& s) {
  return std::max(kLeastShareBytes, s.config.limits.memory_bytes / std::max<size_t>(1, s.conns.size()));
}

// Whether most of the memory goes with the wait that blocks the connection.
bool is_in_wait(const Conn& c) {
  return c.blocked_on != nullptr && c.blocked_on->bytes > kept_bytes(c) / 2;
}

}  // namespace

bool exceeds_share(const EngineState& s, const Conn& c) {
  if (kept_bytes(c) <= kLeastShareBytes) return false;  // first, as it costs least
  return is_nearly_full(s) && kept_bytes(c) > share_bytes(s);
}

std::vector<ConnId> end_excess(Context& ctx) {
  std::vector<ConnId> to_close;
  // Memory that waits to be freed goes first, in the steps of the event loop.
  if (!is_nearly_full(ctx.s) || free_some(ctx.s)) return to_close;
  const uint64_t share = share_bytes(ctx.s);
  std::vector<std::pair<uint64_t, Conn*>> excess;
  ctx.s.conns.for_each([&](Conn& c) {
    const uint64_t bytes = kept_bytes(c);
    if (bytes > share && !c.closing && c.chunks.count() == 0) excess.emplace_back(bytes, &c);
  });
  // Of the same size the youngest first: the others were there before it.
  std::ranges::sort(excess, [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second->id.serial > b.second->id.serial;
  });
  uint64_t surplus = surplus_bytes(ctx.s);
  for (const auto& [bytes, c] : excess) {
    if (is_in_wait(*c)) {
      mark_dirty(ctx, *c);
      Reply(c->out, c->protocol).error(kOomText);
      cancel_wait(ctx, c->blocked_on, WaitEnd::kUnblocked);
    } else {
      to_close.push_back(c->id);
    }
    if (bytes >= surplus) break;
    surplus -= bytes;
  }
  serve_ready_queues(ctx);
  return to_close;
}

}  // namespace holdfast
