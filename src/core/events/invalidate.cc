// Sends invalidations. A key is removed from the table when its readers got the message: they read it again
// or do not need it any more.
#include "core/events/invalidate.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/codec/reply.h"
#include "core/command/command.h"
#include "core/keyspace/keyspace.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/tracking.h"

namespace holdfast {

namespace {

// The connection that gets the message: itself, or the one named by REDIRECT. Returns null if that one
// disconnected, or if it could not distinguish the message from a reply.
Conn* receiver_of(Context& ctx, Conn& c) {
  ClientTracking& own = *c.tracking;
  if (own.redirect == 0) return c.protocol >= 3 ? &c : nullptr;
  Conn* other = ctx.s.conns.find_serial(own.redirect);
  if (other != nullptr) {
    const bool can_receive = other->protocol >= 3 || other->subscriptions() > 0;
    return can_receive ? other : nullptr;
  }
  own.redirect_broken = true;
  if (c.protocol < 3) return nullptr;
  Reply push = push_to(ctx, c);
  push.push(2);
  push.bulk("tracking-redir-broken");
  push.integer(static_cast<int64_t>(own.redirect));
  return nullptr;
}

// Writes the head of an invalidation; the caller appends the keys. A RESP2 client gets it as a Pub/Sub
// message.
std::optional<Reply> open_invalidation(Context& ctx, Conn& c) {
  Conn* to = receiver_of(ctx, c);
  if (to == nullptr || to->closing) return std::nullopt;
  Reply push = push_to(ctx, *to);
  if (to->protocol >= 3) {
    push.push(2);
    push.bulk("invalidate");
  } else {
    push.push(3);
    push.bulk("message");
    push.bulk("__redis__:invalidate");
  }
  return push;
}

void send_invalidation(Context& ctx, Conn& c, const std::vector<std::string_view>& keys) {
  auto push = open_invalidation(ctx, c);
  if (!push) return;
  push->array(keys.size());
  for (const std::string_view key : keys) push->bulk(key);
}

// NOLOOP: whether the change is the client's own, of which it gets no message.
bool is_own(const Conn& c, uint64_t changed_by) { return c.tracking->noloop && c.id.serial == changed_by; }

void notify_readers(Context& ctx, decltype(Tracking::readers)::iterator it, bool own_too = false) {
  const auto node = ctx.s.tracking.readers.extract(it);
  ctx.s.tracking.remembered -= node.mapped().size();
  ctx.s.tracking.reader_bytes -= bytes_of_name(node.key());
  for (const auto& [serial, id] : node.mapped()) {
    Conn* c = ctx.s.conns.find(id);
    if (c == nullptr || c->tracking == nullptr || c->tracking->bcast) continue;
    if (!own_too && is_own(*c, ctx.actor.serial)) continue;
    if (id == ctx.actor && c->running) {
      ctx.s.tracking.own.push_back(node.key());
    } else {
      send_invalidation(ctx, *c, {node.key()});
    }
  }
}

// Evicts one key from the full table. Its readers must drop it from their caches too, so they get an
// invalidation.
void forget_some_key(Context& ctx) { notify_readers(ctx, ctx.s.tracking.readers.begin(), true); }

size_t common_size(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// Calls f(it) for each prefix of the key, without a scan of all prefixes. The last prefix that sorts at or
// before `rest` either is a prefix of it, or bounds the size of the remaining ones.
template <class F>
void for_each_prefix(Tracking& all, std::string_view key, F f) {
  std::string_view rest = key;
  for (auto it = all.prefixes.upper_bound(rest); it != all.prefixes.begin();
       it = all.prefixes.upper_bound(rest)) {
    --it;
    size_t size = common_size(it->first, rest);
    if (size == it->first.size()) {
      f(it);
      if (size-- == 0) return;
    }
    rest = key.substr(0, size);
  }
}

void record_for_broadcast(Context& ctx, std::string_view key) {
  Tracking& all = ctx.s.tracking;
  for_each_prefix(all, key, [&](auto prefix) {
    auto& changed = prefix->second.changed;
    if (changed.empty()) all.touched.insert(prefix->first);
    const auto [it, added] = changed.try_emplace(std::string(key), ctx.actor.serial);
    it->second = ctx.actor.serial;
    all.pending += added ? 1 : 0;
  });
}

void broadcast(Context& ctx, const Tracking::Prefix& prefix) {
  for (const auto& [serial, id] : prefix.clients) {
    Conn& c = ctx.s.conns.at(id);
    std::vector<std::string_view> keys;
    for (const auto& [key, changed_by] : prefix.changed) {
      if (!is_own(c, changed_by)) keys.push_back(key);
    }
    if (!keys.empty()) send_invalidation(ctx, c, keys);
  }
}

}  // namespace

// Whether keys must be evicted: they are too many, or memory is nearly full.
static bool is_too_full(const EngineState& s) {
  if (s.tracking.has_surplus(s.config.limits.tracking_keys)) return true;
  return !s.tracking.readers.empty() && is_nearly_full(s);
}

void remember_reads(Context& ctx, Conn& c, const Command& command, std::span<const std::string_view> argv) {
  Tracking& all = ctx.s.tracking;
  const ClientTracking& own = *c.tracking;
  if (own.bcast || !command.has(kReadOnly)) return;
  if (command.has(kScript)) return;  // the reads of a script are recorded as they happen
  if ((own.optin && !own.caching) || (own.optout && own.caching)) return;
  const auto positions = key_positions(command, argv);
  if (!positions) return;
  for (const size_t i : *positions) {
    const auto [it, made] = all.readers.try_emplace(std::string(argv[i]));
    if (made) all.reader_bytes += bytes_of_name(it->first);
    all.remembered += it->second.emplace(c.id.serial, c.id).second ? 1 : 0;
  }
  // Evicts as many keys as this request added. The remaining surplus is evicted in steps: see
  // forget_surplus_keys().
  for (size_t steps = positions->size(); steps > 0 && is_too_full(ctx.s); --steps) forget_some_key(ctx);
}

void forget_surplus_keys(Context& ctx) {
  constexpr size_t kKeysAtOnce = 100;
  for (size_t n = 0; n < kKeysAtOnce; ++n) {
    if (!ctx.s.tracking.has_surplus(ctx.s.config.limits.tracking_keys)) return;
    forget_some_key(ctx);
  }
}

void invalidate(Context& ctx, std::string_view key) {
  if (!ctx.s.tracking.prefixes.empty()) record_for_broadcast(ctx, key);
  const auto it = ctx.s.tracking.readers.find(key);
  if (it != ctx.s.tracking.readers.end()) notify_readers(ctx, it);
}

void invalidate_all(Context& ctx) {
  ctx.s.tracking.readers.clear();
  ctx.s.tracking.remembered = 0;
  ctx.s.tracking.reader_bytes = 0;
  const Tracking::Clients clients = ctx.s.tracking.clients;
  for (const auto& [serial, id] : clients) {
    auto push = open_invalidation(ctx, ctx.s.conns.at(id));
    if (push) push->null();
  }
}

void send_own_invalidations(Context& ctx) {
  if (ctx.s.tracking.own.empty()) return;
  const std::vector<std::string> own = std::move(ctx.s.tracking.own);
  ctx.s.tracking.own.clear();
  Conn* c = ctx.s.conns.find(ctx.actor);
  if (c == nullptr || c->tracking == nullptr) return;
  for (const std::string& key : own) send_invalidation(ctx, *c, {key});
}

void broadcast_invalidations(Context& ctx) {
  if (ctx.s.tracking.pending == 0) return;
  ctx.s.tracking.pending = 0;
  const auto touched = std::exchange(ctx.s.tracking.touched, {});
  for (const std::string& prefix : touched) {
    const auto it = ctx.s.tracking.prefixes.find(prefix);
    if (it == ctx.s.tracking.prefixes.end()) continue;  // no client uses this prefix any more
    broadcast(ctx, it->second);
    it->second.changed.clear();
  }
}

void start_tracking(Context& ctx, Conn& c, ClientTracking wanted) {
  Tracking& all = ctx.s.tracking;
  all.clients.emplace(c.id.serial, c.id);
  std::vector<std::string> prefixes =
      c.tracking == nullptr ? std::vector<std::string>() : c.tracking->prefixes;
  if (wanted.bcast) {
    const bool has_all = std::ranges::find(prefixes, "") != prefixes.end();
    if (wanted.prefixes.empty() && !has_all) wanted.prefixes.emplace_back();
    for (const std::string& prefix : wanted.prefixes) {
      all.prefixes[prefix].clients.emplace(c.id.serial, c.id);
      all.prefix_bytes += 2 * bytes_of_name(prefix);
      c.name_bytes += bytes_of_name(prefix);
      prefixes.push_back(prefix);
    }
  }
  wanted.prefixes = std::move(prefixes);
  c.tracking = std::make_unique<ClientTracking>(std::move(wanted));
}

void stop_tracking(Context& ctx, Conn& c) {
  if (c.tracking == nullptr) return;
  Tracking& all = ctx.s.tracking;
  all.clients.erase(c.id.serial);
  for (const std::string& prefix : c.tracking->prefixes) {
    const auto it = all.prefixes.find(prefix);
    it->second.clients.erase(c.id.serial);
    all.prefix_bytes -= 2 * bytes_of_name(prefix);
    c.name_bytes -= bytes_of_name(prefix);
    if (!it->second.clients.empty()) continue;
    all.pending -= it->second.changed.size();
    all.prefixes.erase(it);
  }
  c.tracking.reset();
}

}  // namespace holdfast
