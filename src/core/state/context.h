// The parts of one engine's state, and the context of a loop iteration. Private to the core. Large parts
// are references to types that this header only declares: a file includes the headers of the parts that
// it uses, and sees no other. engine/engine_parts.h owns them. The small parts that nearly every request
// uses are members, because a reference costs each access one more load.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/base/timers.h"
#include "core/base/types.h"
#include "core/keyspace/removed_bodies.h"
#include "core/state/availability.h"
#include "core/state/memory_use.h"
#include "core/state/pause.h"
#include "core/state/search_steps.h"
#include "core/state/stats.h"

namespace holdfast {

class Acl;
struct AclLogEntry;
class Attachments;
class CommandLog;
class ConnTable;
class EmptyPlaces;
class ContendedKeys;
struct Effects;
class History;
struct Journal;
class Keyspace;
class LeaseTable;
class OwnerCounts;
class PagePool;
class PubSub;
struct ResumableRequest;
class ScriptHost;
class SessionEnds;
struct Tickets;
class Tokens;
class Tracking;
class WaitQueues;
class Watches;

struct EngineState {
  PagePool& pages;
  OwnerCounts& holders;                             // owners of the locks in `dbs` and `flushed`
  std::vector<std::unique_ptr<Keyspace>>& flushed;  // freed step by step
  Tokens& tokens;
  ConnTable& conns;
  WaitQueues& queues;
  EmptyPlaces& places;
  LeaseTable& leases;
  Journal& journal;
  Attachments& attachments;  // of exclusive holds, by attachment_key()
  SessionEnds& session_ends;
  PubSub& pubsub;
  Watches& watches;
  Tracking& tracking;
  ScriptHost& scripts;
  ResumableRequest& task;
  CommandLog& log;
  Acl& acl;
  std::deque<AclLogEntry>& acl_log;
  History& history;
  ContendedKeys& contended;
  Tickets& tickets;

  Config config;
  std::array<std::unique_ptr<Keyspace>, kDatabases> dbs;
  // SWAPDB: `db_at` maps a client's database number to its index in `dbs`, and `db_name` maps the index to
  // the number. All code except SELECT and the text of replies uses the index.
  std::array<DbIndex, kDatabases> db_at = {};
  std::array<DbIndex, kDatabases> db_name = {};
  Timers timers = {};
  DeferredFree deferred_free = {};
  RemovedBodies removed = {};
  Stats stats = {};
  MemoryUse memory = {};
  Availability availability = {};
  Pause pause = {};
  SearchSteps search_steps = {};
  std::optional<ConnId> leaving = {};  // disconnected; its cleanup continues: see disconnect.h
  std::deque<ConnId> unfinished = {};  // connections with a chunked request: see chunked_requests.h
  std::vector<ConnId> monitors = {};
  // The key of the request that runs on a copy of it; null if none does: see remote_requests.h.
  const std::string* remote_key = nullptr;
  DbIndex next_db_to_expire = 0;  // rotates, so that many expiries in one database do not starve the others
  bool remote_overran = false;    // the script of that request ran too long, and was ended
};

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

// Exchanges two databases, as clients number them.
inline void swap_databases(EngineState& s, size_t a, size_t b) {
  std::swap(s.db_at[a], s.db_at[b]);
  s.db_name[s.db_at[a]] = static_cast<DbIndex>(a);
  s.db_name[s.db_at[b]] = static_cast<DbIndex>(b);
}

}  // namespace holdfast
