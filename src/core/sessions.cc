// SESSION holds: noted with their connection, ended with it, now or after the session grace.
#include "core/locks.h"

namespace holdfast {

namespace {

const Attachment* attachment_of_owner(Turn& t, const Keyspace::Found& f, const HoldName& name) {
  if (!is_hold(*f)) return nullptr;
  if (type_of(*f) == EntryType::kString) {
    return value_of(*f) == name.owner ? attachment_of(t.s, name.db, f) : nullptr;
  }
  const Holder* h = lock_body_of(*f)->find(name.owner);
  return h == nullptr ? nullptr : &h->attachment;
}

void end_session_hold(Turn& t, ConnId conn, const HoldName& name, TimeMs at) {
  Keyspace::Found f = find_live(t, name.db, t.keys(name.db).key(name.key));
  if (!f) return;
  const Attachment* a = attachment_of_owner(t, f, name);
  if (a == nullptr || !a->session || a->conn != conn)
    return;  // released, or taken over by another connection
  if (type_of(*f) == EntryType::kString) {
    remove_key(t, name.db, f, End::kDisconnected, at);
    return;
  }
  end_holder(t, name.db, f, lock_body_of(*f)->find(name.owner), End::kDisconnected, at);
}

}  // namespace

void join_session(Turn& t, DbIndex db, std::string_view key, std::string_view owner, const Attachment& a) {
  if (!a.session) return;
  if (Conn* c = t.s.conns.find(a.conn)) {
    c->session_holds.insert(HoldName{db, std::string(key), std::string(owner)});
  }
}

void leave_session(Turn& t, DbIndex db, std::string_view key, std::string_view owner, const Attachment& a) {
  if (!a.session) return;
  if (Conn* c = t.s.conns.find(a.conn)) {
    c->session_holds.erase(HoldName{db, std::string(key), std::string(owner)});
  }
}

void end_session_holds(Turn& t, ConnId conn, const absl::btree_set<HoldName>& holds, TimeMs at) {
  for (const HoldName& name : holds) end_session_hold(t, conn, name, at);
}

void end_session(Turn& t, ConnId conn, const absl::btree_set<HoldName>& holds) {
  if (holds.empty()) return;
  if (t.s.config.session_grace.count == 0) return end_session_holds(t, conn, holds, t.due);
  auto end = std::make_unique<SessionEnd>();
  end->conn = conn;
  end->holds = holds;
  t.s.timers.set(end.get(), t.now.mono + t.s.config.session_grace);
  SessionEnd* key = end.get();
  t.s.session_ends.emplace(key, std::move(end));
}

}  // namespace holdfast
