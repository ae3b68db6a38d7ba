// All that one engine owns, and what one turn of the loop gives it. Private to the core.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/base/timers.h"
#include "core/codec/reply.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/effects.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/pause.h"
#include "core/state/pubsub.h"
#include "core/state/tokens.h"
#include "core/state/tracking.h"
#include "core/state/wait_queue.h"
#include "core/state/watches.h"

namespace holdfast {

class ScriptHost;
struct ResumableRequest;

// Counters since the start, for INFO.
struct Stats {
  uint64_t commands = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t refused_connections = 0;
  uint64_t expired_keys = 0;
  uint64_t keyspace_hits = 0;
  uint64_t keyspace_misses = 0;
  uint64_t grants = 0;         // at once and from a queue
  uint64_t queued_grants = 0;  // those from a queue
  uint64_t refusals = 0;       // LOCK answered null at once
  uint64_t timeouts = 0;       // waits that ran out
  uint64_t deadlocks = 0;
  uint64_t deadlock_searches_given_up = 0;  // too many wait for one another
  uint64_t releases = 0;
  uint64_t renewals = 0;
  uint64_t broken_holds = 0;  // by LOCKS BREAK
};

// SESSION holds of a connection that has gone, during the session grace.
struct SessionEnd : Timer {
  SessionEnd() : Timer(TimerKind::kSessionEnd) {}
  ConnId conn;
  uint32_t number = 0;  // of its session
  absl::btree_set<HoldName> holds;
};

// What searches for deadlocks may take together: see deadlock.cc.
struct SearchSteps {
  size_t saved = 0;
  TimeMs counted;  // the time up to which steps have been saved
};

// Memory in use, as far as the engine counts it.
struct MemoryUse {
  static constexpr DurationMs kBetweenLooks{100};
  uint64_t startup_bytes = 0;  // what an engine without a key or client takes
  uint64_t peak_bytes = 0;     // the most that was seen
  TimeMs looked_at;            // for the peak
  bool over_limit = false;     // when the present request began
  // Of all buffers of connections: see Buffer::count_in(). Of input what has come, as the room for more is
  // not touched yet.
  uint64_t buffer_bytes = 0;
  uint64_t text_bytes = 0;  // of what connections call themselves
};

struct EngineState {
  explicit EngineState(Config c);
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  Config config;
  MemoryUse memory;  // before the buffers that count in it
  PagePool pages;
  OwnerCounts holders;  // of the locks in `dbs` and `flushed`
  std::array<std::unique_ptr<Keyspace>, kDatabases> dbs;
  std::vector<std::unique_ptr<Keyspace>> flushed;  // given back to the system step by step
  Tokens tokens;
  ConnTable conns;
  Timers timers;
  WaitQueues queues;
  SearchSteps search_steps;
  LeaseTable leases;
  Journal journal;
  Availability availability;
  absl::flat_hash_map<uint64_t, Attachment> attachments;  // of exclusive holds, by attachment_key()
  absl::flat_hash_map<SessionEnd*, std::unique_ptr<SessionEnd>> session_ends;
  std::optional<ConnId> leaving;  // gone, and still being taken apart: see disconnect.h
  DeferredFree deferred_free;
  std::deque<ConnId> unfinished;  // their requests go in chunks: see chunked_requests.h
  PubSub pubsub;
  Watches watches;
  Tracking tracking;
  std::unique_ptr<ScriptHost> scripts;
  std::unique_ptr<ResumableRequest> task;
  Pause pause;
  CommandLog log;
  Acl acl;
  AclLog acl_log;
  std::vector<ConnId> monitors;
  // SWAPDB: which of `dbs` a client means by a number, and the number by which clients know each of `dbs`.
  // Everything but SELECT and what is shown goes by the place in `dbs`.
  std::array<DbIndex, kDatabases> db_at;
  std::array<DbIndex, kDatabases> db_name;
  Stats stats;
  DbIndex next_db_to_expire = 0;  // so that one database's storm does not starve the others
};

// It is done, or given up; null where there was none. What it kept may be megabytes.
inline void end_transaction(EngineState& s, std::unique_ptr<Transaction> transaction) {
  if (transaction != nullptr) s.deferred_free.take(transaction->requests.memory());
}

inline uint64_t attachment_key(DbIndex db, Handle h) { return (uint64_t{db} << 32U) | h; }
// An exclusive hold's attachment; null where it has none.
inline const Attachment* attachment_of(const EngineState& s, DbIndex db, const Keyspace::Found& f) {
  if (!f->attached) return nullptr;
  return &s.attachments.find(attachment_key(db, f.handle()))->second;
}

// What a connection calls itself, which counts as memory.
inline void set_text(EngineState& s, std::string& text, std::string_view value) {
  s.memory.text_bytes += value.size() - text.size();
  text = std::string(value);
}

// What every function that changes something is given: the state, the time, and where effects go.
struct Context {
  EngineState& s;
  Now now;
  Effects& fx;
  // What has this deadline or an earlier one is over. Behind `now` while timers that fire late are taken in
  // their order, so that each finds the world as it was at its time.
  TimeMs due = now.mono;
  // Whose request runs: its own changes are its own. None for what time does.
  ConnId actor = {};
  Keyspace& keys(DbIndex db) const { return *s.dbs[db]; }
};

// The connection has output that must be sent.
inline void mark_dirty(Context& ctx, Conn& c) {
  if (c.dirty) return;
  c.dirty = true;
  ctx.fx.dirty.push_back(c.id);
}

// Where something that is no reply to the present request is written.
inline Reply push_to(Context& ctx, Conn& c) {
  mark_dirty(ctx, c);
  return {c.running ? c.later : c.out, c.protocol};
}

// How far a client may move the tokens of other keys with those of its own: an hour ahead of the clock, and
// half of what it may move its own. Others need the rest for tokens of servers that are ahead.
inline uint64_t near_token(const Config& config, const Now& now) {
  constexpr int64_t kMostMs = 3'600'000;
  const int64_t lead_us = std::min(config.max_token_lead.count / 2, kMostMs) * 1000;
  return static_cast<uint64_t>(std::max<int64_t>(now.wall_us, 0) + lead_us);
}

// What two numbers of databases mean to clients changes places.
inline void swap_databases(EngineState& s, size_t a, size_t b) {
  std::swap(s.db_at[a], s.db_at[b]);
  s.db_name[s.db_at[a]] = static_cast<DbIndex>(a);
  s.db_name[s.db_at[b]] = static_cast<DbIndex>(b);
}

}  // namespace holdfast
