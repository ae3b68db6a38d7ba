// See sd_notify(3): the socket's name is a path, or begins with "@" for Linux's abstract names.
#include "io/os/service_notify.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "io/os/log.h"

namespace holdfast {
namespace {

constexpr size_t kMaxTextBytes = 400;
constexpr size_t kMaxUnsentBytes = 4096;

// Returns the variable's value and removes it from the environment. Empty if it is not set.
std::string take_variable(const char* name) {
  const char* value = std::getenv(name);
  std::string taken = value == nullptr ? "" : value;
  unsetenv(name);
  return taken;
}

uint64_t number_of(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// Returns the bytes of the socket's address. Empty if the name is no name of a Unix socket.
std::string unix_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool abstract = name.starts_with('@');
  if (name.size() < 2 || (name[0] != '/' && !abstract)) return "";
  if (name.size() + (abstract ? 0 : 1) > sizeof address.sun_path) return "";
  std::memcpy(address.sun_path, name.data(), name.size());
  if (abstract) address.sun_path[0] = '\0';
  std::string bytes(reinterpret_cast<const char*>(&address), sizeof address);
  bytes.resize(offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1));
  return bytes;
}

}  // namespace

ServiceNotify ServiceNotify::from_environment() {
  const std::string name = take_variable("NOTIFY_SOCKET");
  const uint64_t watchdog_us = number_of(take_variable("WATCHDOG_USEC"));
  const std::string watchdog_pid = take_variable("WATCHDOG_PID");
  ServiceNotify notify;
  if (name.empty()) return notify;
  notify.address_ = unix_address(name);
  if (!notify.address_.empty()) notify.fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (notify.fd_ < 0) {
    log_line(LogLevel::kWarning,
             fmt::format("cannot send messages to the service manager: NOTIFY_SOCKET is '{}'; expected a "
                         "path, or '@' and a name",
                         service_text(name)));
    return notify;
  }
  const bool for_this_process = watchdog_pid.empty() || watchdog_pid == std::to_string(getpid());
  if (for_this_process) notify.watchdog_us_ = watchdog_us;
  return notify;
}

ServiceNotify::~ServiceNotify() {
  if (fd_ >= 0) close(fd_);
}

void ServiceNotify::swap(ServiceNotify& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(address_, other.address_);
  std::swap(watchdog_us_, other.watchdog_us_);
  std::swap(unsent_, other.unsent_);
}

// Returns false if the manager has no room at present. After any other failure a repetition would not help.
bool ServiceNotify::try_send(std::string_view lines) const {
  const auto* address = reinterpret_cast<const sockaddr*>(address_.data());
  const auto length = static_cast<socklen_t>(address_.size());
  while (sendto(fd_, lines.data(), lines.size(), MSG_NOSIGNAL, address, length) < 0) {
    if (errno != EINTR) return errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM;
  }
  return true;
}

void ServiceNotify::send(std::string_view lines) {
  if (!is_enabled()) return;
  retry();
  if (unsent_.empty() && try_send(lines)) return;
  if (unsent_.size() + lines.size() < kMaxUnsentBytes) unsent_.append(lines).append("\n");
}

void ServiceNotify::retry() {
  if (!unsent_.empty() && try_send(unsent_)) unsent_.clear();
}

void ServiceNotify::send_alive() {
  if (is_enabled()) static_cast<void>(try_send("WATCHDOG=1"));
}

std::string service_text(std::string_view text) {
  std::string line(text.substr(0, kMaxTextBytes));
  std::ranges::replace_if(
      line, [](unsigned char c) { return c < ' ' || c == 0x7f; }, ' ');
  return line;
}

}  // namespace holdfast
