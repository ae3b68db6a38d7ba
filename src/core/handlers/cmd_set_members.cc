// Sets: SADD SREM SMOVE SISMEMBER SMISMEMBER SCARD SMEMBERS SSCAN.
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/handlers/element_scan.h"
#include "core/keyspace/set_body.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/body_changes.h"
#include "core/values/set_changes.h"

namespace holdfast {

void cmd_sadd(Request& r) {
  auto target = find_body_to_write<SetBody>(r, r.arg(1));
  if (!target) return;
  const size_t added = add_members(r.ctx, {r.c.db, target->f}, target->key, r.argv.subspan(2), r.c.id);
  if (added > 0) notify(r.ctx, kNotifySet, "sadd", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(added));
}

void cmd_srem(Request& r) {
  auto target = find_body_to_write<SetBody>(r, r.arg(1));
  if (!target) return;
  if (target->body == nullptr) return r.reply.integer(0);
  const size_t removed = remove_members<SetBody>(r.ctx, {r.c.db, target->f}, r.argv.subspan(2), r.c.id);
  if (removed > 0) notify(r.ctx, kNotifySet, "srem", r.c.db, r.arg(1));
  if (!find_live(r.ctx, r.c.db, target->key)) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(removed));
}

void cmd_sismember(Request& r) {
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (set) r.reply.integer(*set != nullptr && (*set)->contains(r.arg(2)) ? 1 : 0);
}

void cmd_smismember(Request& r) {
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (!set) return;
  r.reply.array(r.argc() - 2);
  for (const std::string_view member : r.argv.subspan(2)) {
    r.reply.integer(*set != nullptr && (*set)->contains(member) ? 1 : 0);
  }
}

void cmd_smove(Request& r) {
  auto from = find_body_to_write<SetBody>(r, r.arg(1));
  if (!from) return;
  if (from->body == nullptr) return r.reply.integer(0);
  if (!find_body_to_write<SetBody>(r, r.arg(2))) return;
  const std::string_view member = r.arg(3);
  from = find_body_to_write<SetBody>(r, r.arg(1));  // the look-up of the other key may have moved the entry
  if (!from->body->contains(member)) return r.reply.integer(0);
  if (r.arg(1) == r.arg(2)) return r.reply.integer(1);
  remove_members<SetBody>(r.ctx, {r.c.db, from->f}, r.argv.subspan(3), r.c.id);
  notify(r.ctx, kNotifySet, "srem", r.c.db, r.arg(1));
  if (!find_live(r.ctx, r.c.db, from->key)) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  auto to = find_body_to_write<SetBody>(r, r.arg(2));
  const size_t added = add_members(r.ctx, {r.c.db, to->f}, to->key, r.argv.subspan(3), r.c.id);
  if (added > 0) notify(r.ctx, kNotifySet, "sadd", r.c.db, r.arg(2));
  r.reply.integer(1);
}

void cmd_scard(Request& r) {
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (set) r.reply.integer(*set == nullptr ? 0 : static_cast<int64_t>((*set)->size()));
}

void cmd_smembers(Request& r) {
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (!set) return;
  r.reply.set(*set == nullptr ? 0 : (*set)->size());
  if (*set != nullptr) (*set)->for_each([&](std::string_view member) { r.reply.bulk(member); });
}

void cmd_sscan(Request& r) {
  if (!check_element_cursor(r)) return;
  const auto set = find_body_to_read<SetBody>(r, r.arg(1));
  if (!set) return;
  const size_t size = *set == nullptr ? 0 : (*set)->size();
  reply_element_page(r, size, [&](uint64_t cursor, const size_t& count, auto visit) {
    return size == 0 ? 0 : (*set)->scan(cursor, count, visit);
  });
}

}  // namespace holdfast
