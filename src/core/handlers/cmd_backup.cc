// BACKUP: reads a snapshot of all data over the connection, in pieces that the client asks for. The shell
// makes the snapshot and its bytes.
#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/events/request_text.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

void cmd_backup_start(Request& r) {
  if (!r.s().config.storage.start_backup)
    return r.reply.error("ERR there is no data folder: start the server with --dir");
  audit(r);
  const std::string why = r.s().config.storage.start_backup(r.c.id);
  why.empty() ? r.reply.ok() : r.reply.error(why);
}

void cmd_backup_read(Request& r) {
  if (!r.s().config.storage.read_backup)
    return r.reply.error("ERR there is no data folder: start the server with --dir");
  const BackupBytes next = r.s().config.storage.read_backup(r.c.id);
  if (!next.error.empty()) return r.reply.error(next.error);
  next.ended ? r.reply.null() : r.reply.bulk(next.bytes);
}

void cmd_backup_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "READ",
      "    Return the next bytes of the backup; empty: not ready yet; null: the client has all bytes.",
      "START",
      "    Start a backup of all data for this connection.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
