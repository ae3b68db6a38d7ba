// The checks of each second.
#include "io/net/client_checks.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/config.h"
#include "core/engine/figures.h"
#include "io/net/server.h"
#include "io/os/handles.h"
#include "io/os/log.h"

namespace holdfast {

ClientChecks::ClientChecks(Server& server, uv_loop_t* loop)
    : server_(server), memory_upkeep_(server.engine().pages()) {
  uv_timer_init(loop, &timer_);
  timer_.data = this;
  memory_upkeep_.start(loop);
}

void ClientChecks::start() {
  constexpr uint64_t kSecondMs = 1000;
  uv_timer_start(&timer_, on_second, kSecondMs, kSecondMs);
}

void ClientChecks::on_second(uv_timer_t* timer) noexcept {
  ClientChecks* checks = owner_of<ClientChecks>(timer->data);
  checks->close_idle();
  checks->close_slow_handshakes();
  checks->close_excess();
  const uint64_t used = used_memory_bytes(checks->server_.engine());
  checks->log_memory_limit(used);
  checks->memory_upkeep_.look(used);
}

void ClientChecks::end_iteration(TimeMs now) { memory_upkeep_.end_iteration(server_.engine(), now); }

void ClientChecks::close() {
  close_handle(timer_);
  memory_upkeep_.close();
}

void ClientChecks::close_idle() {
  const uint64_t timeout_s = server_.options().idle_timeout_s;
  if (timeout_s == 0) return;
  const Engine& engine = server_.engine();
  const TimeMs at = server_.now().mono;
  const DurationMs allowed{static_cast<int64_t>(timeout_s) * 1000};
  for (Connection* connection : server_.connections().by_slot()) {
    if (connection == nullptr || !is_due(connection->last_active() + allowed, at)) continue;
    if (engine.blocked(connection->id()) || engine.awaits_push(connection->id())) continue;
    if (connection->held()) continue;  // it waits for a reply, which waits for the disk
    connection->close();
  }
}

void ClientChecks::close_slow_handshakes() {
  if (handshakes_.empty()) return;
  const TimeMs at = server_.now().mono;
  const DurationMs allowed{static_cast<int64_t>(server_.options().tls_handshake_s) * 1000};
  while (!handshakes_.empty() && is_due(handshakes_.front().second + allowed, at)) {
    Connection* connection = server_.connections().find(handshakes_.front().first);
    handshakes_.pop_front();
    if (connection != nullptr && connection->handshakes())
      connection->give_up_handshake("it took longer than tls-handshake-timeout");
  }
}

void ClientChecks::close_excess() {
  Engine& engine = server_.engine();
  if (engine.config().limits.memory_bytes == 0) return;
  for (const ConnId id : engine.end_excess(server_.now(), server_.effects())) {
    Connection* connection = server_.connections().find(id);
    if (connection != nullptr) connection->refuse(kExceedsShare);
  }
}

// Logs changes only. A peak that ended within the second counts if a command was rejected meanwhile.
void ClientChecks::log_memory_limit(uint64_t used) {
  const Engine& engine = server_.engine();
  const uint64_t limit = engine.config().limits.memory_bytes;
  const uint64_t rejected = rejected_for_memory(engine);
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
