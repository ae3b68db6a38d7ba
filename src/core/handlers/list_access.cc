// Replies and arguments of lists.
#include "core/handlers/list_access.h"

#include "core/events/change_events.h"
#include "core/lock/keys.h"

namespace holdfast {

void reply_elements(Request& r, const ListBody& list, ListRange range, bool backward) {
  r.reply.array(range.count);
  if (range.count == 0) return;
  auto at = list.at(backward ? range.first + range.count - 1 : range.first);
  for (size_t i = 0; i < range.count; ++i, backward ? at.previous() : at.next()) r.reply.bulk(at.get());
}

void notify_if_removed(Request& r, const Key& key) {
  if (!find_live(r.ctx, r.c.db, key)) notify(r.ctx, kNotifyGeneric, "del", r.c.db, key.bytes);
}

std::optional<ListEnd> read_list_end(Request& r, size_t i) {
  if (equals_ignore_case(r.arg(i), "LEFT")) return ListEnd::kHead;
  if (equals_ignore_case(r.arg(i), "RIGHT")) return ListEnd::kTail;
  reply_syntax_error(r);
  return std::nullopt;
}

}  // namespace holdfast
