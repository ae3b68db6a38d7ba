// Finds and changes the hash of a key.
#include "core/handlers/hash_access.h"

#include "core/events/change_events.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/state/stats.h"
#include "core/values/field_expiry.h"

namespace holdfast {

std::optional<HashView> find_hash_to_read(Request& r) {
  const Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  ++(f ? r.s().stats.keyspace_hits : r.s().stats.keyspace_misses);
  if (!f) {
    notify(r.ctx, kNotifyKeyMiss, "keymiss", r.c.db, r.arg(1));
    return HashView();
  }
  if (is_hash(*f)) return HashView(*f);
  reply_wrong_type(r);
  return std::nullopt;
}

std::optional<HashTarget> find_hash_to_write(Request& r) {
  const Key key = r.keys().key(r.arg(1));
  const Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  if (!f || type_of(*f) == EntryType::kNone) return HashTarget{key, f, HashView()};
  if (is_hash(*f)) return HashTarget{key, f, HashView(*f)};
  reply_wrong_type(r);
  return std::nullopt;
}

size_t put_fields(Request& r, HashTarget& target, std::span<const std::string_view> pairs,
                  std::string_view event, bool keep_deadlines) {
  const KeyRef k{r.c.db, target.f};
  const size_t fields = keep_deadlines ? set_fields_only(r.ctx, k, target.key, pairs, r.c.id)
                                       : set_fields(r.ctx, k, target.key, pairs, r.c.id);
  notify(r.ctx, kNotifyHash, event, r.c.db, r.arg(1));
  return fields;
}

}  // namespace holdfast
