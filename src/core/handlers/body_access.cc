// The store of a value with a ValueBody, for the commands *STORE.
#include "core/handlers/body_access.h"

#include <utility>

#include "core/events/change_events.h"
#include "core/state/conn.h"
#include "core/values/body_changes.h"

namespace holdfast {

void store_body(Request& r, EntryType type, std::unique_ptr<ValueBody> result, NotifyFlag what,
                std::string_view event) {
  const size_t size = result->size();
  const bool existed =
      replace_by_body(r.ctx, r.c.db, r.keys().key(r.arg(1)), type, std::move(result), r.c.id);
  if (size > 0) notify(r.ctx, what, event, r.c.db, r.arg(1));
  if (size == 0 && existed) notify(r.ctx, kNotifyGeneric, "del", r.c.db, r.arg(1));
  r.reply.integer(static_cast<int64_t>(size));
}

}  // namespace holdfast
