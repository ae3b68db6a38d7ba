// RENAME, RENAMENX, COPY: move or copy a value to another key. A hold does not move: under the new key it
// is a new hold, with a new token.
#include <string>

#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/moved_value.h"

namespace holdfast {

namespace {

constexpr std::string_view kManyHolders = "ERR a lock with several holders cannot be renamed or copied";
constexpr std::string_view kNoInt32 =
    "ERR value is out of range, value must between -2147483648 and 2147483647";

// Renames the key. Returns false if it did not; the reply has then been written.
bool rename(Request& r, bool only_if_free) {
  Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  if (!f) return r.reply.error("ERR no such key"), false;
  if (r.arg(1) == r.arg(2)) return true;
  if (type_of(*f) == EntryType::kLock) return r.reply.error(kManyHolders), false;
  if (only_if_free && !is_free(r.ctx, r.c.db, find_any(r.ctx, r.c.db, r.keys().key(r.arg(2))))) {
    return r.reply.integer(0), false;
  }
  // The look-up of the other key may have moved this entry.
  f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  move_value(r.ctx, {r.c.db, f}, r.arg(2), r.c.id);
  notify(r.ctx, kNotifyGeneric, "rename_from", r.c.db, r.arg(1));
  notify(r.ctx, kNotifyGeneric, "rename_to", r.c.db, r.arg(2));
  return true;
}

struct CopyOptions {
  DbIndex db;
  bool replace = false;
};

bool read_copy_options(Request& r, CopyOptions& o) {
  for (size_t i = 3; i < r.argc(); ++i) {
    if (equals_ignore_case(r.arg(i), "REPLACE")) {
      o.replace = true;
    } else if (equals_ignore_case(r.arg(i), "DB") && i + 1 < r.argc()) {
      const auto number = parse_int(r.arg(++i));
      if (!number) return reply_not_an_integer(r), false;
      if (*number != static_cast<int32_t>(*number)) {
        return r.reply.error(kNoInt32), false;
      }
      if (*number < 0 || *number >= kDatabases) return r.reply.error("ERR DB index is out of range"), false;
      o.db = r.s().db_at[static_cast<size_t>(*number)];
    } else {
      return reply_syntax_error(r), false;
    }
  }
  return true;
}

}  // namespace

void cmd_rename(Request& r) {
  if (rename(r, false)) r.reply.ok();
}

void cmd_renamenx(Request& r) {
  if (rename(r, true)) r.reply.integer(r.arg(1) == r.arg(2) ? 0 : 1);
}

void cmd_copy(Request& r) {
  CopyOptions o{r.c.db};
  if (!read_copy_options(r, o)) return;
  if (o.db == r.c.db && r.arg(1) == r.arg(2)) {
    return r.reply.error("ERR source and destination objects are the same");
  }
  const Key to = r.ctx.keys(o.db).key(r.arg(2));
  const bool admits = o.replace || is_free(r.ctx, o.db, find_any(r.ctx, o.db, to));
  Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f || !admits) return r.reply.integer(0);
  if (type_of(*f) == EntryType::kLock) return r.reply.error(kManyHolders);
  copy_value(r.ctx, {r.c.db, f}, o.db, r.arg(2), r.c.id);
  notify(r.ctx, kNotifyGeneric, "copy_to", o.db, r.arg(2));
  r.reply.integer(1);
}

}  // namespace holdfast
