// Once a second: closes connections that were idle, or in their TLS handshake, for too long.
#include "io/net/server.h"

namespace holdfast {

void Server::on_idle_check(uv_timer_t* timer) noexcept {
  auto* server = static_cast<Server*>(timer->data);
  server->close_idle();
  server->close_slow_handshakes();
}

void Server::close_idle() {
  if (options_.idle_timeout_s == 0) return;
  const TimeMs at = now().mono;
  const DurationMs allowed{static_cast<int64_t>(options_.idle_timeout_s) * 1000};
  for (Connection* connection : connections_) {
    if (connection == nullptr || !is_due(connection->last_active() + allowed, at)) continue;
    if (engine_.blocked(connection->id()) || engine_.awaits_push(connection->id())) continue;
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

}  // namespace holdfast
