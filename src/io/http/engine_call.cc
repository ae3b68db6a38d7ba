// A connection of the engine that lives for one command.
#include "io/http/engine_call.h"

#include "core/events/acl_check.h"
#include "core/state/conn.h"
#include "core/state/context.h"

namespace holdfast {
namespace {

// The engine drops what exceeds the limit, so the end of a long reply has gaps: no single text in it is as
// long as this.
constexpr size_t kUnsureBytes = size_t{128} << 10;

int status_of(std::string_view error) {
  if (error.starts_with("NOPERM")) return 403;
  for (const std::string_view code : {"LOADING", "BUSY", "OOM", "MISCONF", "RECOVERING"}) {
    if (error.starts_with(code)) return 503;
  }
  return 400;
}

EngineReply no_reply(int status, std::string_view why) { return {status, std::string(why), "", false}; }

EngineReply reply_of(const Buffer& out) {
  const std::string_view all = out.view();
  if (all.starts_with('-')) {
    const std::string_view error = all.substr(1, all.find('\r') - 1);
    return no_reply(status_of(error), error);
  }
  EngineReply reply;
  reply.cut = out.overflowed();
  reply.resp = reply.cut ? all.substr(0, kMaxReplyBytes - kUnsureBytes) : all;
  return reply;
}

}  // namespace

EngineReply call_engine(HttpContext& ctx, const AclUser& user, const Visitor& visitor, size_t db,
                        std::span<const std::string_view> argv) {
  // Until a script ends, the engine cannot drop connections.
  if (!ctx.engine.at_rest()) return no_reply(503, "a script runs; try again");
  EngineState& s = ctx.engine.state();
  const ConnId id = ctx.engine.open(visitor.peer, visitor.local, ctx.now);
  Conn& c = s.conns.at(id);
  become_user(s, c, user);
  c.protocol = 3;
  c.db = s.db_at[db];
  c.out.set_limit(kMaxReplyBytes);
  ctx.engine.apply(id, argv, ctx.now, ctx.fx);
  const bool waits = ctx.engine.blocked(id);
  EngineReply reply = waits ? no_reply(503, "CLIENT PAUSE is in force; try again") : reply_of(c.out);
  ctx.engine.drop(id, ctx.now, ctx.fx);
  return reply;
}

}  // namespace holdfast
