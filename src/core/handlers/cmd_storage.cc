// SAVE and related commands: write to disk, and stop the server. The shell does the work.
#include <string>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/effects.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

constexpr std::string_view kNoFolder = "ERR there is no data folder: start the server with --dir";

// Writes the error `why` and returns true. `why` is empty if the shell has done or started the work.
bool refused(Request& r, const std::string& why) {
  if (why.empty()) return false;
  r.reply.error(why);
  return true;
}

std::optional<ShutdownMode> read_shutdown(Request& r) {
  ShutdownMode mode;
  bool aborts = false;
  for (size_t i = 1; i < r.argc(); ++i) {
    if (equals_ignore_case(r.arg(i), "NOSAVE")) {
      mode.never_save = true;
    } else if (equals_ignore_case(r.arg(i), "SAVE")) {
      mode.save = true;
    } else if (equals_ignore_case(r.arg(i), "NOW")) {
      mode.now = true;
    } else if (equals_ignore_case(r.arg(i), "FORCE")) {
      mode.force = true;
    } else if (equals_ignore_case(r.arg(i), "ABORT")) {
      aborts = true;
    } else {
      return reply_syntax_error(r), std::nullopt;
    }
  }
  if ((aborts && r.argc() > 2) || (mode.save && mode.never_save))
    return reply_syntax_error(r), std::nullopt;
  // A shutdown never waits here, so that none can be in progress.
  if (aborts) return r.reply.error("ERR No shutdown in progress."), std::nullopt;
  return mode;
}

}  // namespace

void cmd_save(Request& r) {
  if (!r.s().config.storage.save) return r.reply.error(kNoFolder);
  if (!refused(r, r.s().config.storage.save())) r.reply.ok();
}

void cmd_bgsave(Request& r) {
  const bool schedule = r.argc() == 2 && equals_ignore_case(r.arg(1), "SCHEDULE");
  if (r.argc() > 2 || (r.argc() == 2 && !schedule)) return reply_syntax_error(r);
  if (!r.s().config.storage.save_in_background) return r.reply.error(kNoFolder);
  if (!refused(r, r.s().config.storage.save_in_background())) r.reply.simple("Background saving started");
}

void cmd_bgrewriteaof(Request& r) {
  if (!r.s().config.storage.save_in_background) return r.reply.error(kNoFolder);
  if (refused(r, r.s().config.storage.save_in_background())) return;
  r.reply.simple("Background append only file rewriting started");
}

void cmd_lastsave(Request& r) {
  const auto& last_save_s = r.s().config.storage.last_save_s;
  r.reply.integer(last_save_s ? last_save_s() : 0);
}

void cmd_shutdown(Request& r) {
  const auto mode = read_shutdown(r);
  if (!mode) return;
  audit(r);
  if (!r.s().config.storage.shut_down)
    return r.reply.error("ERR this server cannot be stopped by a client");
  if (refused(r, r.s().config.storage.shut_down(*mode))) return;
  r.c.closing = true;
  r.ctx.fx.closes.push_back(r.c.id);
}

}  // namespace holdfast
