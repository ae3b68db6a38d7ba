// Which clients the server takes.
#include "io/net/admission.h"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/config.h"
#include "io/net/connection.h"
#include "io/net/server.h"
#include "io/os/handles.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

constexpr DurationMs kBetweenWarnings{1000};

constexpr std::string_view kDenied =
    "-DENIED Holdfast is running in protected mode because protected mode is enabled and no password is "
    "set for the default user. In this mode connections are only accepted from the loopback interface. If "
    "you want to connect from external computers to Holdfast you may adopt one of the following solutions: "
    "1) Set a password for the default user: the option '--requirepass', or 'CONFIG SET requirepass' from "
    "the machine that the server is running on; or, with ACL users, turn the default user off. 2) If only "
    "clients that may do everything can reach the server, disable protected mode: the option "
    "'--protected-mode no', or 'CONFIG SET protected-mode no' from the same machine. NOTE: You only need "
    "to do one of the above things in order for the server to start accepting connections from the "
    "outside.\r\n";

// Detects a dead peer after the keepalive time plus three probes within the same time again.
void set_tcp_options(int fd, int keepalive_s) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (keepalive_s == 0) return;
  const int probes = 3;
  const int interval_s = std::max(1, keepalive_s / probes);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &keepalive_s, sizeof keepalive_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

}  // namespace

Admission::Admission(Server& server, std::vector<ListenSocket> sockets,
                     const std::shared_ptr<const TlsContext>& tls)
    : server_(server),
      tls_(tls),
      acceptor_(std::move(sockets),
                {[this](const ListenSocket& socket, uv_stream_t* listening) { accept(socket, listening); },
                 [this](std::string_view why) { warn(why); }}) {}

Result<Done> Admission::listen() {
  return acceptor_.listen(server_.loop(), static_cast<int>(server_.options().tcp_backlog));
}

void Admission::accept(const ListenSocket& socket, uv_stream_t* listening) {
  server_.now();  // begins the iteration that counts this client
  const bool tcp = socket.unix_path.empty();
  auto connection =
      std::make_unique<Connection>(server_, tcp ? Connection::Kind::kTcp : Connection::Kind::kUnix);
  const int error = uv_accept(listening, connection->stream());
  if (error != 0) {
    warn(uv_strerror(error));
    return connection.release()->abandon();
  }
  const uint32_t most = server_.engine().config().limits.clients;
  if (server_.connections().count() >= most) {
    warn(fmt::format("maxclients {} is reached", most));
    // A TLS client could not read the text.
    return refuse(std::move(connection), socket.tls ? "" : "-ERR max number of clients reached\r\n");
  }
  admit(std::move(connection), socket);
}

void Admission::admit(std::unique_ptr<Connection> connection, const ListenSocket& socket) {
  Engine& engine = server_.engine();
  const int fd = fd_of(connection->stream());
  const std::string_view denial = is_denied(socket, fd) ? kDenied : "";
  if (socket.tls) {
    connection->begin_tls(tls_, denial);
    if (!denial.empty()) engine.record_rejected_connection();
  } else if (!denial.empty()) {
    return refuse(std::move(connection), denial);
  }
  std::string peer = socket.unix_path + ":0";
  std::string local = peer;
  if (socket.unix_path.empty()) {
    set_tcp_options(fd, static_cast<int>(server_.options().tcp_keepalive_s));
    peer = peer_name(fd);
    local = local_name(fd);
  }
  const Now& at = server_.now();
  const ConnId id = engine.open(peer, local, at);
  if (logs(LogLevel::kVerbose))
    log_line(LogLevel::kVerbose, fmt::format("client {} accepted from {}", id.serial, peer),
             {{"client", id.serial}, {"address", peer}});
  server_.begin_client(id, *connection);
  connection.release()->start(id, at.mono);
}

// Protected mode: a server without a password accepts only clients on its own machine.
bool Admission::is_denied(const ListenSocket& socket, int fd) const {
  if (server_.options().protected_mode != "yes" || !socket.unix_path.empty()) return false;
  return server_.engine().allows_unauthenticated() && !is_loopback_peer(fd);
}

void Admission::refuse(std::unique_ptr<Connection> connection, std::string_view why) {
  const uv_buf_t buf = buf_of(why);
  uv_try_write(connection->stream(), &buf, 1);  // the text is lost if the socket is full
  server_.engine().record_rejected_connection();
  connection.release()->abandon();
}

// Logs at most one line a second, because failures may come in bursts.
void Admission::warn(std::string_view why) {
  const TimeMs at = server_.now().mono;
  if (at - warned_at_ < kBetweenWarnings) return;
  warned_at_ = at;
  log_line(LogLevel::kWarning, fmt::format("cannot accept a connection: {}", why));
}

}  // namespace holdfast
