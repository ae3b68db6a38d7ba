// Server-sent events.
#include "io/http/event_streams.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/command/acl.h"
#include "core/engine/lock_events.h"
#include "core/engine/visitors.h"
#include "core/events/acl_check.h"
#include "io/http/http_connection.h"
#include "io/http/info_json.h"
#include "io/http/json.h"
#include "io/http/routes.h"
#include "io/http/url.h"

namespace holdfast {
namespace {

std::string event_bytes(std::string_view name, std::string_view json) {
  std::string out = "event: ";
  out.append(name).append("\ndata: ").append(json).append("\n\n");
  return out;
}

// The fields of LOCKS HISTORY.
std::string change_json(const ShownLockEvent& e) {
  std::string out = "{";
  append_field(out, "serial", static_cast<int64_t>(e.serial));
  append_field(out, "event", e.name);
  append_field(out, "at", e.at_ms);
  append_field(out, "db", int64_t{e.db});
  append_field(out, "key", e.key);
  append_field(out, "key_id", percent_encoded(e.key));
  append_field(out, "owner", e.owner);
  append_field(out, "note", e.note);
  append_field(out, "token", static_cast<int64_t>(e.token.value));
  append_field(out, "waited", e.waited.count);
  append_field(out, "held", e.held.count);
  append_field(out, "addr", e.address);
  close_json(out, '}');
  return out;
}

// The user, if it still exists and may read the events.
const AclUser* reader_of(const Engine& engine, const std::string& name) {
  const AclUser* user = find_user(engine, name);
  return user != nullptr && may_read_events(engine, *user) ? user : nullptr;
}

}  // namespace

void EventStreams::add(HttpConnection& connection, std::string user, const Engine& engine,
                       const std::string& common) {
  if (streams_.empty()) last_serial_ = newest_lock_event(engine);
  const AclUser* const reader = reader_of(engine, user);
  streams_.push_back({&connection, std::move(user)});
  if (reader != nullptr) connection.push(event_bytes("info", info_of(*reader, common)));
}

void EventStreams::remove(const HttpConnection& connection) {
  std::erase_if(streams_, [&](const Stream& stream) { return stream.connection == &connection; });
}

void EventStreams::push_changes(const Engine& engine) {
  const uint64_t newest = newest_lock_event(engine);
  if (last_serial_ == newest) return;
  const uint64_t from = std::max(last_serial_ + 1, oldest_lock_event(engine));
  const uint64_t to = std::min(newest, from + (kMaxChanges - std::min(sent_, kMaxChanges)) - 1);
  const std::vector<Stream> streams = streams_;  // a slow client is closed meanwhile
  for (uint64_t serial = from; serial <= to; ++serial) {
    const ShownLockEvent e = read_lock_event(engine, serial);
    const std::string bytes = event_bytes("change", change_json(e));
    for (const Stream& stream : streams) {
      const AclUser* user = reader_of(engine, stream.user);
      if (user != nullptr && may_read_key(*user, e.key)) stream.connection->push(bytes);
    }
  }
  const uint64_t sent = to + 1 - from;
  sent_ += sent;
  dropped_ += newest - std::min(last_serial_, newest) - sent;
  last_serial_ = newest;
}

void EventStreams::push_info(const Engine& engine, const std::string& common) {
  const std::string dropped =
      dropped_ == 0 ? "" : event_bytes("dropped", "{\"count\":" + std::to_string(dropped_) + "}");
  sent_ = dropped_ = 0;
  const std::vector<Stream> streams = streams_;
  for (const Stream& stream : streams) {
    const AclUser* user = reader_of(engine, stream.user);
    if (user == nullptr) {
      stream.connection->close();
    } else {
      stream.connection->push(dropped + event_bytes("info", info_of(*user, common)));
    }
  }
}

}  // namespace holdfast
