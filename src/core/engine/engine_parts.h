// The owner of all parts of one engine's state.
#pragma once

#include <deque>
#include <memory>
#include <vector>

#include "core/base/page_pool.h"
#include "core/command/acl.h"
#include "core/command/command_log.h"
#include "core/engine/resumable_request.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/lock_body.h"
#include "core/script/script.h"
#include "core/state/attachments.h"
#include "core/state/conn.h"
#include "core/state/contended_keys.h"
#include "core/state/context.h"
#include "core/state/empty_places.h"
#include "core/state/history.h"
#include "core/state/journal.h"
#include "core/state/lease_table.h"
#include "core/state/pubsub.h"
#include "core/state/session_end.h"
#include "core/state/tickets.h"
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

  // The functions of the core get the state, with references to the members below. It stands first, as its
  // counters of memory must outlive the buffers that they count.
  EngineState state;

  PagePool pages;
  OwnerCounts holders;                             // owners of the locks in `state.dbs` and `flushed`
  std::vector<std::unique_ptr<Keyspace>> flushed;  // freed step by step
  Tokens tokens;
  ConnTable conns;
  WaitQueues queues;
  EmptyPlaces places;
  LeaseTable leases;
  Journal journal;
  Attachments attachments;  // of exclusive holds, by attachment_key()
  SessionEnds session_ends;
  PubSub pubsub;
  Watches watches;
  Tracking tracking;
  ScriptHost scripts;
  ResumableRequest task;
  CommandLog log;
  Acl acl;
  std::deque<AclLogEntry> acl_log;
  History history;
  ContendedKeys contended;
  Tickets tickets;
};

}  // namespace holdfast
