// The parts of an engine, made and destroyed.
#include "core/engine/engine_parts.h"

#include <cassert>
#include <memory>
#include <string>
#include <utility>

#include "core/engine/run_command.h"

namespace holdfast {

EngineParts::EngineParts(Config c)
    : state{.pages = pages,
            .holders = holders,
            .flushed = flushed,
            .tokens = tokens,
            .conns = conns,
            .queues = queues,
            .places = places,
            .leases = leases,
            .journal = journal,
            .attachments = attachments,
            .session_ends = session_ends,
            .pubsub = pubsub,
            .watches = watches,
            .tracking = tracking,
            .scripts = scripts,
            .task = task,
            .log = log,
            .acl = acl,
            .acl_log = acl_log,
            .history = history,
            .contended = contended,
            .tickets = tickets,
            .config = std::move(c),
            .dbs = {}},
      tokens(state.config.token_floor),
      leases(state.config.limits.max_ended_leases),
      scripts(state.config.limits.script_memory_bytes, state.config.limits.script_run_bytes),
      task(state),
      acl(state.config.requirepass),
      history(state.config.limits.history_events) {
  // The shell has validated the text before it made the engine.
  const std::string wrong = acl.load(state.config.acl_text, state.config.acl_source);
  assert(wrong.empty());
  for (const AheadToken& saved : state.config.tokens_ahead) tokens.restore(saved);
  scripts.time.clock_us = state.config.clock_us;
  scripts.time.pause = [this] { task.fiber.pause(); };
  scripts.run_request = run_command;
  scripts.log = state.config.log;
  for (auto& db : state.dbs) db = std::make_unique<Keyspace>(state.config.hash_seed, pages, state.removed);
  for (DbIndex i = 0; i < kDatabases; ++i) state.db_at[i] = state.db_name[i] = i;
  state.memory.startup_bytes = sizeof(EngineParts) + kDatabases * sizeof(Keyspace) + scripts.memory_bytes();
}

// Timers must be disarmed before their owners are destroyed. A running script must end first, as its stack
// is freed. The keyspaces give their pages back to the pool, which is destroyed before the state.
EngineParts::~EngineParts() {
  while (task.fiber.under_way()) {
    scripts.kill("ERR Script killed: the server stops.");
    task.fiber.resume();
  }
  while (state.timers.take_due(kNever) != nullptr) {
  }
  state.dbs = {};
}

}  // namespace holdfast
