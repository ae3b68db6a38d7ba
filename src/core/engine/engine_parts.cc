// The parts of an engine, made and destroyed.
#include "core/engine/engine_parts.h"

#include <cassert>
#include <string>
#include <utility>

namespace holdfast {

EngineParts::EngineParts(Config c)
    : config(std::move(c)),
      tokens(config.token_floor),
      leases(config.limits.lease_memory),
      scripts(config.limits.script_memory_bytes, config.limits.script_run_bytes),
      task(state),
      acl(config.requirepass) {
  // The shell has validated the text before it made the engine.
  const std::string wrong = acl.load(config.acl_text, config.acl_source);
  assert(wrong.empty());
  for (const AheadToken& saved : config.tokens_ahead) tokens.restore(saved);
  scripts.time.clock_us = config.clock_us;
  scripts.time.pause = [this] { task.fiber.pause(); };
  scripts.log = config.log;
  for (auto& db : dbs) db = std::make_unique<Keyspace>(config.hash_seed, pages);
  for (DbIndex i = 0; i < kDatabases; ++i) db_at[i] = db_name[i] = i;
  memory.startup_bytes = sizeof(EngineParts) + kDatabases * sizeof(Keyspace) + scripts.memory_bytes();
}

// Timers must be disarmed before their owners are destroyed. A running script must end first, as its stack
// is freed.
EngineParts::~EngineParts() {
  while (task.fiber.under_way()) {
    scripts.kill("ERR Script killed: the server stops.");
    task.fiber.resume();
  }
  while (timers.take_due(kNever) != nullptr) {
  }
}

}  // namespace holdfast
