// MONITOR: the connection sees each request from now on.
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/request.h"

namespace holdfast {

void cmd_monitor(Request& r) {
  if (r.c.monitor) return;  // no reply, as in Redis
  r.s().monitors.push_back(r.c.id);
  r.c.monitor = true;
  r.reply.ok();
}

}  // namespace holdfast
