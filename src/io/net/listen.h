// Opens the sockets that clients connect to; an error is one line that says why. Does not use the loop.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "io/config/options.h"
#include "io/os/result.h"

namespace holdfast {

// A listening socket. Its owner closes `fd`, and removes the file of a Unix socket.
struct ListenSocket {
  int fd = -1;
  std::string name;       // "127.0.0.1:7379", "[::1]:7379", or the path
  std::string unix_path;  // empty for TCP
  dev_t device = 0;       // of the Unix socket's file, so that the server removes only its own file
  ino_t inode = 0;
  bool tls = false;
};

struct Listening {
  std::vector<ListenSocket> sockets;
  uint16_t tcp_port = 0;  // without TLS; 0: none
  uint16_t tls_port = 0;
  // Returns the port that INFO shows.
  uint16_t port() const { return tcp_port != 0 ? tcp_port : tls_port; }
};

// Takes the sockets that a service manager passed (passed_sockets.h). Opens all other addresses and the
// Unix socket that `options` name. Returns the first failure. Then sockets that are already open stay open,
// because the caller ends the process.
Result<Listening> open_listeners(const Options& options);

// Opens the sockets of the HTTP door. Returns an empty list if http-port is 0.
Result<std::vector<ListenSocket>> open_http_listeners(const Options& options);

// Checks all addresses without their ports, and the path of the Unix socket. Another server may use the
// ports or the socket at present. Listens on free ports for a moment.
Result<Done> check_listeners(const Options& options);

// Removes the file of a Unix socket, unless another server has replaced it by its own.
void remove_socket_file(const ListenSocket& socket);

// Return a socket's own address or its peer's, as CLIENT LIST shows it: "127.0.0.1:4711", "[::1]:4711".
std::string local_name(int fd);
std::string peer_name(int fd);
// Whether the peer is on this machine: its address is a loopback address, which no other machine can have.
bool is_loopback_peer(int fd);

}  // namespace holdfast
