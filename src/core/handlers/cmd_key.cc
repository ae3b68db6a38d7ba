// Commands on keys of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE, RANDOMKEY, KEYS, SCAN, DBSIZE, FLUSHALL,
// FLUSHDB.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/config.h"
#include "core/base/glob.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/events/invalidate.h"
#include "core/events/request_text.h"
#include "core/handlers/scan.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// FLUSHALL and FLUSHDB accept ASYNC or SYNC. Both return at once, and the memory is freed in steps.
bool check_flush_arguments(Request& r) {
  const bool fine =
      r.argc() == 1 ||
      (r.argc() == 2 && (equals_ignore_case(r.arg(1), "async") || equals_ignore_case(r.arg(1), "sync")));
  if (!fine) reply_syntax_error(r);
  return fine;
}

}  // namespace

// Removes the given keys. Also serves UNLINK, as a removal is O(1) here.
void cmd_del(Request& r) {
  int64_t removed = 0;
  for (size_t i = 1; i < r.argc(); ++i) {
    Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(i)));
    if (!f) continue;
    remove_key(r.ctx, {r.c.db, f}, End::kDeleted);
    notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(i));
    ++removed;
  }
  r.reply.integer(removed);
}

void cmd_exists(Request& r) {
  int64_t found = 0;
  for (size_t i = 1; i < r.argc(); ++i) found += find_to_read(r, r.arg(i)) ? 1 : 0;
  r.reply.integer(found);
}

// The server keeps no access times, so TOUCH only counts keys.
void cmd_touch(Request& r) { cmd_exists(r); }

// Returns the first key behind a random place. Places are hashes, which are evenly distributed. A key
// behind a wide gap is returned slightly more often than one behind a narrow gap.
void cmd_randomkey(Request& r) {
  uint64_t place = 0;
  uint8_t bytes[8];
  r.s().config.random(bytes);
  std::memcpy(&place, bytes, sizeof place);
  place >>= 64U - Keyspace::kCursorBits;
  std::string found;
  bool any = false;
  GlobSteps no_steps;
  const auto take = [&](const Entry& e) {
    if (any || !is_shown(e, {}, r.now(), no_steps)) return;
    any = true;
    found = key_of(e);
  };
  for (const uint64_t begin : {place, uint64_t{0}}) {
    for (uint64_t at = begin; !any;) {
      at = r.keys().scan(at, 1, take);
      if (at == 0) break;
    }
  }
  any ? r.reply.bulk(found) : r.reply.null();
}

void cmd_type(Request& r) {
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  r.reply.simple(f ? type_name(type_of(*f)) : "none");
}

void cmd_keys(Request& r) {
  ScanArguments scan;
  scan.match = r.arg(1);
  scan.count = SIZE_MAX;
  const ScanPage page = scan_page(r, scan);
  if (page.next != 0) return r.reply.error("ERR the pattern is too costly for KEYS; use SCAN");
  r.reply.array(page.keys.size());
  for (const std::string& key : page.keys) r.reply.bulk(key);
}

void cmd_scan(Request& r) {
  const auto scan = read_scan_arguments(r, 1, true);
  if (!scan) return;
  const ScanPage page = scan_page(r, *scan);
  r.reply.array(2);
  r.reply.bulk_integer(static_cast<int64_t>(page.next));
  r.reply.array(page.keys.size());
  for (const std::string& key : page.keys) r.reply.bulk(key);
}

// Counts the entries that are not removed yet. During very many expiries this may include due entries, as
// in Redis.
void cmd_dbsize(Request& r) {
  constexpr size_t kBudget = 500;
  r.keys().expire_due(r.now(), kBudget, [&](const Key& key) {
    Keyspace::Found f = r.keys().find(key);
    expire_key(r.ctx, {r.c.db, f}, 0);
  });
  r.reply.integer(static_cast<int64_t>(r.keys().live()));
}

void cmd_flushall(Request& r) {
  if (!check_flush_arguments(r)) return;
  audit(r);
  for (DbIndex db = 0; db < kDatabases; ++db) flush_db(r.ctx, db);
  invalidate_all(r.ctx);
  r.reply.ok();
}

void cmd_flushdb(Request& r) {
  if (!check_flush_arguments(r)) return;
  audit(r);
  flush_db(r.ctx, r.c.db);
  invalidate_all(r.ctx);
  r.reply.ok();
}

}  // namespace holdfast
