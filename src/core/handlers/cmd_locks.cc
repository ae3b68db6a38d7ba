// LOCKS: shows holders and waiters, and breaks holds.
#include <algorithm>
#include <string>

#include "core/base/config.h"
#include "core/base/glob.h"
#include "core/codec/reply.h"
#include "core/command/handlers.h"
#include "core/events/acl_check.h"
#include "core/events/change_events.h"
#include "core/events/request_text.h"
#include "core/handlers/scan.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/lock/keys.h"
#include "core/lock/record_events.h"
#include "core/state/attachments.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/output.h"
#include "core/state/request.h"
#include "core/state/tokens.h"
#include "core/state/wait_queue.h"

namespace holdfast {

namespace {

constexpr size_t kMostListed = 1000;  // keys of one reply of LOCKS LIST, in about 3 ms

// A hold as shown to clients, for all types of entries.
struct ShownHold {
  std::string_view owner;
  Token token;
  Capacity capacity = kExclusive;
  TimeMs deadline, since, renewed;
  bool session = false;
  Origin origin;
  std::string_view note;
};

std::string_view mode_name(Capacity c) {
  if (c == kExclusive) return "exclusive";
  return c == kShared ? "shared" : "limit";
}
int64_t limit_number(Capacity c) { return c == kShared ? 0 : int64_t{c.count}; }
int64_t ms_left(TimeMs deadline, TimeMs now) { return deadline == kNever ? -1 : (deadline - now).count; }

ShownHold shown(const Request& r, const Holder& h) {
  return {h.owner,          h.token,   h.capacity,           h.deadline,
          h.held_since,     h.renewed, h.attachment.session, origin_of(r.s(), h.client.serial),
          h.attachment.note};
}

// A string without a token gets one, unless that cannot be kept: the reply would wait for the disk.
Token shown_token(Request& r, Keyspace::Found& f) {
  return r.s().availability.refusal.empty() ? exclusive_token(r.ctx, {r.c.db, f}) : token_of(*f);
}

ShownHold shown(Request& r, Keyspace::Found& f) {
  const Attachment* a = attachment_of(r.s().attachments, r.c.db, f);
  return {value_of(*f),
          shown_token(r, f),
          kExclusive,
          deadline_of(*f),
          held_since(*f),
          renewed_at(*f),
          a != nullptr && a->session,
          origin_of(r.s(), *f),
          a == nullptr ? std::string_view() : a->note};
}

// Returns all holds of a live key, in the order of their grants.
std::vector<ShownHold> holds_of(Request& r, Keyspace::Found& f) {
  std::vector<ShownHold> holds;
  if (type_of(*f) == EntryType::kString) {
    holds.push_back(shown(r, f));
  } else if (type_of(*f) == EntryType::kLock) {
    lock_body_of(*f)->for_each([&](const Holder& h) { holds.push_back(shown(r, h)); });
  }
  return holds;
}

Capacity tightest(const std::vector<ShownHold>& holds) {
  Capacity c = kShared;
  for (const ShownHold& h : holds) c = std::min(c, h.capacity);
  return c;
}

// Where a hold or a waiting request is from, and why.
void write_origin_fields(Request& r, const Origin& origin, std::string_view note) {
  r.reply.pair("addr", origin.addr);
  r.reply.pair("name", origin.name);
  r.reply.pair("note", note);
}

// Writes the fields that LOCKS INFO and LOCKS OWNED have in common.
void write_hold_fields(Request& r, const ShownHold& h) {
  r.reply.pair("token", static_cast<int64_t>(h.token.value));
  r.reply.pair("mode", mode_name(h.capacity));
  r.reply.pair("limit", limit_number(h.capacity));
  r.reply.pair("ttl", ms_left(h.deadline, r.now()));
  r.reply.pair("held", (r.now() - h.since).count);
  r.reply.pair("renewed", (r.now() - h.renewed).count);
  r.reply.pair("session", h.session ? 1 : 0);
  r.reply.bulk("client");
  if (h.origin.serial == 0) {
    r.reply.null();
  } else {
    r.reply.integer(static_cast<int64_t>(h.origin.serial));
  }
  write_origin_fields(r, h.origin, h.note);
}

void write_waiter(Request& r, const Waiter& w) {
  r.reply.map(10);
  r.reply.pair("owner", w.owner);
  r.reply.pair("mode", mode_name(w.capacity));
  r.reply.pair("limit", limit_number(w.capacity));
  r.reply.pair("waited", (r.now() - w.since).count);
  r.reply.pair("left", w.armed() ? (w.at() - r.now()).count : -1);
  r.reply.pair("client", static_cast<int64_t>(w.conn.serial));
  r.reply.pair("async", w.async || w.ticket != nullptr ? 1 : 0);
  write_origin_fields(r, origin_of(r.s(), w.conn.serial),
                      w.note ? std::string_view(*w.note) : std::string_view());
}

void write_lock_info(Request& r, const Key& key, const std::vector<ShownHold>& holds, const WaitQueue* q) {
  const Capacity limit = tightest(holds);
  const bool delayed = q != nullptr && q->delayed(r.now());
  r.reply.map(6);
  r.reply.pair("key", key.bytes);
  r.reply.pair("mode", holds.empty() ? "free" : mode_name(limit));
  r.reply.pair("limit", holds.empty() ? 0 : limit_number(limit));
  r.reply.pair("delay", delayed ? (q->delay_until - r.now()).count : 0);
  r.reply.bulk("holders");
  r.reply.array(holds.size());
  for (const ShownHold& h : holds) {
    r.reply.map(12);
    r.reply.pair("owner", h.owner);
    write_hold_fields(r, h);
  }
  r.reply.bulk("waiters");
  r.reply.array(q == nullptr ? 0 : q->waiters.size());
  if (q == nullptr) return;
  for (const auto& [rank, w] : q->waiters) write_waiter(r, *w);
}

void hide_origin(ShownHold& h) { h.origin.addr = h.origin.name = h.note = {}; }

// Finds a held key again by name and calls f. A scan first collects names only, as showing a hold may
// assign its token.
template <class F>
void with_held(Request& r, std::string_view name, F f) {
  const Key key = r.keys().key(name);
  Keyspace::Found found = find_live(r.ctx, r.c.db, key);
  if (found && is_hold(*found)) f(key, found);
}

// Whether the client may know who holds a key, and why. LOCKS LIST and LOCKS OWNED name all keys, as SCAN
// does, but the value of a string is its owner.
bool may_see_holders(const Request& r, std::string_view key) {
  if (!r.c.checked) return true;
  const std::string_view argv[] = {"locks", "info", key};
  return check_permission(r.s(), *r.c.user, *find_row(argv), argv).allowed();
}

// Writes the owner and the note of the first holder. A string that is longer than an owner may be large.
void write_first_holder(Request& r, const Key& key, const ShownHold& h) {
  const bool shown = h.owner.size() <= r.s().config.limits.owner_bytes && may_see_holders(r, key.bytes);
  r.reply.pair("owner", shown ? h.owner : "");
  r.reply.pair("note", shown ? h.note : "");
}

void write_list_row(Request& r, const Key& key, Keyspace::Found& f) {
  const std::vector<ShownHold> holds = holds_of(r, f);
  const WaitQueue* q = f->has_queue ? r.s().queues.find(r.c.db, key) : nullptr;
  r.reply.map(8);
  r.reply.pair("key", key.bytes);
  r.reply.pair("mode", mode_name(tightest(holds)));
  r.reply.pair("holders", static_cast<int64_t>(holds.size()));
  r.reply.pair("waiters", q == nullptr ? 0 : static_cast<int64_t>(q->waiters.size()));
  r.reply.pair("token", static_cast<int64_t>(holds.back().token.value));
  r.reply.pair("ttl", ms_left(key_deadline(*f), r.now()));
  write_first_holder(r, key, holds.front());
}

}  // namespace

void cmd_locks_info(Request& r) {
  const Key key = r.keys().key(r.arg(2));
  Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  if (!f) return r.reply.null_array();
  if (is_collection(*f)) return reply_wrong_type(r);
  const std::vector<ShownHold> holds = holds_of(r, f);
  const WaitQueue* q = f->has_queue ? r.s().queues.find(r.c.db, key) : nullptr;
  if (holds.empty() && q->waiters.empty() && !q->delayed(r.now())) return r.reply.null_array();
  write_lock_info(r, key, holds, q);
}

void cmd_locks_list(Request& r) {
  auto scan = read_scan_arguments(r, 2, false);
  if (!scan) return;
  scan->holds_only = true;
  scan->count = std::min(scan->count, kMostListed);
  const ScanPage page = scan_page(r, *scan);
  r.reply.array(2);
  r.reply.bulk_integer(static_cast<int64_t>(page.next));
  r.reply.array(page.keys.size());
  for (const std::string& name : page.keys) {
    with_held(r, name, [&](const Key& key, Keyspace::Found& f) { write_list_row(r, key, f); });
  }
}

void cmd_locks_owned(Request& r) {
  const std::string_view owner = r.arg(2);
  std::vector<std::string> names;
  r.keys().scan(0, SIZE_MAX, [&](const Entry& e) {
    const bool may_own = type_of(e) == EntryType::kLock
                             ? lock_body_of(e)->find(owner) != nullptr
                             : type_of(e) == EntryType::kString && value_of(e) == owner;
    if (may_own && !is_due(key_deadline(e), r.now())) names.emplace_back(key_of(e));
  });
  std::sort(names.begin(), names.end());
  std::vector<std::pair<std::string_view, ShownHold>> found;
  for (const std::string& name : names) {
    with_held(r, name, [&](const Key&, Keyspace::Found& f) {
      for (const ShownHold& h : holds_of(r, f)) {
        if (h.owner == owner) found.emplace_back(name, h);
        if (h.owner == owner && !may_see_holders(r, name)) hide_origin(found.back().second);
      }
    });
  }
  r.reply.array(found.size());
  for (const auto& [name, hold] : found) {
    r.reply.map(12);
    r.reply.pair("key", name);
    write_hold_fields(r, hold);
  }
}

void cmd_locks_check(Request& r) {
  const auto token = read_number(r, 3, "token", 0, static_cast<int64_t>(kMaxToken));
  if (!token) return;
  bool held = false;
  with_held(r, r.arg(2), [&](const Key&, Keyspace::Found& f) {
    const Token wanted{static_cast<uint64_t>(*token)};
    const bool lock = type_of(*f) == EntryType::kLock;
    held = wanted.value != 0 && (lock ? lock_body_of(*f)->has_token(wanted) : token_of(*f) == wanted);
  });
  r.reply.integer(held ? 1 : 0);
}

void cmd_locks_break(Request& r) {
  audit(r);
  int64_t broken = 0;
  with_held(r, r.arg(2), [&](const Key&, Keyspace::Found& f) {
    broken = type_of(*f) == EntryType::kLock ? static_cast<int64_t>(lock_body_of(*f)->size()) : 1;
    remove_key(r.ctx, {r.c.db, f}, End::kBroken);
  });
  r.reply.integer(broken);
}

void cmd_locks_raise(Request& r) {
  const auto token = read_number(r, 3, "token", 0, static_cast<int64_t>(kLastNamedToken));
  if (!token) return;
  audit(r);
  const Key key = r.keys().key(r.arg(2));
  r.s().tokens.raise(key, {static_cast<uint64_t>(*token)}, near_token(r.s().config, r.ctx.now));
  r.reply.integer(static_cast<int64_t>(r.s().tokens.last(key)));
}

void cmd_locks_revoke(Request& r) {
  audit(r);
  int64_t asked = 0;
  with_held(r, r.arg(2), [&](const Key& key, Keyspace::Found& f) {
    lock_event(r.ctx, key.bytes, "revoke");
    for (const ShownHold& h : holds_of(r, f))
      record_revoke(r.ctx, r.c.db, key.bytes, h.owner, h.note, h.token, h.since);
    for (const auto& [owner, attachment] : attachments_of_key(r.s(), r.c.db, f)) {
      ++asked;
      Conn* c = attachment.async ? r.s().conns.find(attachment.conn) : nullptr;
      if (c == nullptr || c->protocol < 3) continue;
      Reply push = push_to(r.ctx, *c);
      push.push(4);
      for (const std::string_view part :
           {std::string_view("lock"), std::string_view("revoke"), key.bytes, owner}) {
        push.bulk(part);
      }
    }
  });
  r.reply.integer(asked);
}

void cmd_locks_help(Request& r) {
  static constexpr std::string_view kLines[] = {
      "BREAK <key>",
      "    Release all holds of <key> by force; their lock-delay applies.",
      "CHECK <key> <token>",
      "    Return 1 if a current holder of <key> has <token>, else 0.",
      "HEARTBEAT [<milliseconds>]",
      "    Tell the server that this client waits; return its run id and its time.",
      "HISTORY [<key>] [COUNT <count>] [SINCE <unix-time-milliseconds>]",
      "    Return the last events of locks, the newest first.",
      "INFO <key>",
      "    Return the holders and waiters of <key>.",
      "LIST <cursor> [MATCH <pattern>] [COUNT <count>]",
      "    Return the held keys, page by page as SCAN does.",
      "OWNED <owner>",
      "    Return all holds of <owner> in this database. Reads every key.",
      "RAISE <key> <token>",
      "    Raise the last token of <key> to at least <token>; return the last token.",
      "REVOKE <key>",
      "    Ask the holders of <key> to release it; return the number of holders.",
      "TOP [BY <waiters|wait|holds>] [COUNT <count>]",
      "    Return the keys that requests wait for most.",
      "YIELD <key> <owner> <token>",
      "    Give back the vote of <owner> with <token>; its request waits again.",
  };
  reply_help(r, kLines);
}

}  // namespace holdfast
