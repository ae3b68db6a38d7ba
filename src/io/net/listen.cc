// Uses plain sockets without libuv, so that every error is known before the loop starts.
#include "io/net/listen.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <sstream>
#include <utility>

#include "io/net/passed_sockets.h"
#include "io/os/log.h"
#include "io/os/replace_file.h"

namespace holdfast {
namespace {

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// One word of --bind: a leading "-" marks an address that may be missing on the machine.
struct BindAddress {
  std::string host;
  bool optional = false;
};

BindAddress parse_address(std::string word) {
  BindAddress address;
  address.optional = word.starts_with('-');
  if (address.optional) word.erase(0, 1);
  if (word == "*") word = "0.0.0.0";
  if (word == "::*") word = "::";
  address.host = std::move(word);
  return address;
}

std::string address_name(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, text.data(), text.size());
    return fmt::format("{}:{}", text.data(), ntohs(in.sin_port));
  }
  if (address.ss_family != AF_INET6) return "?:0";
  sockaddr_in6 in{};
  std::memcpy(&in, &address, sizeof in);
  inet_ntop(AF_INET6, &in.sin6_addr, text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), ntohs(in.sin6_port));
}

using NameCall = int (*)(int, sockaddr*, socklen_t*);

std::string name_of(int fd, NameCall call) {
  sockaddr_storage address{};
  socklen_t length = sizeof address;
  // The peer may have disconnected already: the connection lives until its end is read.
  if (call(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?:0";
  return address_name(address);
}

uint16_t port_of(int fd) {
  const std::string name = local_name(fd);
  return static_cast<uint16_t>(std::stoul(name.substr(name.rfind(':') + 1)));
}

bool is_unavailable_address(int error) {
  return error == EADDRNOTAVAIL || error == EAFNOSUPPORT || error == EPROTONOSUPPORT;
}

std::string tcp_advice(int error, const std::string& option, const std::string& bind_option) {
  if (error == EADDRINUSE) return "another server uses it; stop that server or choose another " + option;
  if (error == EACCES) return "ports below 1024 need root; choose a " + option + " from 1024 up";
  if (is_unavailable_address(error)) return "this machine has no such address; check " + bind_option;
  return "check " + bind_option + " and " + option;
}

// Returns a listening socket, or -1 with errno set.
int listen_on(const addrinfo& address, int backlog) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  // Allows "::" and "0.0.0.0" at the same time.
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, backlog) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

// A TCP port: the option that names it, and its number.
struct Port {
  std::string option;  // "--port"
  uint16_t number;     // 0: any free one; all addresses use the port that the first one got
  bool tls;
  std::string bind;         // the addresses
  std::string bind_option;  // "--bind"
};

Result<Done> open_tcp(const BindAddress& address, const Options& options, Port& wanted,
                      std::vector<ListenSocket>& sockets) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* first = nullptr;
  const std::string port = std::to_string(wanted.number);
  if (const int error = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &first); error != 0) {
    return Failure{fmt::format("cannot resolve the address '{}': {}; check {}", address.host,
                               gai_strerror(error), wanted.bind_option)};
  }
  const Addresses addresses(first, &freeaddrinfo);
  const int fd = listen_on(*first, static_cast<int>(options.tcp_backlog));
  if (fd >= 0) {
    wanted.number = port_of(fd);
    sockets.push_back({fd, local_name(fd) + (wanted.tls ? " (TLS)" : ""), "", 0, 0, wanted.tls});
    return Done{};
  }
  const int error = errno;
  const std::string why =
      fmt::format("cannot listen on {} port {}: {}; {}", address.host, port, std::strerror(error),
                  tcp_advice(error, wanted.option, wanted.bind_option));
  if (!address.optional || !is_unavailable_address(error)) return Failure{why};
  log_line(LogLevel::kVerbose, fmt::format("address skipped: {}", why));
  return Done{};
}

// Opens all addresses of `bind` with this port. Returns the number of the port, the same for all.
Result<uint16_t> open_all_tcp(const Options& options, Port port, std::vector<ListenSocket>& sockets) {
  const size_t before = sockets.size();
  std::istringstream words(port.bind);
  std::string word;
  while (words >> word) {
    Result<Done> opened = open_tcp(parse_address(word), options, port, sockets);
    if (!opened) return Failure{opened.error()};
  }
  if (sockets.size() == before)
    return Failure{"cannot listen on any of the addresses; check " + port.bind_option};
  return port.number;
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Whether a server listens on the socket file.
bool is_alive(const std::string& path) {
  const sockaddr_un address = unix_address(path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return true;  // unknown: do not remove the file
  const int rc = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const bool dead = rc != 0 && errno == ECONNREFUSED;
  close(fd);
  return !dead;
}

// Whether a server can listen at the path, once no other server does.
Result<Done> check_path(const std::string& path) {
  if (path.size() >= sizeof sockaddr_un::sun_path) {
    return Failure{
        fmt::format("the path {} is too long for a socket: {} bytes at most; choose a shorter --unixsocket",
                    path, sizeof sockaddr_un::sun_path - 1)};
  }
  struct stat found {};
  if (lstat(path.c_str(), &found) == 0 && !S_ISSOCK(found.st_mode)) {
    return Failure{fmt::format("{} exists and is not a socket; choose another --unixsocket", path)};
  }
  if (access(folder_of(path).c_str(), W_OK | X_OK) == 0) return Done{};
  return Failure{fmt::format("cannot listen on {}: {}; check --unixsocket", path, std::strerror(errno))};
}

// Removes a socket file that a terminated server left at the path.
Result<Done> clear_path(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return Done{};  // no file; bind() reports any other error
  if (is_alive(path)) {
    return Failure{
        fmt::format("another server listens on {}; stop it or choose another --unixsocket", path)};
  }
  if (unlink(path.c_str()) == 0) return Done{};
  return Failure{fmt::format("cannot remove the old socket {}: {}", path, std::strerror(errno))};
}

Result<Done> open_unix(const Options& options, Listening& listening) {
  const std::string& path = options.unixsocket;
  const sockaddr_un address = unix_address(path);
  if (Result<Done> checked = check_path(path); !checked) return checked;
  if (Result<Done> cleared = clear_path(path); !cleared) return cleared;
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // The mode is set between bind and listen: until then no client can connect.
  const bool open = fd >= 0 && bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                    (options.unixsocketperm == 0 ||
                     chmod(path.c_str(), static_cast<mode_t>(options.unixsocketperm)) == 0) &&
                    listen(fd, static_cast<int>(options.tcp_backlog)) == 0;
  struct stat made {};
  if (!open || stat(path.c_str(), &made) != 0) {
    return Failure{fmt::format("cannot listen on {}: {}; check --unixsocket", path, std::strerror(errno))};
  }
  listening.sockets.push_back({fd, path, path, made.st_dev, made.st_ino, false});
  return Done{};
}

bool has_tcp(const Options& options) { return options.any_port || options.port != 0; }
bool has_tls_port(const Options& options) { return options.any_tls_port || options.tls_port != 0; }

Port http_port(const Options& options) {
  const bool own = !options.http_bind.empty();
  return {"--http-port", static_cast<uint16_t>(options.http_port), options.http_tls == "yes",
          own ? options.http_bind : options.bind, own ? "--http-bind" : "--bind"};
}

// Opens the port's addresses with any free port, and closes them.
Result<Done> check_tcp(const Options& options, Port port) {
  port.number = 0;
  std::vector<ListenSocket> sockets;
  Result<uint16_t> opened = open_all_tcp(options, std::move(port), sockets);
  for (const ListenSocket& socket : sockets) close(socket.fd);
  if (!opened) return Failure{opened.error()};
  return Done{};
}

Failure nothing_to_listen_on() {
  return {"nothing to listen on: --port is 0, and there is neither --tls-port nor --unixsocket"};
}

}  // namespace

Result<Listening> open_listeners(const Options& options) {
  Listening listening;
  Result<PassedSockets> passed = take_passed_sockets();
  if (!passed) return Failure{passed.error()};
  if (passed->tls_port != 0 && !options.any_tls_port && options.tls_port == 0)
    return Failure{"the service manager passed a socket for TLS, but --tls-port is 0; set --tls-port"};
  listening.sockets = std::move(passed->sockets);
  listening.tcp_port = passed->tcp_port;
  listening.tls_port = passed->tls_port;
  if (listening.tcp_port == 0 && has_tcp(options)) {
    const Port port{"--port", static_cast<uint16_t>(options.port), false, options.bind, "--bind"};
    Result<uint16_t> opened = open_all_tcp(options, port, listening.sockets);
    if (!opened) return Failure{opened.error()};
    listening.tcp_port = *opened;
  }
  if (listening.tls_port == 0 && has_tls_port(options)) {
    const Port port{"--tls-port", static_cast<uint16_t>(options.tls_port), true, options.bind, "--bind"};
    Result<uint16_t> opened = open_all_tcp(options, port, listening.sockets);
    if (!opened) return Failure{opened.error()};
    listening.tls_port = *opened;
  }
  // Last, because a later failure would leave its file.
  if (!passed->has_unix && !options.unixsocket.empty()) {
    if (Result<Done> opened = open_unix(options, listening); !opened) return Failure{opened.error()};
  }
  if (listening.sockets.empty()) return nothing_to_listen_on();
  return listening;
}

Result<std::vector<ListenSocket>> open_http_listeners(const Options& options) {
  std::vector<ListenSocket> sockets;
  if (!has_http(options)) return sockets;
  Result<uint16_t> opened = open_all_tcp(options, http_port(options), sockets);
  if (!opened) return Failure{opened.error()};
  return sockets;
}

Result<Done> check_listeners(const Options& options) {
  const bool tcp = has_tcp(options) || has_tls_port(options);
  if (!tcp && options.unixsocket.empty()) return nothing_to_listen_on();
  if (tcp) {
    Result<Done> checked = check_tcp(options, {"--port", 0, false, options.bind, "--bind"});
    if (!checked) return checked;
  }
  if (has_http(options)) {
    if (Result<Done> checked = check_tcp(options, http_port(options)); !checked) return checked;
  }
  return options.unixsocket.empty() ? Result<Done>(Done{}) : check_path(options.unixsocket);
}

void remove_socket_file(const ListenSocket& socket) {
  struct stat found {};
  if (socket.unix_path.empty() || lstat(socket.unix_path.c_str(), &found) != 0) return;
  if (found.st_dev == socket.device && found.st_ino == socket.inode) unlink(socket.unix_path.c_str());
}

std::string local_name(int fd) { return name_of(fd, getsockname); }
std::string peer_name(int fd) { return name_of(fd, getpeername); }

bool is_loopback_peer(int fd) {
  const std::string name = peer_name(fd);
  return name.starts_with("127.") || name.starts_with("[::1]:") || name.starts_with("[::ffff:127.");
}

}  // namespace holdfast
