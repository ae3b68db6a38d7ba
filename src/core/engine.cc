// The door: each verb makes a turn, does its work, lets in who may come in, and leaves the effects.
#include "core/engine.h"

#include <cassert>
#include <string>

#include "core/command.h"
#include "core/leases.h"
#include "core/locks.h"
#include "core/state.h"

namespace holdfast {

EngineState::EngineState(Config c)
    : config(std::move(c)), tokens(config.token_floor), leases(config.limits.lease_memory) {
  for (auto& db : dbs) db = std::make_unique<Keyspace>(config.hash_seed);
}

// Timers must be disarmed before their owners go.
EngineState::~EngineState() {
  while (timers.take_due(kNever) != nullptr) {
  }
}

uint64_t used_memory_bytes(const EngineState& s) {
  // What stands beside an object in indexes and allocator, by estimate.
  constexpr uint64_t kIndexBytes = 256;
  uint64_t bytes = s.queues.waiting() * (sizeof(Waiter) + kIndexBytes) +
                   s.queues.queues() * (sizeof(WaitQueue) + kIndexBytes) +
                   s.leases.size() * (sizeof(Lease) + kIndexBytes) +
                   s.leases.remembered() * (sizeof(LeaseFate) + kIndexBytes) +
                   s.attachments.size() * 2 * sizeof(Attachment);
  for (const auto& db : s.dbs) bytes += db->used_bytes();
  return bytes;
}

namespace {

// Pushes that came while the connection's own request ran follow its reply.
void flush_later(Conn& c) {
  c.running = false;
  if (c.later.empty()) return;
  c.out.append(c.later.view());
  c.later.reset(0);
}

bool beyond_memory_limit(const Turn& t, const Conn& c, const Command& command) {
  if ((command.flags & kDenyOom) == 0) return false;
  const uint64_t limit = t.s.config.limits.memory_bytes;
  return t.keys(c.db).is_full() || (limit != 0 && used_memory_bytes(t.s) > limit);
}

bool is_queued_in_multi(const Conn& c, const Command& command) {
  return c.transaction != nullptr && (command.flags & kInMulti) == 0;
}

// Keeps a request for EXEC. What a transaction keeps is input not worked off yet, and shares its limit.
void queue_in_multi(Conn& c, std::span<const std::string_view> argv, const Limits& limits, Reply& reply) {
  for (const std::string_view arg : argv) c.transaction->bytes += arg.size() + sizeof(std::string);
  if (c.transaction->bytes > limits.query_buffer_bytes) {
    c.transaction->broken = true;
    c.transaction->requests.clear();
    reply.error("ERR transaction is larger than client-query-buffer-limit allows");
    return;
  }
  c.transaction->requests.emplace_back(argv.begin(), argv.end());
  reply.simple("QUEUED");
}

// A request was refused before it could run: a transaction under way is broken, and EXEC itself ends it.
void fail_transaction(Conn& c, std::string_view name) {
  if (c.transaction == nullptr) return;
  c.transaction->broken = true;
  if (equals_ignore_case(name, "exec")) c.transaction.reset();
}

void fire(Turn& t, Timer* timer) {
  switch (timer->kind()) {
    case TimerKind::kKeyChange:
      t.s.queues.mark_ready(static_cast<WaitQueue*>(timer));
      break;
    case TimerKind::kSessionEnd: {
      const auto end = std::move(t.s.session_ends.extract(static_cast<SessionEnd*>(timer)).mapped());
      end_session_holds(t, end->conn, end->holds, end->at());
      break;
    }
    case TimerKind::kLeaseEnd:
      expire_lease(t, static_cast<Lease*>(timer));
      break;
    case TimerKind::kWaitEnd:
      end_wait_by_timeout(t, static_cast<Waiter*>(timer));
      break;
  }
  serve_ready_queues(t);
}

void fire_due_timers(Turn& t) {
  while (Timer* timer = t.s.timers.take_due(t.now.mono)) {
    t.due = timer->at();
    fire(t, timer);
  }
  t.due = t.now.mono;
}

// One database after the other, the next first the next time, so that a storm in one does not starve the
// others.
void expire_due_entries(Turn& t, size_t budget) {
  for (int i = 0; i < kDatabases && budget > 0; ++i) {
    const DbIndex db = t.s.next_db_to_expire;
    budget = t.keys(db).expire_due(t.now.mono, budget, [&](const Key& key) { find_any(t, db, key); });
    if (budget > 0) t.s.next_db_to_expire = static_cast<DbIndex>((db + 1) % kDatabases);
  }
}

}  // namespace

void run_command(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv,
                 bool may_block) {
  Request r{t, c, command, argv, Reply(c.out, c.protocol), may_block};
  ++t.s.stats.commands;
  if (beyond_memory_limit(t, c, command)) {
    r.reply.error("OOM command not allowed when used memory > 'maxmemory'.");
    return;
  }
  command.handler(r);
}

Engine::Engine(Config config) : s_(std::make_unique<EngineState>(std::move(config))) {}
Engine::~Engine() = default;

ConnId Engine::open(std::string_view peer, std::string_view local, Now now) {
  Conn& c = s_->conns.open();
  c.peer = peer;
  c.local = local;
  c.opened = c.last_active = now.mono;
  return c.id;
}

void Engine::apply(ConnId conn, std::span<const std::string_view> argv, Now now, Effects& fx) {
  Turn t{*s_, now, fx};
  if (s_->timers.any_due(now.mono)) fire_due_timers(t);
  Conn& c = s_->conns.at(conn);
  assert(!argv.empty() && c.blocked_on == nullptr && !c.closing);
  mark_dirty(t, c);
  c.running = true;
  c.last_active = now.mono;
  const size_t answered = c.out.size();
  Reply reply(c.out, c.protocol);
  const Command* command = resolve_command(argv, reply);
  if (command == nullptr) {
    fail_transaction(c, argv[0]);
  } else if (c.last_command = command; is_queued_in_multi(c, *command)) {
    queue_in_multi(c, argv, s_->config.limits, reply);
  } else {
    run_command(t, c, *command, argv, true);
  }
  if (c.out.size() > answered && c.out.view()[answered] == '-') ++s_->stats.errors;
  serve_ready_queues(t);
  flush_later(c);
}

void Engine::reject(ConnId conn, std::string_view why, Effects& fx) {
  Conn& c = s_->conns.at(conn);
  Turn t{*s_, {}, fx};
  mark_dirty(t, c);
  Reply(c.out, c.protocol).error(std::string("ERR Protocol error: ").append(why));
  c.closing = true;
  fx.closes.push_back(conn);
}

void Engine::drop(ConnId conn, Now now, Effects& fx) {
  Turn t{*s_, now, fx};
  fire_due_timers(t);
  Conn& c = s_->conns.at(conn);
  c.blocked_on = nullptr;
  cancel_waits(t, c);
  const absl::btree_set<HoldName> holds = std::move(c.session_holds);
  s_->conns.close(conn);  // first, so that nothing is written to it
  end_session(t, conn, holds);
  serve_ready_queues(t);
}

void Engine::tick(Now now, Effects& fx, size_t budget) {
  Turn t{*s_, now, fx};
  fire_due_timers(t);
  expire_due_entries(t, budget);
  serve_ready_queues(t);
  if (!s_->flushed.empty() && s_->flushed.back()->dismantle_step()) s_->flushed.pop_back();
}

std::optional<TimeMs> Engine::next_deadline() const {
  if (!s_->flushed.empty()) return TimeMs{0};
  std::optional<TimeMs> next = s_->timers.next_due();
  for (const auto& db : s_->dbs) {
    const auto due = db->next_due();
    if (due && (!next || *due < *next)) next = due;
  }
  return next;
}

Buffer& Engine::output(ConnId conn) {
  Conn& c = s_->conns.at(conn);
  c.dirty = false;
  return c.out;
}

bool Engine::blocked(ConnId conn) const { return s_->conns.at(conn).blocked_on != nullptr; }
bool Engine::closing(ConnId conn) const { return s_->conns.at(conn).closing; }
void Engine::note_input(ConnId conn, size_t unparsed_bytes) {
  s_->conns.at(conn).unparsed_bytes = unparsed_bytes;
}

void Engine::note_traffic(uint64_t read_bytes, uint64_t written_bytes) {
  s_->stats.read_bytes += read_bytes;
  s_->stats.written_bytes += written_bytes;
}

void Engine::note_refused_connection() { ++s_->stats.refused_connections; }
const Config& Engine::config() const { return s_->config; }

void Engine::check_invariants() const {
  for (const auto& db : s_->dbs) db->check_invariants();
  s_->queues.check_invariants();
  size_t attached = 0;
  for (DbIndex i = 0; i < kDatabases; ++i) {
    s_->dbs[i]->scan(0, SIZE_MAX, [&](const Entry& e) { attached += e.attached; });
  }
  assert(attached == s_->attachments.size());
  s_->queues.for_each([&](const WaitQueue& q) {
    const Keyspace::Found f = s_->dbs[q.db]->find(q.key());
    assert(f && f->has_queue);
    assert(!q.waiters.empty() || q.delay_until.count > 0 || has_listener(*s_, q.db, f));
    for (const Waiter* w : q.waiters) {
      const Conn& c = s_->conns.at(w->conn);
      assert(w->async || c.blocked_on == w);
    }
  });
}

}  // namespace holdfast
