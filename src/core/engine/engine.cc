// The public interface. Each call makes a Context, does its work, serves the queues, and returns the
// effects.
#include "core/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/base/page_pool.h"
#include "core/base/timers.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/engine/chunked_requests.h"
#include "core/engine/disconnect.h"
#include "core/engine/engine_parts.h"
#include "core/engine/memory_share.h"
#include "core/engine/prefetch.h"
#include "core/engine/remote_requests.h"
#include "core/engine/requests.h"
#include "core/engine/resumable_request.h"
#include "core/events/acl_check.h"
#include "core/events/invalidate.h"
#include "core/events/record_changes.h"
#include "core/keyspace/keyspace.h"
#include "core/lock/keys.h"
#include "core/lock/leases.h"
#include "core/lock/sessions.h"
#include "core/lock/votes.h"
#include "core/lock/waiting.h"
#include "core/persist/restore_state.h"
#include "core/script/script.h"
#include "core/state/attachments.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/effects.h"
#include "core/state/history.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/memory_use.h"
#include "core/state/output.h"
#include "core/state/pause.h"
#include "core/state/session_end.h"
#include "core/state/stats.h"
#include "core/state/tickets.h"
#include "core/state/tokens.h"
#include "core/state/tracking.h"
#include "core/state/wait_queue.h"
#include "core/state/watches.h"

namespace holdfast {

namespace {

void fire(Context& ctx, Timer* timer) {
  switch (timer->kind()) {
    case TimerKind::kKeyChange:
      ctx.s.queues.mark_ready(static_cast<WaitQueue*>(timer));
      break;
    case TimerKind::kSessionEnd:
      resume_ending_session(ctx, static_cast<SessionEnd*>(timer));
      break;
    case TimerKind::kLeaseEnd:
      expire_lease(ctx, static_cast<LiveLease*>(timer));
      break;
    case TimerKind::kWaitEnd:
      end_wait_by_timeout(ctx, static_cast<WaitingRequest*>(timer));
      break;
    case TimerKind::kPlacesEnd:
      end_empty_places(ctx);
      break;
    case TimerKind::kReturnWaits:
      return_waits(ctx, static_cast<TicketClient*>(timer));
      break;
  }
  serve_ready_queues(ctx);
}

void fire_due_timers(Context& ctx) {
  if (ctx.s.availability.loading) [[unlikely]]
    return;  // the state read so far is not yet complete
  while (Timer* timer = ctx.s.timers.take_due(ctx.now.mono)) {
    ctx.due = timer->at();
    fire(ctx, timer);
  }
  ctx.due = ctx.now.mono;
}

// Expires entries of one database after the other. The next call starts with the next database, so that
// many expiries in one do not starve the other ones. One entry may have very many fields to erase, each of
// which costs as much as an entry.
void expire_due_entries(Context& ctx, size_t budget) {
  constexpr size_t kMostErasedFields = 128;
  constexpr size_t kPart = 16;  // entries between two looks at the number of fields
  size_t fields_left = kMostErasedFields;
  for (int i = 0; i < kDatabases && budget > 0;) {
    const DbIndex db = ctx.s.next_db_to_expire;
    const size_t part = std::min(budget, kPart);
    const size_t fields_before = fields_left;
    const size_t left = ctx.keys(db).expire_due(ctx.now.mono, part, [&](const Key& key) {
      Keyspace::Found f = ctx.keys(db).find(key);
      fields_left -= expire_key(ctx, {db, f}, fields_left);
    });
    budget -= std::min(budget, part - left + fields_before - fields_left);
    if (left == 0) continue;  // this database has more to expire
    ctx.s.next_db_to_expire = static_cast<DbIndex>((db + 1) % kDatabases);
    ++i;
  }
}

// Of a waiter, its connection and its vote.
void check_waiter(const EngineState& s, const Entry& e, const Waiter& w) {
  if (w.linked) {
    const Conn& c = s.conns.at(w.conn);
    assert((w.async || w.ticket != nullptr || c.blocked_on == &w || c.leaving) && *w.of_conn == &w);
  }
  if (w.ticket == nullptr) return assert(w.linked);
  assert(w.linked || w.armed() || w.has_vote());
  assert(!w.ticket->set_aside ||
         (w.linked && w.rank.group == Rank::Group::kSetAside && *w.ticket->aside == &w));
  if (!w.has_vote()) return;
  const auto own = hold_of(e, w.owner);
  assert(own && own->token == w.ticket->vote && own->capacity == w.capacity);
}

bool is_blocked(const Conn& c) {
  return c.remote || c.blocked_on != nullptr || c.in_script || c.postponed.count() > 0 ||
         c.chunks.count() > 0;
}

}  // namespace

Engine::Engine(Config config)
    : parts_(std::make_unique<EngineParts>(std::move(config))), s_(&parts_->state) {}
Engine::~Engine() = default;

ConnId Engine::open(std::string_view peer, std::string_view local, Now now) {
  Conn& c = s_->conns.open();
  c.db = s_->db_at[0];
  c.peer = peer;
  c.local = local;
  forget_user(*s_, c);
  c.opened = c.last_active = now.mono;
  c.out.borrow_from(&s_->deferred_free.spare());
  for (Buffer* buffer : {&c.out, &c.later, &c.chunks.memory(), &c.postponed.memory()}) {
    count_memory(*buffer);
  }
  return c.id;
}

bool Engine::apply(ConnId conn, std::span<const std::string_view> argv, Now now, Effects& fx) {
  Context ctx{*s_, now, fx};
  Conn& c = s_->conns.at(conn);
  assert(!argv.empty() && !is_blocked(c) && !c.closing);
  c.last_active = now.mono;
  ctx.actor = conn;
  if (c.out.overflowed()) [[unlikely]] {
    close_slow_reader(ctx, c);
    return false;
  }
  if (s_->task.fiber.under_way()) [[unlikely]] {
    ctx.now = s_->task.context->now;  // for all clients a script is one moment
    ctx.due = s_->task.context->due;
    dispatch_request_while_busy(ctx, c, argv);
    return !is_blocked(c) && !c.closing;
  }
  if (s_->timers.any_due(now.mono)) fire_due_timers(ctx);
  dispatch_request(ctx, c, argv);
  if (s_->pause.over) [[unlikely]]
    run_postponed(ctx);
  if (s_->journal.pending) finish_journal(ctx);
  return !is_blocked(c) && !c.closing;
}

void Engine::prefetch(ConnId conn, const RequestBatch& batch) const {
  prefetch_keys(*s_, s_->conns.at(conn), batch);
}

void Engine::reject(ConnId conn, std::string_view why, Effects& fx) {
  Conn& c = s_->conns.at(conn);
  Context ctx{*s_, {}, fx};
  mark_dirty(ctx, c);
  Reply(c.out, c.protocol).error(std::string("ERR Protocol error: ").append(why));
  c.closing = true;
  fx.closes.push_back(conn);
}

void Engine::drop(ConnId conn, Now now, Effects& fx) {
  if (s_->task.fiber.under_way()) {
    s_->task.disconnected.push_back(conn);
    return;
  }
  Context ctx{*s_, now, fx};
  fire_due_timers(ctx);
  begin_disconnect(ctx, s_->conns.at(conn));
  serve_ready_queues(ctx);
  broadcast_invalidations(ctx);
  finish_journal(ctx);
}

// Resumes the deferred request for one time slice. When it ends, does the work that had to wait for its
// end.
void Engine::resume_request(Now now, Effects& fx) {
  const ConnId conn = s_->task.conn;
  const size_t answered = s_->conns.at(conn).out.size();
  if (!resume_resumable_request(*s_, fx)) return;
  Context ctx{*s_, now, fx};
  ctx.actor = conn;
  Conn& c = s_->conns.at(conn);
  mark_dirty(ctx, c);
  finish_request(ctx, c, answered);
  finish_journal(ctx);
  fx.wakes.push_back(conn);
  const std::vector<ConnId> disconnected = std::exchange(s_->task.disconnected, {});
  for (const ConnId id : disconnected) drop(id, now, fx);
}

void Engine::tick(Now now, Effects& fx, size_t budget) {
  s_->deferred_free.release_some();
  s_->removed.free_some();
  if (s_->availability.loading) return;
  if (s_->task.fiber.under_way()) {
    resume_request(now, fx);
    if (s_->task.fiber.under_way()) return;
  }
  Context ctx{*s_, now, fx};
  fire_due_timers(ctx);
  if (s_->stats.rates.due(now.mono)) s_->stats.rates.take(s_->stats.traffic, now.mono);
  if (is_due(s_->memory.looked_at + MemoryUse::kBetweenLooks, now.mono)) record_memory_use(ctx);
  expire_due_entries(ctx, budget);
  forget_surplus_keys(ctx);
  resume_disconnect(ctx);
  run_chunk(ctx);
  serve_ready_queues(ctx);
  if (s_->pause.until && is_due(*s_->pause.until, now.mono)) {
    s_->pause.until.reset();
    run_postponed(ctx);
  }
  if (s_->task.fiber.under_way()) return;  // no effect of a deferred script is visible
  broadcast_invalidations(ctx);
  finish_journal(ctx);
  free_flushed(*s_);
  if (s_->scripts.collecting()) s_->scripts.collect_step();
}

std::optional<TimeMs> Engine::next_deadline() const {
  if (s_->availability.loading) return std::nullopt;
  const bool has_work = has_flushed_to_free(*s_) || s_->scripts.collecting() || s_->leaving.has_value() ||
                        !s_->deferred_free.empty() || s_->removed.can_free() || !s_->unfinished.empty() ||
                        s_->tracking.has_surplus(s_->config.limits.tracking_keys);
  if (has_work || s_->task.fiber.under_way()) return TimeMs{0};
  std::optional<TimeMs> next = s_->timers.next_due();
  const auto consider = [&next](const std::optional<TimeMs>& due) {
    if (due && (!next || *due < *next)) next = due;
  };
  for (const auto& db : s_->dbs) consider(db->next_due());
  consider(s_->pause.until);
  // Ticketed requests wait for votes, which begin again when the recovery wait ends.
  if (s_->queues.any_ready() && s_->availability.refusal.empty())
    consider(s_->availability.recovering_until);
  return next;
}

void Engine::free_later(Buffer& buffer) { s_->deferred_free.take(buffer); }
void Engine::count_memory(Buffer& buffer) { buffer.count_in(&s_->memory.buffer_bytes); }

Buffer& Engine::output(ConnId conn) {
  Conn& c = s_->conns.at(conn);
  c.dirty = false;
  return c.out;
}

bool Engine::is_open(ConnId conn) const { return s_->conns.find(conn) != nullptr; }
bool Engine::blocked(ConnId conn) const { return is_blocked(s_->conns.at(conn)); }
bool Engine::awaits_push(ConnId conn) const {
  const Conn& c = s_->conns.at(conn);
  return !c.waiters.empty() || c.subscriptions() > 0 || c.monitor;
}
size_t Engine::output_limit(ConnId conn) const { return s_->conns.at(conn).out.limit(); }
size_t Engine::input_limit(ConnId conn) const {
  const uint64_t limit = s_->config.limits.query_buffer_bytes;
  return is_preauth(conn) ? std::min<uint64_t>(limit, kPreauthInputBytes) : limit;
}
bool Engine::is_preauth(ConnId conn) const {
  const Conn& c = s_->conns.at(conn);
  return c.checked && needs_auth(*s_, c);
}
bool Engine::allows_unauthenticated() const { return s_->acl.allows_unauthenticated(); }
bool Engine::runs_deferred(ConnId conn) const { return s_->conns.at(conn).chunks.count() > 0; }
bool Engine::closing(ConnId conn) const { return s_->conns.at(conn).closing; }
void Engine::record_input(ConnId conn, size_t unparsed_bytes) {
  Conn& c = s_->conns.at(conn);
  s_->memory.buffer_bytes += unparsed_bytes - c.unparsed_bytes;
  c.unparsed_bytes = unparsed_bytes;
}

void Engine::record_in_flight(ConnId conn, size_t bytes) { s_->conns.at(conn).in_flight_bytes = bytes; }

bool Engine::exceeds_share(ConnId conn) const { return holdfast::exceeds_share(*s_, s_->conns.at(conn)); }
std::vector<ConnId> Engine::end_excess(Now now, Effects& fx) {
  if (s_->config.limits.memory_bytes == 0 || s_->task.fiber.under_way()) return {};
  Context ctx{*s_, now, fx};
  return holdfast::end_excess(ctx);
}

void Engine::record_traffic(uint64_t read_bytes, uint64_t written_bytes) {
  s_->stats.traffic.read_bytes += read_bytes;
  s_->stats.traffic.written_bytes += written_bytes;
}

void Engine::record_rejected_connection() { ++s_->stats.refused_connections; }
const Config& Engine::config() const { return s_->config; }

RemoteOutcome Engine::run_remote(ConnId conn, std::span<const std::string_view> argv,
                                 const RemoteKey& before, Now now, Effects& fx) {
  Context ctx{*s_, now, fx};
  ctx.actor = conn;
  return holdfast::run_remote(ctx, s_->conns.at(conn), argv, before);
}

void Engine::discard_remote(ConnId conn) {
  Conn& c = s_->conns.at(conn);
  end_transaction(s_->deferred_free, std::move(c.transaction));
  s_->watches.clear(c);
}

void Engine::answer_remote(ConnId conn, std::string_view reply, Now now, Effects& fx) {
  Context ctx{*s_, now, fx};
  holdfast::answer_remote(ctx, s_->conns.at(conn), reply);
}

int Engine::protocol(ConnId conn) const { return s_->conns.at(conn).protocol; }

void Engine::keep_journal() { s_->journal.on = true; }
std::string_view Engine::journal_records() {
  if (s_->task.fiber.under_way()) return std::string_view(s_->journal.out).substr(0, s_->journal.settled);
  if (!s_->journal.large.empty()) {
    Effects none;
    Context ctx{*s_, s_->journal.changed_at, none};
    write_large_records(ctx);
  }
  return s_->journal.out;
}
bool Engine::recorded_grants() const {
  return s_->task.fiber.under_way() ? s_->journal.settled_grants : s_->journal.grants;
}
bool Engine::withholds_records() const { return s_->journal.withholds && s_->task.fiber.under_way(); }
void Engine::clear_journal_records() {
  constexpr size_t kKeptBytes = size_t{1} << 20U;
  if (s_->task.fiber.under_way()) {
    s_->journal.out.erase(0, std::exchange(s_->journal.settled, 0));
    s_->journal.settled_grants = false;
    return;
  }
  s_->journal.out.clear();
  if (s_->journal.out.capacity() > kKeptBytes) s_->journal.out.shrink_to_fit();
  s_->journal.grants = false;
}

void Engine::begin_journal_file() { s_->journal.ahead_ms = kNoClock; }
void Engine::begin_replayed_file() { s_->journal.read_boot_id.clear(); }

std::string Engine::replay(std::string_view records, Now now) {
  Effects none;
  Context ctx = restoring_context(*s_, now, none);
  std::string wrong = holdfast::replay(ctx, records);
  serve_ready_queues(ctx);  // there are no waiters, but lock-delays end
  return wrong;
}

void Engine::finish_loading(Now now) {
  Effects none;
  Context ctx{*s_, now, none};
  finish_restoring(ctx);
  s_->tickets.loaded_at = now.mono;
  serve_ready_queues(ctx);
  s_->stats = {};
  s_->history.clear();
}

Availability& Engine::availability() { return s_->availability; }
PagePool& Engine::pages() { return s_->pages; }
bool Engine::at_rest() const { return !s_->task.fiber.under_way(); }
void Engine::end_unwritten_request() { holdfast::end_unwritten_request(*s_); }
uint64_t Engine::largest_token() const { return s_->tokens.largest(); }

const Tokens& Engine::tokens() const { return s_->tokens; }
TimeMs Engine::latest_deadline() const { return s_->journal.latest_deadline; }

void Engine::check_invariants() const {
  for (const auto& db : s_->dbs) db->check_invariants();
  s_->queues.check_invariants();
  s_->tickets.relay.check_invariants();
  if (!s_->scripts.running()) s_->scripts.check_invariants();
  // Queues stay ready while the server grants nothing. The present time is unknown here, so the check does
  // not see when a recovery wait ends.
  const bool grants = s_->availability.grants(TimeMs{0});
  assert(!grants || s_->task.fiber.under_way() || !s_->queues.any_ready());
  size_t attached = 0;
  for (DbIndex i = 0; i < kDatabases; ++i) {
    s_->dbs[i]->scan(0, SIZE_MAX, [&](const Entry& e) { attached += e.attached; });
  }
  assert(attached == s_->attachments.size());
  s_->queues.for_each([&](const WaitQueue& q) {
    const Keyspace::Found f = s_->dbs[q.db]->find(q.key());
    assert(f && f->has_queue);
    assert(!q.empty() || q.delay_until.count > 0 || has_listener(*s_, q.db, f) || (q.ready && !grants));
    for (const auto& [rank, w] : q.waiters) check_waiter(*s_, *f, *w);
    for (const auto* pops : {&q.list_pops, &q.zset_pops}) {
      for (const PopWaiter* w : *pops) {
        const Conn& c = s_->conns.at(w->conn);
        assert((c.blocked_on == w || c.leaving) && *w->of_conn == w);
      }
    }
  });
}

}  // namespace holdfast
