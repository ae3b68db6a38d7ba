// A server whose replies the test sends.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "client.h"
#include "process.h"

namespace holdfast::integration {

class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bind(fd_.get(), reinterpret_cast<sockaddr*>(&address_), size_);
    listen(fd_.get(), 0);
    getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address_), &size_);
  }
  int port() const { return ntohs(address_.sin_port); }
  int fd() const { return fd_.get(); }
  Client accept() { return Client(Fd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC))); }

 private:
  Fd fd_;
  sockaddr_in address_{};
  socklen_t size_ = sizeof address_;
};

}  // namespace holdfast::integration
