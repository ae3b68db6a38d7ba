// See sd_listen_fds(3): the sockets are the descriptors from 3 up.
#include "io/net/passed_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

namespace holdfast {
namespace {

constexpr int kFirstFd = 3;
constexpr int kMaxFds = 64;
constexpr std::string_view kTlsName = "tls";

std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

// Returns -1 if the socket has no such option.
int socket_option(int fd, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  return getsockopt(fd, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

// Returns the path of a Unix socket; "@" and the name of an abstract one.
std::string unix_name(int fd) {
  sockaddr_un address{};
  socklen_t length = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "@";
  const size_t bytes = length - offsetof(sockaddr_un, sun_path);
  if (bytes == 0 || address.sun_path[0] != '\0') return bytes == 0 ? "@" : address.sun_path;
  return "@" + std::string(address.sun_path + 1, bytes - 1);
}

uint16_t port_of(const std::string& name) {
  return static_cast<uint16_t>(std::stoul(name.substr(name.rfind(':') + 1)));
}

Result<Done> take_socket(int fd, const std::string& name, PassedSockets& passed) {
  const int domain = socket_option(fd, SO_DOMAIN);
  const bool tcp = domain == AF_INET || domain == AF_INET6;
  const bool stream = socket_option(fd, SO_TYPE) == SOCK_STREAM && socket_option(fd, SO_ACCEPTCONN) == 1;
  if (!stream || (!tcp && domain != AF_UNIX)) {
    return Failure{
        fmt::format("descriptor {} of LISTEN_FDS is not a listening stream socket; use "
                    "ListenStream= and Accept=no in the socket unit",
                    fd)};
  }
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  if (!tcp) {
    // Without the file's inode, so that the file stays: it is the manager's.
    passed.sockets.push_back({fd, unix_name(fd), unix_name(fd), 0, 0, false});
    passed.has_unix = true;
    return Done{};
  }
  const bool tls = name == kTlsName;
  const std::string address = local_name(fd);
  passed.sockets.push_back({fd, address + (tls ? " (TLS)" : ""), "", 0, 0, tls});
  uint16_t& port = tls ? passed.tls_port : passed.tcp_port;
  if (port == 0) port = port_of(address);
  return Done{};
}

}  // namespace

Result<PassedSockets> take_passed_sockets() {
  const std::string count = take_variable("LISTEN_FDS");
  const std::string pid = take_variable("LISTEN_PID");
  std::istringstream names(take_variable("LISTEN_FDNAMES"));
  PassedSockets passed;
  if (count.empty() || pid != std::to_string(getpid())) return passed;
  int number = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), number);
  if (error != std::errc() || *end != '\0' || number < 0 || number > kMaxFds)
    return Failure{fmt::format("LISTEN_FDS: expected a number from 0 to {}, got '{}'", kMaxFds, count)};
  for (int fd = kFirstFd; fd < kFirstFd + number; ++fd) {
    std::string name;
    std::getline(names, name, ':');
    if (Result<Done> taken = take_socket(fd, name, passed); !taken) return Failure{taken.error()};
  }
  return passed;
}

}  // namespace holdfast
