// Socket activation: listening sockets that the service manager opened and passed to this process, by
// systemd's protocol ($LISTEN_FDS, $LISTEN_PID, $LISTEN_FDNAMES). The manager keeps them open while the
// server restarts: meanwhile clients wait, and none is refused. Needs no library.
#pragma once

#include <cstdint>
#include <vector>

#include "io/net/listen.h"
#include "io/os/result.h"

namespace holdfast {

// A socket of a kind replaces the addresses that the options name for this kind.
struct PassedSockets {
  std::vector<ListenSocket> sockets;
  uint16_t tcp_port = 0;  // of the first TCP socket without TLS; 0: none was passed
  uint16_t tls_port = 0;  // of the first one with the name "tls" (FileDescriptorName=tls)
  bool has_unix = false;
};

// Takes the sockets and removes the variables from the environment, so that no child process takes them
// too. Without the variables, or if they are for another process, the result is empty. Fails if a
// descriptor is not a listening stream socket.
Result<PassedSockets> take_passed_sockets();

}  // namespace holdfast
