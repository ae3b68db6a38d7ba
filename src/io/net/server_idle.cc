// Once a second: closes connections that were idle, or in their TLS handshake, for too long, or that take
// too much memory, logs when the memory limit is reached, and gives freed memory back to the system.
#include "io/net/server.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/config.h"
#include "core/command/command_log.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"
#include "io/os/log.h"

namespace holdfast {

void Server::on_idle_check(uv_timer_t* timer) noexcept {
  auto* server = static_cast<Server*>(timer->data);
  server->close_idle();
  server->close_slow_handshakes();
  server->close_excess();
  const uint64_t used = used_memory_bytes(server->engine_.state());
  server->log_memory_limit(used);
  server->memory_upkeep_.look(used);
}

void Server::close_idle() {
  if (options_.idle_timeout_s == 0) return;
  const TimeMs at = now().mono;
  const DurationMs allowed{static_cast<int64_t>(options_.idle_timeout_s) * 1000};
  for (Connection* connection : connections_) {
    if (connection == nullptr || !is_due(connection->last_active() + allowed, at)) continue;
    if (engine_.blocked(connection->id()) || engine_.awaits_push(connection->id())) continue;
    if (connection->held()) continue;  // it waits for a reply, which waits for the disk
    connection->close();
  }
}

void Server::close_slow_handshakes() {
  if (handshakes_.empty()) return;
  const TimeMs at = now().mono;
  const DurationMs allowed{static_cast<int64_t>(options_.tls_handshake_s) * 1000};
  while (!handshakes_.empty() && is_due(handshakes_.front().second + allowed, at)) {
    Connection* connection = find(handshakes_.front().first);
    handshakes_.pop_front();
    if (connection != nullptr && connection->handshakes())
      connection->give_up_handshake("it took longer than tls-handshake-timeout");
  }
}

void Server::close_excess() {
  if (engine_.config().limits.memory_bytes == 0) return;
  for (const ConnId id : engine_.end_excess(now(), effects_)) {
    if (Connection* connection = find(id); connection != nullptr) connection->refuse(kExceedsShare);
  }
}

// Logs changes only. A peak that ended within the second counts if a command was rejected meanwhile.
void Server::log_memory_limit(uint64_t used) {
  const EngineState& s = engine_.state();
  const uint64_t limit = s.config.limits.memory_bytes;
  const auto found = s.log.errors().find("OOM");
  const uint64_t rejected = found == s.log.errors().end() ? 0 : found->second;
  const bool rejects = rejected > std::exchange(rejected_for_memory_, rejected);
  const bool full = limit != 0 && (used > limit || rejects);
  if (full == std::exchange(memory_full_, full)) return;
  const LogFields fields = {{"used_bytes", used}, {"maxmemory", limit}};
  if (full) {
    log_line(
        LogLevel::kWarning,
        fmt::format("maxmemory is reached: {} of {} bytes are used; commands that need memory get -OOM",
                    used, limit),
        fields);
  } else {
    log_line(LogLevel::kNotice,
             fmt::format("memory is available again: {} bytes are used, maxmemory is {}", used, limit),
             fields);
  }
}

}  // namespace holdfast
