// DUMP and RESTORE: a value as bytes, in the format of Redis 7.0. A hold is not a value: a string that was
// restored is a new hold, with a new token. A lock with several holders has no other value than its holds.
// RESTORE reads a large value in chunks (chunked_requests.h); the key gets it after the last one.
#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/parse.h"
#include "core/command/handlers.h"
#include "core/engine/chunked_requests.h"
#include "core/events/change_events.h"
#include "core/events/record_changes.h"
#include "core/handlers/expire_words.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/acquire.h"
#include "core/lock/keys.h"
#include "core/persist/payload.h"
#include "core/persist/value_reader.h"
#include "core/state/conn.h"
#include "core/state/memory_use.h"
#include "core/state/request.h"
#include "core/values/body_changes.h"
#include "core/values/hash_changes.h"

namespace holdfast {

namespace {

// What a chunk of RESTORE reads: 1000 fields of a hash, or 1 MiB of compressed text. Takes 1 to 2 ms.
constexpr size_t kStepEffort = 2048;
constexpr int64_t kMaxIdle = std::numeric_limits<int64_t>::max();

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
  bool idle = false;  // an idle time is given
  bool freq = false;  // a frequency is given
};

// An idle time and a frequency are for the eviction of keys, which does not exist here, and there is no
// place for them. As in a Redis without such a policy they are checked only.
bool check_access(Request& r, size_t i, int64_t highest, std::string_view error) {
  const auto n = parse_int(r.arg(i));
  if (!n) return reply_not_an_integer(r), false;
  if (*n < 0 || *n > highest) return r.reply.error(error), false;
  return true;
}

bool read_restore_options(Request& r, RestoreOptions& o) {
  for (size_t i = 4; i < r.argc(); ++i) {
    const bool more = i + 1 < r.argc();
    if (equals_ignore_case(r.arg(i), "REPLACE")) {
      o.replace = true;
    } else if (equals_ignore_case(r.arg(i), "ABSTTL")) {
      o.absolute = true;
    } else if (equals_ignore_case(r.arg(i), "IDLETIME") && more && !o.freq) {
      o.idle = check_access(r, ++i, kMaxIdle, "ERR Invalid IDLETIME value, must be >= 0");
      if (!o.idle) return false;
    } else if (equals_ignore_case(r.arg(i), "FREQ") && more && !o.idle) {
      o.freq = check_access(r, ++i, 255, "ERR Invalid FREQ value, must be >= 0 and <= 255");
      if (!o.freq) return false;
    } else {
      return reply_syntax_error(r), false;
    }
  }
  return true;
}

// Bytes until maxmemory.
uint64_t free_memory(const Request& r) {
  const uint64_t limit = r.s().config.limits.memory_bytes;
  return limit == 0 ? UINT64_MAX : limit - std::min(limit, used_memory_bytes(r.s()));
}

// Whether RESTORE may set the key. Else writes an error.
bool may_set(Request& r, const RestoreOptions& o, const Key& key) {
  if (o.replace || is_free(r.ctx, r.c.db, find_any(r.ctx, r.c.db, key))) return true;
  r.reply.error("BUSYKEY Target key name already exists.");
  return false;
}

// Checks key, TTL and payload. Writes an error and returns null if one of them is wrong.
std::unique_ptr<ValueReader> begin_reading(Request& r, const RestoreOptions& o) {
  if (!may_set(r, o, r.keys().key(r.arg(1)))) return nullptr;
  const auto ttl_ms = parse_int(r.arg(2));
  if (!ttl_ms) return reply_not_an_integer(r), nullptr;
  if (*ttl_ms < 0) return r.reply.error("ERR Invalid TTL value, must be >= 0"), nullptr;
  const auto bytes = open_payload(r.arg(3));
  if (!bytes) return r.reply.error("ERR DUMP payload version or checksum are wrong"), nullptr;
  return std::make_unique<ValueReader>(r.s(), r.ctx.now, *bytes);
}

// Reads the next part of the value, or all of it. Returns whether it is complete. If it is wrong, writes an
// error. `begins`: this is the first part. The later chunks need no payload.
bool read_value(Request& r, std::unique_ptr<ValueReader>& reader, bool begins) {
  if (reader->step(free_memory(r), may_continue(r) ? kStepEffort : SIZE_MAX)) {
    if (!reader->error().empty()) r.reply.error(reader->error());
    return reader->error().empty();
  }
  if (begins) {
    std::vector<std::string_view> argv(r.argv.begin(), r.argv.end());
    argv[3] = {};
    continue_later(r, argv, std::move(reader));
  } else {
    continue_later(r, std::move(reader));
  }
  return false;
}

void put_dumped(Request& r, const Key& key, Keyspace::Found& f, DumpedValue& value) {
  if (value.type == EntryType::kString && value.string.size() > kMaxInlineValue) {
    const size_t size = value.string.size();
    const size_t room = value.string.capacity();
    return put_loose_string(r.ctx, {r.c.db, f}, key, {{value.string.release(), std::free}, size, room},
                            r.c.id);
  }
  if (value.type == EntryType::kString) {
    return put_string(r.ctx, {r.c.db, f}, key, value.string.view(), r.c.id);
  }
  if (value.body != nullptr) {
    return put_body(r.ctx, {r.c.db, f}, key, value.type, std::move(value.body), r.c.id);
  }
  std::vector<std::string_view> pairs;
  pairs.reserve(2 * value.fields.size());
  for (const auto& [field, text] : value.fields) pairs.insert(pairs.end(), {field, text});
  set_fields(r.ctx, {r.c.db, f}, key, pairs, r.c.id);
}

void put_restored(Request& r, const RestoreOptions& o, const Key& key, ValueReader& reader) {
  const int64_t ttl_ms = *parse_int(r.arg(2));
  const TimeMs deadline = ttl_ms == 0 ? kNever : deadline_at(r, ttl_ms, o.absolute);
  const bool is_over = is_due(deadline, r.now());
  Keyspace::Found f = find_live(r.ctx, r.c.db, key);
  const bool existed = static_cast<bool>(f);
  const bool recorded = !is_over && reader.has_clock_of(r.ctx.now) &&
                        begin_restore(r.ctx, r.c.db, key.bytes, reader.value_bytes());
  // First, so that an old hold does not survive if the values are equal.
  if (f) remove_key(r.ctx, {r.c.db, f}, End::kOverwritten);
  r.reply.ok();
  if (is_over) {
    if (existed) notify(r.ctx, kNotifyGeneric, "del", r.c.db, key.bytes);
    return;
  }
  f = find_any(r.ctx, r.c.db, key);
  put_dumped(r, key, f, reader.value());
  set_key_deadline(r.ctx, {r.c.db, f}, deadline, r.c.id);
  if (recorded) end_restore(r.ctx, f, reader.payload());
  notify(r.ctx, kNotifyGeneric, "restore", r.c.db, key.bytes);
}

}  // namespace

void cmd_dump(Request& r) {
  const Keyspace::Found f = find_to_read(r, r.arg(1));
  if (!f) return r.reply.null();
  if (type_of(*f) == EntryType::kLock) {
    return r.reply.error("ERR a lock with several holders cannot be dumped");
  }
  r.reply.bulk(dump_value(*f, r.ctx.now));
}

void cmd_restore(Request& r) {
  RestoreOptions o;
  if (!read_restore_options(r, o)) return;
  std::unique_ptr<ValueReader> reader(static_cast<ValueReader*>(r.c.chunk_state.release()));
  const bool begins = reader == nullptr;
  if (begins) reader = begin_reading(r, o);
  if (reader == nullptr || !read_value(r, reader, begins)) return;
  const Key key = r.keys().key(r.arg(1));
  if (!begins && !may_set(r, o, key)) return;  // another client may have set it meanwhile
  put_restored(r, o, key, *reader);
}

}  // namespace holdfast
