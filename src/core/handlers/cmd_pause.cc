// CLIENT PAUSE, UNPAUSE and REPLY: defer or suppress replies.
#include "core/command/handlers.h"
#include "core/engine/requests.h"
#include "core/state/conn.h"
#include "core/state/pause.h"
#include "core/state/request.h"

namespace holdfast {

// Two pauses are merged: the later end applies, and the mode that stops more requests.
void cmd_client_pause(Request& r) {
  bool writes_only = false;
  if (r.argc() == 4) {
    writes_only = equals_ignore_case(r.arg(3), "WRITE");
    if (!writes_only && !equals_ignore_case(r.arg(3), "ALL")) {
      return r.reply.error("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  } else if (r.argc() != 3) {
    return reply_subcommand_syntax(r);
  }
  const auto ms = parse_int(r.arg(2));
  if (!ms || *ms > kMaxTtlMs) return r.reply.error("ERR timeout is not an integer or out of range");
  if (*ms < 0) return r.reply.error("ERR timeout is negative");
  Pause& pause = r.s().pause;
  const TimeMs until = r.now() + DurationMs{*ms};
  pause.writes_only = writes_only && (!pause.until || pause.writes_only);
  pause.until = std::max(until, pause.until.value_or(until));
  r.reply.ok();
}

void cmd_client_unpause(Request& r) {
  r.s().pause.until.reset();
  r.s().pause.over = true;
  r.reply.ok();
}

void cmd_client_reply(Request& r) {
  if (equals_ignore_case(r.arg(2), "ON")) {
    r.c.reply_mode = ReplyMode::kOn;
    r.reply.ok();
  } else if (equals_ignore_case(r.arg(2), "OFF")) {
    r.c.reply_mode = ReplyMode::kOff;
  } else if (equals_ignore_case(r.arg(2), "SKIP")) {
    if (r.c.reply_mode != ReplyMode::kOff) r.c.reply_mode = ReplyMode::kSkipNext;
  } else {
    reply_syntax_error(r);
  }
}

}  // namespace holdfast
