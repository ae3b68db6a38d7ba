// The side effects of a change of a key: it breaks WATCHes, invalidates client caches, and publishes
// events. Each costs one comparison while no client uses it.
#pragma once

#include <string_view>

#include "core/base/config.h"
#include "core/base/event_flags.h"
#include "core/state/context.h"
#include "core/state/pubsub.h"
#include "core/state/tracking.h"
#include "core/state/watches.h"

namespace holdfast {

void publish_key_event(Context& ctx, std::string_view event, DbIndex db, std::string_view key);
void publish_lock_event(Context& ctx, std::string_view key, std::string_view event, std::string_view owner,
                        Token token);
void notify_observers(Context& ctx, DbIndex db, std::string_view key);

// Breaks WATCHes and invalidates client caches after a key's value or expiry changed, or the key was
// removed. The function that makes the change calls it. If the entry is already removed, `key` must not
// point into it.
inline void key_changed(Context& ctx, DbIndex db, std::string_view key) {
  if (!ctx.s.watches.empty() || ctx.s.tracking.active()) [[unlikely]]
    notify_observers(ctx, db, key);
}

// Publishes a keyspace event ("set", "expired") if notify-keyspace-events selects its class. Command
// handlers call it after the change.
inline void notify(Context& ctx, NotifyFlag of_class, std::string_view event, DbIndex db,
                   std::string_view key) {
  if ((ctx.s.config.notify_flags & of_class) != 0 && ctx.s.remote_key == nullptr) [[unlikely]]
    publish_key_event(ctx, event, db, key);
}

// Publishes an event of a lock on the channel __lock__:<key>. The owner is empty, or the token 0, in events
// that have none.
inline void lock_event(Context& ctx, std::string_view key, std::string_view event,
                       std::string_view owner = {}, Token token = {}) {
  if (!ctx.s.pubsub.empty() && ctx.s.remote_key == nullptr) [[unlikely]]
    publish_lock_event(ctx, key, event, owner, token);
}

}  // namespace holdfast
