// Admits clients to the server: the limit of their number, protected mode, TLS, the options of their
// sockets. From here on a client has a connection.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"
#include "io/net/acceptor.h"
#include "tls/tls_context.h"

namespace holdfast {

class Connection;
class Server;

class Admission {
 public:
  // `tls` must outlive it: each new connection uses the context that it points to at that time.
  Admission(Server& server, std::vector<ListenSocket> sockets,
            const std::shared_ptr<const TlsContext>& tls);

  Result<Done> listen();
  std::string names() const { return acceptor_.names(); }
  // See Acceptor.
  bool some_wait() const { return acceptor_.some_wait(); }
  void accept_waiting() { acceptor_.accept_waiting(); }
  void end_iteration() { acceptor_.end_iteration(); }
  void close() { acceptor_.close(); }

 private:
  void accept(const ListenSocket& socket, uv_stream_t* listening);
  void admit(std::unique_ptr<Connection> connection, const ListenSocket& socket);
  bool is_denied(const ListenSocket& socket, int fd) const;
  void refuse(std::unique_ptr<Connection> connection, std::string_view why);
  void warn(std::string_view why);

  Server& server_;
  const std::shared_ptr<const TlsContext>& tls_;
  Acceptor acceptor_;
  TimeMs warned_at_{-1000000};
};

}  // namespace holdfast
