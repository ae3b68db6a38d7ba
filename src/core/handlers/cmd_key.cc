// Commands on keys of any type: DEL, UNLINK, EXISTS, TOUCH, TYPE, RANDOMKEY, KEYS, SCAN, DBSIZE, FLUSHALL,
// FLUSHDB.
#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/glob.h"
#include "core/command/command.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/events/request_text.h"
#include "core/handlers/scan.h"
#include "core/handlers/string_access.h"
#include "core/lock/locks.h"

namespace holdfast {

namespace {

std::string_view type_name(EntryType type) {
  switch (type) {
    case EntryType::kString:
      return "string";
    case EntryType::kLock:
      return "lock";
    case EntryType::kHash:
    case EntryType::kBigHash:
      return "hash";
    case EntryType::kNone:
      break;
  }
  return "none";
}

// As strtoul() reads it, which Redis uses: nothing at all is 0, and "-1" the largest of all.
std::optional<uint64_t> parse_cursor(std::string_view text) {
  const std::string copy(text);
  if (!copy.empty() && std::isspace(static_cast<unsigned char>(copy[0])) != 0) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  const uint64_t value = std::strtoull(copy.c_str(), &end, 10);
  if (*end != '\0' || errno == ERANGE) return std::nullopt;
  return value;
}

bool read_scan_option(Request& r, size_t i, bool with_type, ScanArguments& scan) {
  if (i + 1 < r.argc()) {
    const std::string_view word = r.arg(i);
    if (equals_ignore_case(word, "MATCH")) {
      if (r.arg(i + 1) != "*") scan.match = r.arg(i + 1);
      return true;
    }
    if (equals_ignore_case(word, "COUNT")) {
      const auto count = parse_int(r.arg(i + 1));
      if (!count) return reply_not_an_integer(r), false;
      if (*count < 1) return reply_syntax_error(r), false;
      scan.count = static_cast<size_t>(*count);
      return true;
    }
    if (with_type && equals_ignore_case(word, "TYPE")) {
      scan.type = r.arg(i + 1);
      return true;
    }
  }
  reply_syntax_error(r);
  return false;
}

bool shows(const Entry& e, const ScanArguments& scan, TimeMs now, GlobSteps& steps) {
  return type_of(e) != EntryType::kNone && !is_due(key_deadline(e), now) &&
         (!scan.holds_only || is_hold(e)) &&
         (!scan.type || equals_ignore_case(*scan.type, type_name(type_of(e)))) &&
         (!scan.match || glob_match(*scan.match, key_of(e), steps));
}

// FLUSHALL and FLUSHDB take ASYNC or SYNC; both come back at once, and the memory goes back step by step.
bool check_flush_arguments(Request& r) {
  const bool fine =
      r.argc() == 1 ||
      (r.argc() == 2 && (equals_ignore_case(r.arg(1), "async") || equals_ignore_case(r.arg(1), "sync")));
  if (!fine) reply_syntax_error(r);
  return fine;
}

}  // namespace

std::optional<ScanArguments> read_scan_arguments(Request& r, size_t at, bool with_type) {
  ScanArguments scan;
  const auto cursor = parse_cursor(r.arg(at));
  if (!cursor) {
    r.reply.error("ERR invalid cursor");
    return std::nullopt;
  }
  scan.cursor = std::min(*cursor, (uint64_t{1} << Keyspace::kCursorBits) - 1);
  for (size_t i = at + 1; i < r.argc(); i += 2) {
    if (!read_scan_option(r, i, with_type, scan)) return std::nullopt;
  }
  return scan;
}

ScanPage scan_page(Request& r, const ScanArguments& scan) {
  ScanPage page;
  size_t count = scan.count;
  GlobSteps steps;
  page.next = r.keys().scan(scan.cursor, count, [&](const Entry& e) {
    if (shows(e, scan, r.now(), steps)) page.keys.emplace_back(key_of(e));
    if (steps.taken >= kPageSteps) count = 0;
  });
  return page;
}

// Removes the keys given; also UNLINK, as removing is O(1) here.
void cmd_del(Request& r) {
  int64_t removed = 0;
  for (size_t i = 1; i < r.argc(); ++i) {
    Keyspace::Found f = find_live(r.t, r.c.db, r.keys().key(r.arg(i)));
    if (!f) continue;
    remove_key(r.t, r.c.db, f, End::kDeleted);
    notify(r.t, kNotifyGeneric, "del", r.c.db, r.arg(i));
    ++removed;
  }
  r.reply.integer(removed);
}

void cmd_exists(Request& r) {
  int64_t found = 0;
  for (size_t i = 1; i < r.argc(); ++i) found += find_to_read(r, r.arg(i)) ? 1 : 0;
  r.reply.integer(found);
}

// No access times are kept, so that nothing is left of TOUCH but its count.
void cmd_touch(Request& r) { cmd_exists(r); }

// The first key behind a place that chance names. Places are hashes, spread evenly; a key behind a wide gap
// comes a little more often than one behind a narrow one.
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
    if (any || !shows(e, {}, r.now(), no_steps)) return;
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

// Counts what has not been removed yet: in a storm of expiries that may include due entries, as in Redis.
void cmd_dbsize(Request& r) {
  constexpr size_t kBudget = 500;
  r.keys().expire_due(r.now(), kBudget, [&](const Key& key) { find_any(r.t, r.c.db, key); });
  r.reply.integer(static_cast<int64_t>(r.keys().live()));
}

void cmd_flushall(Request& r) {
  if (!check_flush_arguments(r)) return;
  audit(r);
  for (DbIndex db = 0; db < kDatabases; ++db) flush_db(r.t, db);
  invalidate_all(r.t);
  r.reply.ok();
}

void cmd_flushdb(Request& r) {
  if (!check_flush_arguments(r)) return;
  audit(r);
  flush_db(r.t, r.c.db);
  invalidate_all(r.t);
  r.reply.ok();
}

}  // namespace holdfast
