// Reads and changes strings.
#include "core/handlers/string_access.h"

#include "core/base/config.h"
#include "core/events/change_events.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/request.h"
#include "core/state/stats.h"

namespace holdfast {

Keyspace::Found find_to_read(Request& r, std::string_view key) {
  Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(key));
  if (f) {
    ++r.s().stats.keyspace_hits;
  } else {
    ++r.s().stats.keyspace_misses;
    notify(r.ctx, kNotifyKeyMiss, "keymiss", r.c.db, key);
  }
  return f;
}

StringAt find_string(Request& r, std::string_view key) {
  StringAt s;
  s.key = r.keys().key(key);
  s.found = find_any(r.ctx, r.c.db, s.key);
  s.live = s.found && type_of(*s.found) != EntryType::kNone;
  s.fits = !s.live || type_of(*s.found) == EntryType::kString;
  if (!s.fits) {
    reply_wrong_type(r);
  } else if (s.live) {
    s.value = value_of(*s.found);
  }
  return s;
}

void change_string(Request& r, StringAt& s, std::string_view value, std::string_view event) {
  put_string(r.ctx, {r.c.db, s.found}, s.key, value, r.c.id);
  notify(r.ctx, kNotifyString, event, r.c.db, s.key.bytes);
}

void change_string_part(Request& r, StringAt& s, size_t at, std::string_view part, std::string_view event) {
  put_string_part(r.ctx, {r.c.db, s.found}, s.key, at, part, r.c.id);
  notify(r.ctx, kNotifyString, event, r.c.db, s.key.bytes);
}

bool check_string_size(Request& r, uint64_t size) {
  if (size <= r.s().config.limits.bulk_bytes) return true;
  r.reply.error("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
  return false;
}

bool check_digest(Request& r, ValueTest test, std::string_view operand) {
  if (!compares_digest(test) || operand.size() == kDigestDigits) return true;
  r.reply.error("ERR must be exactly 16 hexadecimal characters");
  return false;
}

void set_string(Request& r, const Key& key, Keyspace::Found& f, std::string_view value, TimeMs deadline) {
  put_string(r.ctx, {r.c.db, f}, key, value, r.c.id);
  set_key_deadline(r.ctx, {r.c.db, f}, deadline, r.c.id);
  notify(r.ctx, kNotifyString, "set", r.c.db, key.bytes);
  if (deadline != kNever) notify(r.ctx, kNotifyGeneric, "expire", r.c.db, key.bytes);
}

}  // namespace holdfast
