// Messages to the service manager that started this process, by systemd's protocol: each message is one
// datagram of lines NAME=value to the socket of $NOTIFY_SOCKET. Needs no library. Without that variable no
// call has an effect.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

class ServiceNotify {
 public:
  // Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child process
  // sends messages in the name of this one. A socket that cannot be used is a warning in the log.
  static ServiceNotify from_environment();

  ServiceNotify() = default;
  ~ServiceNotify();
  ServiceNotify(ServiceNotify&& other) noexcept { swap(other); }
  ServiceNotify& operator=(ServiceNotify&& other) noexcept {
    swap(other);
    return *this;
  }
  ServiceNotify(const ServiceNotify&) = delete;
  ServiceNotify& operator=(const ServiceNotify&) = delete;

  // Whether a service manager listens.
  bool is_enabled() const { return fd_ >= 0; }
  // The longest silence in microseconds before the manager restarts this process; 0: no watchdog.
  uint64_t watchdog_us() const { return watchdog_us_; }

  // Sends the lines as one datagram, without waiting. A datagram that the manager has no room for is kept:
  // send it again by retry().
  void send(std::string_view lines);
  void retry();
  // Sends a sign of life. It is not kept: the next one follows soon.
  void send_alive();

 private:
  void swap(ServiceNotify& other) noexcept;
  bool try_send(std::string_view lines) const;

  int fd_ = -1;
  std::string address_;  // a sockaddr_un in bytes
  uint64_t watchdog_us_ = 0;
  std::string unsent_;  // lines that the manager had no room for
};

// Returns a text as the value of one line: without control characters, and cut after 400 bytes.
std::string service_text(std::string_view text);

}  // namespace holdfast
