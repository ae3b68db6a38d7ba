// All state that one engine owns, and the context of a loop iteration. Private to the core.
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
  uint64_t grants = 0;         // granted at once or from a queue
  uint64_t queued_grants = 0;  // granted from a queue
  uint64_t refusals = 0;       // LOCK replied null at once
  uint64_t timeouts = 0;       // waits that timed out
  uint64_t deadlocks = 0;
  uint64_t deadlock_searches_given_up = 0;  // too many owners wait for one another
  uint64_t releases = 0;
  uint64_t renewals = 0;
  uint64_t broken_holds = 0;  // ended by LOCKS BREAK
};

// SESSION holds of a connection that disconnected, during the session grace.
struct SessionEnd : Timer {
  SessionEnd() : Timer(TimerKind::kSessionEnd) {}
  ConnId conn;
  uint32_t number = 0;  // number of its session: see Conn::session
  absl::btree_set<HoldName> holds;
};

// The budget that all searches for deadlocks share: see deadlock.cc.
struct SearchSteps {
  size_t saved = 0;
  TimeMs counted;  // steps are saved up to this time
};

// Memory in use, as far as the engine counts it.
struct MemoryUse {
  static constexpr DurationMs kBetweenLooks{100};
  uint64_t startup_bytes = 0;  // used by an engine without keys and clients
  uint64_t peak_bytes = 0;     // the largest value that was measured
  TimeMs looked_at;            // time of the last measurement for the peak
  bool over_limit = false;     // memory was over its limit when the present request began
  // Total over all buffers of connections: see Buffer::count_in(). For input, only the received bytes
  // count, as the spare room has no pages yet.
  uint64_t buffer_bytes = 0;
  uint64_t text_bytes = 0;  // texts that connections set about themselves, for example their names
};

struct EngineState {
  explicit EngineState(Config c);
  ~EngineState();
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  Config config;
  MemoryUse memory;  // must come before the buffers that count in it
  PagePool pages;
  OwnerCounts holders;  // owners of the locks in `dbs` and `flushed`
  std::array<std::unique_ptr<Keyspace>, kDatabases> dbs;
  std::vector<std::unique_ptr<Keyspace>> flushed;  // freed step by step
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
  std::optional<ConnId> leaving;  // disconnected, and its cleanup goes on: see disconnect.h
  DeferredFree deferred_free;
  std::deque<ConnId> unfinished;  // connections with a chunked request: see chunked_requests.h
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
  // SWAPDB: `db_at` maps a client's database number to its index in `dbs`, and `db_name` maps the index to
  // the number. All code except SELECT and the text of replies uses the index.
  std::array<DbIndex, kDatabases> db_at;
  std::array<DbIndex, kDatabases> db_name;
  Stats stats;
  DbIndex next_db_to_expire = 0;  // rotates, so that many expiries in one database do not starve the others
};

// Frees the requests of a transaction that is done or discarded. `transaction` may be null. Its requests
// may take megabytes, so their memory is freed step by step.
inline void end_transaction(EngineState& s, std::unique_ptr<Transaction> transaction) {
  if (transaction != nullptr) s.deferred_free.take(transaction->requests.memory());
}

inline uint64_t attachment_key(DbIndex db, Handle h) { return (uint64_t{db} << 32U) | h; }
// Returns the attachment of an exclusive hold; null if it has none.
inline const Attachment* attachment_of(const EngineState& s, DbIndex db, const Keyspace::Found& f) {
  if (!f->attached) return nullptr;
  return &s.attachments.find(attachment_key(db, f.handle()))->second;
}

// Sets a text that a connection gave about itself, and counts its memory.
inline void set_text(EngineState& s, std::string& text, std::string_view value) {
  s.memory.text_bytes += value.size() - text.size();
  text = std::string(value);
}

// Given to each function that changes something: the state, the time, and the effects.
struct Context {
  EngineState& s;
  Now now;
  Effects& fx;
  // Everything with this deadline or an earlier one is over. It is before `now` while late timers fire in
  // their order, so that each timer finds the state as it was at its time.
  TimeMs due = now.mono;
  // The connection whose request runs, to tell its own changes from those of other clients. No connection
  // if a timer causes the change.
  ConnId actor = {};
  Keyspace& keys(DbIndex db) const { return *s.dbs[db]; }
};

// Marks the connection as one with output to send.
inline void mark_dirty(Context& ctx, Conn& c) {
  if (c.dirty) return;
  c.dirty = true;
  ctx.fx.dirty.push_back(c.id);
}

// Returns a writer for output that is not the reply to the present request.
inline Reply push_to(Context& ctx, Conn& c) {
  mark_dirty(ctx, c);
  return {c.running ? c.later : c.out, c.protocol};
}

// Returns the largest token, in microseconds since 1970, to which a client may also move the tokens of
// other keys: the clock plus at most 1 hour, and at most half of max-token-lead. The other half is left for
// tokens of servers whose clocks are ahead.
inline uint64_t near_token(const Config& config, const Now& now) {
  constexpr int64_t kMostMs = 3'600'000;
  const int64_t lead_us = std::min(config.max_token_lead.count / 2, kMostMs) * 1000;
  return static_cast<uint64_t>(std::max<int64_t>(now.wall_us, 0) + lead_us);
}

// Exchanges two databases, as clients number them.
inline void swap_databases(EngineState& s, size_t a, size_t b) {
  std::swap(s.db_at[a], s.db_at[b]);
  s.db_name[s.db_at[a]] = static_cast<DbIndex>(a);
  s.db_name[s.db_at[b]] = static_cast<DbIndex>(b);
}

}  // namespace holdfast
