// Opens the sockets that clients connect to, and says in one line why it cannot. Knows no loop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/config/options.h"
#include "io/os/result.h"

namespace holdfast {

// A socket that listens. Whoever has it closes `fd`, and removes the file of a Unix socket.
struct ListenSocket {
  int fd = -1;
  std::string name;       // "127.0.0.1:7379", "[::1]:7379", or the path
  std::string unix_path;  // empty for TCP
  dev_t device = 0;       // of the Unix socket's file, so that only our own file is ever removed
  ino_t inode = 0;
  bool tls = false;
};

struct Listening {
  std::vector<ListenSocket> sockets;
  uint16_t tcp_port = 0;  // without TLS; 0: none
  uint16_t tls_port = 0;
  // As INFO shows it.
  uint16_t port() const { return tcp_port != 0 ? tcp_port : tls_port; }
};

// All addresses and the Unix socket that `options` name, or the first failure. On failure sockets stay
// open: the caller is about to end the process.
Result<Listening> open_listeners(const Options& options);

// Removes the file of a Unix socket, unless another server has put its own there meanwhile.
void remove_socket_file(const ListenSocket& socket);

// A socket's own or its peer's address as CLIENT LIST shows it: "127.0.0.1:4711", "[::1]:4711".
std::string local_name(int fd);
std::string peer_name(int fd);
// Whether the peer is this machine, by an address that no other can have.
bool is_loopback_peer(int fd);

}  // namespace holdfast
