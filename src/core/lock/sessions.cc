// SESSION holds: recorded with their connection, and ended with it, at once or after the session grace.
#include "core/lock/sessions.h"

#include "core/base/config.h"
#include "core/base/timers.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/keys.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/session_end.h"

namespace holdfast {

namespace {

constexpr DurationMs kPause{1};  // between two steps, if the holds are many

const Attachment* attachment_of_owner(Context& ctx, const Keyspace::Found& f, const HoldName& name) {
  if (!is_hold(*f)) return nullptr;
  if (type_of(*f) == EntryType::kString) {
    return value_of(*f) == name.owner ? attachment_of(ctx.s.attachments, name.db, f) : nullptr;
  }
  const Holder* h = lock_body_of(*f)->find(name.owner);
  return h == nullptr ? nullptr : &h->attachment;
}

void end_session_hold(Context& ctx, const SessionEnd& end, const HoldName& name, TimeMs at) {
  Keyspace::Found f = find_live(ctx, name.db, ctx.keys(name.db).key(name.key));
  if (!f) return;
  const Attachment* a = attachment_of_owner(ctx, f, name);
  if (a == nullptr || !a->session || a->conn != end.conn || a->session_number != end.number)
    return;  // released, or acquired again by another connection, or by this one after RESET
  if (type_of(*f) == EntryType::kString) {
    remove_key(ctx, {name.db, f}, End::kDisconnected, at);
    return;
  }
  end_holder(ctx, {name.db, f}, lock_body_of(*f)->find(name.owner), End::kDisconnected, at);
}

// Ends up to kMost of the holds, and removes those from the set.
void end_some(Context& ctx, SessionEnd& end, TimeMs at) {
  constexpr int kMost = 100;
  auto it = end.holds.begin();
  for (int n = 0; n < kMost && it != end.holds.end(); ++n, it = end.holds.erase(it)) {
    end_session_hold(ctx, end, *it, at);
  }
}

}  // namespace

void join_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                  const Attachment& a) {
  if (!a.session) return;
  if (Conn* c = ctx.s.conns.find(a.conn)) {
    c->session_holds.insert(HoldName{db, std::string(key), std::string(owner)});
  }
}

void leave_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   const Attachment& a) {
  if (!a.session) return;
  if (Conn* c = ctx.s.conns.find(a.conn)) {
    c->session_holds.erase(HoldName{db, std::string(key), std::string(owner)});
  }
}

void end_session(Context& ctx, ConnId conn, uint32_t number, absl::btree_set<HoldName> holds) {
  if (holds.empty()) return;
  const DurationMs grace = ctx.s.config.session_grace;
  auto end = std::make_unique<SessionEnd>();
  end->conn = conn;
  end->number = number;
  end->holds = std::move(holds);
  if (grace.count == 0) end_some(ctx, *end, ctx.due);
  if (end->holds.empty()) return;
  ctx.s.timers.set(end.get(), ctx.now.mono + std::max(grace, kPause));
  SessionEnd* key = end.get();
  ctx.s.session_ends.emplace(key, std::move(end));
}

void resume_ending_session(Context& ctx, SessionEnd* end) {
  end_some(ctx, *end, end->at());
  if (end->holds.empty()) {
    ctx.s.session_ends.erase(end);
  } else {
    ctx.s.timers.set(end, ctx.now.mono + kPause);
  }
}

}  // namespace holdfast
