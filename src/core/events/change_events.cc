// Where changes are told.
#include "core/events/change_events.h"

#include <string>

#include "core/events/invalidate.h"
#include "core/events/publish.h"

namespace holdfast {

void publish_key_event(Turn& t, std::string_view event, DbIndex db, std::string_view key) {
  const std::string number = std::to_string(t.s.db_name[db]);
  if ((t.s.config.notify_flags & kNotifyKeyspace) != 0) {
    publish(t, std::string("__keyspace@").append(number).append("__:").append(key), event);
  }
  if ((t.s.config.notify_flags & kNotifyKeyevent) != 0) {
    publish(t, std::string("__keyevent@").append(number).append("__:").append(event), key);
  }
}

void publish_lock_event(Turn& t, std::string_view key, std::string_view event, std::string_view owner,
                        Token token) {
  std::string message(event);
  if (!owner.empty()) message.append(" ").append(owner);
  if (token.value != 0) message.append(" ").append(std::to_string(token.value));
  publish(t, std::string("__lock__:").append(key), message);
}

void tell_observers(Turn& t, DbIndex db, std::string_view key) {
  t.s.watches.break_key(t.s.conns, db, key);
  invalidate(t, key);
}

}  // namespace holdfast
