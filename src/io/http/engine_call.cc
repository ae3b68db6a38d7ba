// A connection of the engine that lives for one command.
#include "io/http/engine_call.h"

#include "core/engine/visitors.h"

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
  const ConnId id = open_for_command(ctx.engine, user, address_of(visitor), db, kMaxReplyBytes, ctx.now);
  ctx.engine.apply(id, argv, ctx.now, ctx.fx);
  const bool waits = ctx.engine.blocked(id);
  const bool proxy = static_cast<bool>(ctx.engine.config().remote.take);
  const char* why = proxy ? "a proxy does not serve this over HTTP" : "CLIENT PAUSE is in force; try again";
  EngineReply reply = waits ? no_reply(503, why) : reply_of(ctx.engine.output(id));
  ctx.engine.drop(id, ctx.now, ctx.fx);
  return reply;
}

}  // namespace holdfast
