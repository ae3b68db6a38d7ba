// Publishes events of changes.
#include "core/events/change_events.h"

#include <string>

#include "core/base/config.h"
#include "core/events/invalidate.h"
#include "core/events/publish.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/watches.h"

namespace holdfast {

void publish_key_event(Context& ctx, std::string_view event, DbIndex db, std::string_view key) {
  const std::string number = std::to_string(ctx.s.db_name[db]);
  if ((ctx.s.config.notify_flags & kNotifyKeyspace) != 0) {
    publish(ctx, std::string("__keyspace@").append(number).append("__:").append(key), event);
  }
  if ((ctx.s.config.notify_flags & kNotifyKeyevent) != 0) {
    publish(ctx, std::string("__keyevent@").append(number).append("__:").append(event), key);
  }
}

void publish_lock_event(Context& ctx, std::string_view key, std::string_view event, std::string_view owner,
                        Token token) {
  std::string message(event);
  if (!owner.empty()) message.append(" ").append(owner);
  if (token.value != 0) message.append(" ").append(std::to_string(token.value));
  publish(ctx, std::string("__lock__:").append(key), message);
}

void notify_observers(Context& ctx, DbIndex db, std::string_view key) {
  ctx.s.watches.break_key(ctx.s.conns, db, key);
  invalidate(ctx, key);
}

}  // namespace holdfast
