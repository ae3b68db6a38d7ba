// SET and GET.
#include "core/command.h"
#include "core/handlers.h"
#include "core/locks.h"

namespace holdfast {

namespace {

enum class Condition : uint8_t { kNone, kIfAbsent, kIfPresent, kIfEqual };

struct SetOptions {
  Condition condition = Condition::kNone;
  std::string_view expected;  // IFEQ
  bool get = false;
  bool keep_ttl = false;
  std::optional<TimeMs> deadline;
};

// The unit and the kind of the four words that give an expiry.
struct ExpiryWord {
  std::string_view word;
  int64_t unit_ms;
  bool absolute;
};
constexpr ExpiryWord kExpiryWords[] = {
    {"EX", 1000, false}, {"PX", 1, false}, {"EXAT", 1000, true}, {"PXAT", 1, true}};

// Reads an expiry as Redis does: positive, and within what the clock can count.
std::optional<TimeMs> read_expiry(Request& r, const ExpiryWord& word, std::string_view text) {
  const auto value = parse_int(text);
  if (!value) return reply_not_an_integer(r), std::nullopt;
  const bool countable = *value > 0 && *value <= kMaxTtlMs / word.unit_ms;
  if (!countable) {
    r.reply.error("ERR invalid expire time in 'set' command");
    return std::nullopt;
  }
  const int64_t ms = *value * word.unit_ms;
  return word.absolute ? r.t.now.from_wall_ms(ms) : r.now() + DurationMs{ms};
}

bool set_condition(SetOptions& o, Condition c) {
  if (o.condition != Condition::kNone && o.condition != c) return false;
  o.condition = c;
  return true;
}

// The word at `i`, which moves on to its last argument. False: an error has been written.
bool read_set_option(Request& r, size_t& i, SetOptions& o) {
  const std::string_view word = r.arg(i);
  const bool more = i + 1 < r.argc();
  if (equals_ignore_case(word, "NX") && set_condition(o, Condition::kIfAbsent)) return true;
  if (equals_ignore_case(word, "XX") && set_condition(o, Condition::kIfPresent)) return true;
  if (equals_ignore_case(word, "IFEQ") && more && o.condition == Condition::kNone) {
    o.condition = Condition::kIfEqual;
    o.expected = r.arg(++i);
    return true;
  }
  if (equals_ignore_case(word, "GET")) return o.get = true;
  if (equals_ignore_case(word, "KEEPTTL") && !o.deadline) return o.keep_ttl = true;
  for (const ExpiryWord& e : kExpiryWords) {
    if (!equals_ignore_case(word, e.word)) continue;
    if (!more || o.deadline || o.keep_ttl) break;
    o.deadline = read_expiry(r, e, r.arg(++i));
    return o.deadline.has_value();
  }
  reply_syntax_error(r);
  return false;
}

// Whether the condition lets SET go on. A key that requests wait for, or that a lock-delay keeps, is no
// free key.
bool admits(Request& r, const SetOptions& o, const Keyspace::Found& f, bool live) {
  switch (o.condition) {
    case Condition::kIfAbsent:
      return !live && (!f || open_to_newcomers(r.t, r.c.db, *f));
    case Condition::kIfPresent:
      return live;
    case Condition::kIfEqual:
      return live && type_of(*f) == EntryType::kString && value_of(*f) == o.expected;
    case Condition::kNone:
      break;
  }
  return true;
}

void set_string(Request& r, const SetOptions& o, const Key& key, Keyspace::Found& f) {
  const bool was_lock = f && type_of(*f) == EntryType::kLock;
  const TimeMs old_deadline = was_lock ? key_deadline(*f) : kNever;
  put_string(r.t, r.c.db, key, f, r.arg(2), r.c.id);
  if (o.keep_ttl && was_lock) return set_key_deadline(r.t, r.c.db, f, old_deadline, r.c.id);
  if (o.keep_ttl) return touch(r.t, r.c.db, *f);
  if (!o.deadline || !is_due(*o.deadline, r.now())) {
    return set_key_deadline(r.t, r.c.db, f, o.deadline.value_or(kNever), r.c.id);
  }
  remove_key(r.t, r.c.db, f, End::kDeleted);  // EXAT in the past
}

}  // namespace

void cmd_set(Request& r) {
  SetOptions o;
  for (size_t i = 3; i < r.argc(); ++i) {
    if (!read_set_option(r, i, o)) return;
  }
  const Key key = r.keys().key(r.arg(1));
  Keyspace::Found f = find_any(r.t, r.c.db, key);
  const bool live = f && type_of(*f) != EntryType::kNone;
  if (live && type_of(*f) != EntryType::kString && (o.get || o.condition == Condition::kIfEqual)) {
    return reply_wrong_type(r);
  }
  // With GET the reply is the old value, and says nothing of whether the new one was set.
  if (o.get) live ? r.reply.bulk(value_of(*f)) : r.reply.null();
  const bool sets = admits(r, o, f, live);
  if (sets) set_string(r, o, key, f);
  if (!o.get) sets ? r.reply.ok() : r.reply.null();
}

void cmd_get(Request& r) {
  const Keyspace::Found f = find_live(r.t, r.c.db, r.keys().key(r.arg(1)));
  ++(f ? r.s().stats.keyspace_hits : r.s().stats.keyspace_misses);
  if (!f) return r.reply.null();
  if (type_of(*f) != EntryType::kString) return reply_wrong_type(r);
  r.reply.bulk(value_of(*f));
}

}  // namespace holdfast
