// The owner of all parts of one engine's state.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/base/page_pool.h"
#include "core/base/timers.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/engine/resumable_request.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/script/script.h"
#include "core/state/attachments.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/memory_use.h"
#include "core/state/pause.h"
#include "core/state/pubsub.h"
#include "core/state/search_steps.h"
#include "core/state/session_end.h"
#include "core/state/stats.h"
#include "core/state/tokens.h"
#include "core/state/tracking.h"
#include "core/state/wait_queue.h"
#include "core/state/watches.h"

namespace holdfast {

struct EngineParts {
  explicit EngineParts(Config c);
  ~EngineParts();
  EngineParts(const EngineParts&) = delete;
  EngineParts& operator=(const EngineParts&) = delete;

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
  Attachments attachments;  // of exclusive holds, by attachment_key()
  SessionEnds session_ends;
  std::optional<ConnId> leaving;  // disconnected, and its cleanup goes on: see disconnect.h
  DeferredFree deferred_free;
  std::deque<ConnId> unfinished;  // connections with a chunked request: see chunked_requests.h
  PubSub pubsub;
  Watches watches;
  Tracking tracking;
  ScriptHost scripts;
  ResumableRequest task;
  Pause pause;
  CommandLog log;
  Acl acl;
  std::deque<AclLogEntry> acl_log;
  std::vector<ConnId> monitors;
  std::array<DbIndex, kDatabases> db_at;
  std::array<DbIndex, kDatabases> db_name;
  Stats stats;
  DbIndex next_db_to_expire = 0;  // rotates, so that many expiries in one database do not starve the others

  // What the functions of the core are given.
  EngineState state{config,       memory,       pages,
                    holders,      dbs,          flushed,
                    tokens,       conns,        timers,
                    queues,       search_steps, leases,
                    journal,      availability, attachments,
                    session_ends, leaving,      deferred_free,
                    unfinished,   pubsub,       watches,
                    tracking,     scripts,      task,
                    pause,        log,          acl,
                    acl_log,      monitors,     db_at,
                    db_name,      stats,        next_db_to_expire};
};

}  // namespace holdfast
