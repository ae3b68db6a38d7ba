// What a change of a key sets off beside it: EXECs that watch it, caches that keep it, channels that tell
// of it. Each costs one comparison while nobody asks for it.
#pragma once

#include <string_view>

#include "core/base/event_flags.h"
#include "core/state/state.h"

namespace holdfast {

void publish_key_event(Context& ctx, std::string_view event, DbIndex db, std::string_view key);
void publish_lock_event(Context& ctx, std::string_view key, std::string_view event, std::string_view owner,
                        Token token);
void notify_observers(Context& ctx, DbIndex db, std::string_view key);

// The value or the expiry of a key has changed, or it has gone: breaks WATCHes, invalidates caches. Called
// by whatever makes the change; `key` must not be the entry's own bytes where that has gone.
inline void key_changed(Context& ctx, DbIndex db, std::string_view key) {
  if (!ctx.s.watches.empty() || ctx.s.tracking.active()) [[unlikely]]
    notify_observers(ctx, db, key);
}

// Tells of a keyspace event ("set", "expired") by its class, as notify-keyspace-events asks for. Called by
// command handlers, after the change.
inline void notify(Context& ctx, NotifyFlag of_class, std::string_view event, DbIndex db,
                   std::string_view key) {
  if ((ctx.s.config.notify_flags & of_class) != 0) [[unlikely]]
    publish_key_event(ctx, event, db, key);
}

// Tells of what happened to a lock, on the channel __lock__:<key>. An event that has no owner or token has
// it empty or 0.
inline void lock_event(Context& ctx, std::string_view key, std::string_view event,
                       std::string_view owner = {}, Token token = {}) {
  if (!ctx.s.pubsub.empty()) [[unlikely]]
    publish_lock_event(ctx, key, event, owner, token);
}

}  // namespace holdfast
