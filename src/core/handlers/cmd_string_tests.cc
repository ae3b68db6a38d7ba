// Commands that compare the string of a key: DELEX (Redis 8.4), DELIFEQ (Valkey 9), DIGEST (Redis 8.4). On
// an exclusive lock a deletion is a release.
#include "core/command/handlers.h"
#include "core/command/value_test.h"
#include "core/events/change_events.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

void delete_key(Request& r, Keyspace::Found& f) {
  remove_key(r.ctx, {r.c.db, f}, End::kDeleted);
  notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  r.reply.integer(1);
}

}  // namespace

// The checks are in the order of Redis: a missing key is 0, whatever the condition is.
void cmd_delex(Request& r) {
  const bool conditional = r.argc() == 4;
  if (!conditional && r.argc() != 2) return reply_wrong_arity(r);
  Keyspace::Found f = find_live(r.ctx, r.c.db, r.keys().key(r.arg(1)));
  if (!f) return r.reply.integer(0);
  if (!conditional) return delete_key(r, f);
  if (type_of(*f) != EntryType::kString) {
    return r.reply.error("ERR Key should be of string type if conditions are specified");
  }
  const ValueTest test = condition_word(r.arg(2));
  if (test == ValueTest::kNone) {
    return r.reply.error("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
  }
  if (!check_digest(r, test, r.arg(3))) return;
  passes(test, r.arg(3), value_of(*f)) ? delete_key(r, f) : r.reply.integer(0);
}

void cmd_delifeq(Request& r) {
  StringAt s = find_string(r, r.arg(1));
  if (!s.fits) return;
  s.live&& s.value == r.arg(2) ? delete_key(r, s.found) : r.reply.integer(0);
}

void cmd_digest(Request& r) {
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.null();
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  r.reply.bulk(digest_of(value_of(*f)));
}

}  // namespace holdfast
