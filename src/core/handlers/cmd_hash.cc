// Hashes: HSET HSETNX HMSET HGET HMGET HGETALL HDEL HEXISTS HLEN HKEYS HVALS HSTRLEN HSCAN. The counters
// are in cmd_hash_counter.cc.
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/element_scan.h"
#include "core/handlers/hash_access.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Returns the fields and values of a request, from argument `at` on.
std::span<const std::string_view> rest(const Request& r, size_t at) { return r.argv.subspan(at); }

// For HSET and HMSET: sets the fields and returns the number of new ones. Returns nullopt after writing an
// error.
std::optional<size_t> set_pairs(Request& r) {
  if (r.argc() % 2 != 0) return reply_wrong_arity(r), std::nullopt;
  auto target = find_hash_to_write(r);
  if (!target) return std::nullopt;
  return put_fields(r, *target, rest(r, 2), "hset");
}

// For HKEYS and HVALS: replies with pick() of each field.
template <class Pick>
void reply_each(Request& r, Pick pick) {
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  r.reply.array(hash->size());
  hash->for_each([&](std::string_view field, std::string_view value) { r.reply.bulk(pick(field, value)); });
}

}  // namespace

void cmd_hset(Request& r) {
  if (const auto made = set_pairs(r)) r.reply.integer(static_cast<int64_t>(*made));
}

void cmd_hmset(Request& r) {
  if (set_pairs(r)) r.reply.ok();
}

void cmd_hsetnx(Request& r) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  if (target->hash.find(r.arg(2))) return r.reply.integer(0);
  put_fields(r, *target, rest(r, 2), "hset");
  r.reply.integer(1);
}

void cmd_hget(Request& r) {
  if (const auto hash = find_hash_to_read(r)) reply_value(r, hash->find(r.arg(2)));
}

void cmd_hmget(Request& r) {
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  r.reply.array(r.argc() - 2);
  for (const std::string_view field : rest(r, 2)) reply_value(r, hash->find(field));
}

void cmd_hgetall(Request& r) {
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  r.reply.map(hash->size());
  hash->for_each([&](std::string_view field, std::string_view value) {
    r.reply.bulk(field);
    r.reply.bulk(value);
  });
}

void cmd_hkeys(Request& r) {
  reply_each(r, [](std::string_view field, std::string_view) { return field; });
}

void cmd_hvals(Request& r) {
  reply_each(r, [](std::string_view, std::string_view value) { return value; });
}

void cmd_hdel(Request& r) {
  auto target = find_hash_to_write(r);
  if (!target) return;
  if (!target->exists()) return r.reply.integer(0);
  const size_t erased = erase_fields(r.ctx, {r.c.db, target->f}, target->key, rest(r, 2), r.c.id);
  if (erased > 0) notify(r.ctx, kNotifyHash, "hdel", r.c.db, r.arg(1));
  if (!target->exists()) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(erased));
}

void cmd_hexists(Request& r) {
  if (const auto hash = find_hash_to_read(r)) r.reply.integer(hash->find(r.arg(2)) ? 1 : 0);
}

void cmd_hlen(Request& r) {
  if (const auto hash = find_hash_to_read(r)) r.reply.integer(static_cast<int64_t>(hash->size()));
}

void cmd_hstrlen(Request& r) {
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  const auto value = hash->find(r.arg(2));
  r.reply.integer(value ? static_cast<int64_t>(value->size()) : 0);
}

void cmd_hscan(Request& r) {
  if (!check_element_cursor(r)) return;
  const auto hash = find_hash_to_read(r);
  if (!hash) return;
  reply_element_page(r, hash->size(), [&](uint64_t cursor, const size_t& count, auto visit) {
    return hash->scan(cursor, count, visit);
  });
}

}  // namespace holdfast
