// The checks of readiness. None of them walks keys, waiters or connections.
#include "core/engine/readiness.h"

#include <algorithm>

#include "core/base/config.h"
#include "core/engine/engine.h"
#include "core/state/availability.h"
#include "core/state/conn.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"

namespace holdfast {

namespace {

ReadyCheck check(std::string_view name, std::string why) { return {name, why.empty(), std::move(why)}; }

std::string why_recovering(const Availability& availability, Now now) {
  if (is_due(availability.recovering_until, now.mono)) return "";
  return "locks held before the restart may still be in use; no new locks for " +
         std::to_string((availability.recovering_until - now.mono).count) + " ms";
}

std::string why_no_snapshot(const Config& config) {
  if (!config.storage.facts) return "";
  for (const auto& [name, value] : config.storage.facts()) {
    if (name == "rdb_last_bgsave_status" && value != "ok") return "the last snapshot failed; see the log";
  }
  return "";
}

std::string why_memory(const EngineState& s) {
  const uint64_t limit = s.config.limits.memory_bytes;
  const uint64_t used = limit == 0 ? 0 : used_memory_bytes(s);
  if (used <= limit) return "";
  return "used memory is " + std::to_string(used) + " bytes; maxmemory is " + std::to_string(limit) +
         " bytes";
}

std::string why_clients(const EngineState& s) {
  const uint32_t limit = s.config.limits.clients;
  if (s.conns.size() < limit) return "";
  return std::to_string(s.conns.size()) + " clients are connected; maxclients is " + std::to_string(limit);
}

}  // namespace

std::vector<ReadyCheck> readiness(const EngineState& s, Now now) {
  return {check("loading", s.availability.loading ? "the server reads its data" : ""),
          check("recovering", why_recovering(s.availability, now)),
          check("journal", s.availability.refusal),
          check("snapshot", why_no_snapshot(s.config)),
          check("memory", why_memory(s)),
          check("clients", why_clients(s))};
}

std::vector<ReadyCheck> readiness(const Engine& engine, Now now) { return readiness(engine.state(), now); }

bool is_ready(const std::vector<ReadyCheck>& checks) {
  return std::ranges::all_of(checks, [](const ReadyCheck& c) { return c.ok; });
}

}  // namespace holdfast
