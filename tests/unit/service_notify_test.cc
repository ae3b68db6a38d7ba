// Messages to a service manager: the environment, both kinds of sockets, and a manager that is slow or
// gone.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "files/temp_folder.h"
#include "io/os/service_notify.h"

namespace holdfast {
namespace {

// A manager's socket: `path` is a path, or an abstract name that begins with a zero byte.
class Manager {
 public:
  explicit Manager(const std::string& path)
      : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    const auto length =
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() + (path[0] == '\0' ? 0 : 1));
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0);
  }
  ~Manager() { close(fd_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Returns the next message, or "nothing".
  std::string take() {
    std::array<char, 8192> bytes{};
    const ssize_t n = recv(fd_, bytes.data(), bytes.size(), 0);
    return n < 0 ? "nothing" : std::string(bytes.data(), static_cast<size_t>(n));
  }

 private:
  int fd_;
};

ServiceNotify notify_with(const std::string& socket, const char* watchdog_us, const std::string& pid) {
  setenv("NOTIFY_SOCKET", socket.c_str(), 1);
  setenv("WATCHDOG_USEC", watchdog_us, 1);
  setenv("WATCHDOG_PID", pid.c_str(), 1);
  return ServiceNotify::from_environment();
}

}  // namespace

TEST_CASE("service notify: without NOTIFY_SOCKET it is disabled, and a message has no effect") {
  setenv("WATCHDOG_USEC", "1000", 1);
  ServiceNotify notify = ServiceNotify::from_environment();
  CHECK(!notify.is_enabled());
  CHECK(notify.watchdog_us() == 0);
  notify.send("READY=1");
  notify.retry();
}

TEST_CASE("service notify: a message is one datagram, and children do not see the variables") {
  const TempFolder folder;
  Manager manager(folder.file("n"));
  ServiceNotify notify = notify_with(folder.file("n"), "3000000", std::to_string(getpid()));
  CHECK(notify.watchdog_us() == 3'000'000);
  for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"})
    CHECK(std::getenv(name) == nullptr);
  notify.send("READY=1\nSTATUS=ready");
  CHECK(manager.take() == "READY=1\nSTATUS=ready");
  CHECK(manager.take() == "nothing");
}

TEST_CASE("service notify: the name of an abstract socket begins with @") {
  const std::string name = "holdfast-unit-test-" + std::to_string(getpid());
  Manager manager('\0' + name);
  ServiceNotify notify = notify_with('@' + name, "0", "");
  notify.send("READY=1");
  CHECK(manager.take() == "READY=1");
}

TEST_CASE("service notify: the watchdog counts only for this process, and only as a number") {
  const TempFolder folder;
  const Manager manager(folder.file("n"));
  CHECK(notify_with(folder.file("n"), "1000", "1").watchdog_us() == 0);
  CHECK(notify_with(folder.file("n"), "1000", "").watchdog_us() == 1000);
  CHECK(notify_with(folder.file("n"), "1000x", "").watchdog_us() == 0);
  CHECK(notify_with(folder.file("n"), "-1", "").watchdog_us() == 0);
}

TEST_CASE("service notify: a name that no socket can have disables it") {
  const size_t fits = sizeof(sockaddr_un::sun_path) - 1;
  CHECK(notify_with("/" + std::string(fits - 1, 'x'), "0", "").is_enabled());
  CHECK(!notify_with("/" + std::string(fits, 'x'), "0", "").is_enabled());
  CHECK(notify_with("@" + std::string(fits, 'x'), "0", "").is_enabled());
  CHECK(!notify_with("@" + std::string(fits + 1, 'x'), "0", "").is_enabled());
  CHECK(!notify_with("@", "0", "").is_enabled());
  CHECK(!notify_with("relative", "0", "").is_enabled());
}

TEST_CASE("service notify: messages that a busy manager has no room for follow later, in order") {
  const TempFolder folder;
  Manager manager(folder.file("n"));
  ServiceNotify notify = notify_with(folder.file("n"), "0", "");
  for (int i = 0; i < 1000; ++i) notify.send_alive();  // more than the queue of a socket holds
  notify.send("READY=1");
  notify.send("STOPPING=1");
  while (manager.take() == "WATCHDOG=1") {
  }
  notify.retry();
  CHECK(manager.take() == "READY=1\nSTOPPING=1\n");
  CHECK(manager.take() == "nothing");
}

TEST_CASE("service notify: a manager that is gone does not matter") {
  const TempFolder folder;
  ServiceNotify notify = notify_with(folder.file("missing"), "0", "");
  notify.send("READY=1");
  Manager manager(folder.file("missing"));
  notify.send("READY=1");
  CHECK(manager.take() == "READY=1");
}

TEST_CASE("service notify: a text is one line of at most 400 bytes") {
  CHECK(service_text("a\nREADY=1\x7f") == "a READY=1 ");
  CHECK(service_text(std::string(401, 'x')) == std::string(400, 'x'));
  CHECK(service_text("é 40 %") == "é 40 %");
}

}  // namespace holdfast
