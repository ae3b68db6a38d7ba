// Figures from counters: nothing here walks keys, waiters or connections.
#include "io/http/info_json.h"

#include <algorithm>

#include "core/base/config.h"
#include "core/base/version.h"
#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "core/engine/readiness.h"
#include "io/http/json.h"

namespace holdfast {
namespace {

void append_number(std::string& out, std::string_view name, uint64_t value) {
  append_field(out, name, static_cast<int64_t>(value));
}

void append_server(std::string& out, const Engine& engine, Now now, const ServerFacts& facts) {
  out += "\"server\":{";
  append_field(out, "version", kHoldfastVersion);
  append_field(out, "run_id", engine.config().run_id);
  append_field(out, "uptime_s", (now.mono - facts.started).count / 1000);
  append_field(out, "port", facts.port);
  close_json(out, '}');
  out += ',';
}

void append_checks(std::string& out, const Engine& engine, Now now) {
  const std::vector<ReadyCheck> checks = readiness(engine, now);
  append_field(out, "ready", is_ready(checks));
  out += "\"checks\":[";
  for (const ReadyCheck& check : checks) {
    out += '{';
    append_field(out, "name", check.name);
    append_field(out, "ok", check.ok);
    append_field(out, "why", check.why);
    close_json(out, '}');
    out += ',';
  }
  close_json(out, ']');
  out += ',';
}

void append_locks(std::string& out, const EngineFigures& figures) {
  out += "\"locks\":{";
  append_number(out, "exclusive", figures.locks.exclusive);
  append_number(out, "shared", figures.locks.shared);
  append_number(out, "semaphore", figures.locks.semaphores);
  close_json(out, '}');
  out += ',';
  append_number(out, "waiters", figures.waiters);
  append_field(out, "oldest_waiter_ms", figures.oldest_wait.count);
  append_number(out, "longest_queue", figures.longest_queue);
  append_number(out, "grants_total", figures.grants);
  append_number(out, "queued_grants_total", figures.queued_grants);
}

// The waits of all modes, cumulative over the bounds.
void append_waits(std::string& out, const EngineFigures& figures) {
  std::string bounds = "\"bounds_ms\":[";
  std::string counts = "\"counts\":[";
  uint64_t all = 0;
  for (size_t n = 0; n <= DurationHistogram::kBounds; ++n) {
    all += figures.waits[n];
    counts += std::to_string(all) + ',';
    if (n == DurationHistogram::kBounds) break;
    const uint64_t us = DurationHistogram::bound_us(n);
    bounds +=
        std::to_string(us / 1000) + (us % 1000 == 0 ? "" : "." + std::to_string(us % 1000 / 100)) + ',';
  }
  close_json(bounds, ']');
  close_json(counts, ']');
  out += "\"wait\":{" + bounds + ',' + counts + "},";
}

bool has_command(const AclUser& user, std::string_view name) {
  const Command* const command = find_command(name);
  if (command == nullptr) return false;
  const size_t row = row_index(*command);
  return user.unlimited || user.root.commands[row] ||
         std::ranges::any_of(user.selectors, [row](const AclSelector& s) { return s.commands[row]; });
}

}  // namespace

std::string common_info(const Engine& engine, Now now, const ServerFacts& facts) {
  const EngineFigures figures = figures_of(engine, now.mono);
  const Limits& limits = engine.config().limits;
  std::string out;
  append_server(out, engine, now, facts);
  append_checks(out, engine, now);
  append_locks(out, figures);
  append_waits(out, figures);
  append_number(out, "memory_bytes", used_memory_bytes(engine));
  append_number(out, "memory_limit_bytes", limits.memory_bytes);
  append_number(out, "connected_clients", figures.clients);
  append_number(out, "max_clients", limits.clients);
  append_field(out, "now_ms", now.wall_us / 1000);
  out.pop_back();
  return out;
}

std::string info_of(const AclUser& user, const std::string& common) {
  std::string out = "{";
  append_field(out, "user", user.name);
  out += "\"rights\":{";
  append_field(out, "break", has_command(user, "locks|break"));
  append_field(out, "revoke", has_command(user, "locks|revoke"));
  close_json(out, '}');
  return out + ',' + common + '}';
}

}  // namespace holdfast
