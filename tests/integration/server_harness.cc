// Reads the ready line: "ready to accept connections on 127.0.0.1:4711, [::1]:4711 (pid 1)".
#include "server_harness.h"

#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace holdfast::integration {
namespace {

Launch on_free_port(Launch launch) {
  launch.args.insert(launch.args.begin(), {"--port", "auto"});
  return launch;
}

// The port of the first address; 0 if that is the path of a Unix socket.
int port_of_first(std::string_view log) {
  constexpr std::string_view kReady = "ready to accept connections on ";
  const std::string_view rest = log.substr(log.find(kReady) + kReady.size());
  const std::string_view name = rest.substr(0, rest.find_first_of(", "));
  return name.starts_with('/') ? 0 : std::stoi(std::string(name.substr(name.rfind(':') + 1)));
}

// These ports and their bus ports are below those that the system gives to connections.
constexpr int kFirstPort = 11000;
constexpr int kLastPort = 22000;
constexpr int kBusOffset = 10000;

// As reserve() in harness.py, with the same names.
bool reserve(int port) {
  static std::vector<Fd> reserved;
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = "holdfast-test-port-" + std::to_string(port);
  text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // it begins with a zero byte: no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  Fd mark(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (bind(mark.get(), reinterpret_cast<const sockaddr*>(&name), size) != 0) return false;
  const Fd probe(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return false;
  reserved.push_back(std::move(mark));
  return true;
}

}  // namespace

std::string server_program() {
  const char* named = std::getenv("HOLDFAST_SERVER");
  return named != nullptr ? named : "build/asan/holdfast-server";
}

int free_port() {
  static int port = kFirstPort + getpid() % 1800 * 6;
  do {
    port = port < kLastPort ? port + 1 : kFirstPort;
  } while (!reserve(port) || !reserve(port + kBusOffset));
  return port;
}

Server::Server(Launch launch) : process_(server_program(), on_free_port(std::move(launch))) {
  if (!log().wait_for(" (pid ")) {
    process_.signal(SIGKILL);
    process_.wait();
    throw std::runtime_error("the server did not start: " + log().text() + process_.err().text());
  }
  port_ = port_of_first(log().text());
}

Server::~Server() {
  if (stopped_) return;
  const int status = stop(SIGTERM);
  INFO("the server's log: ", log().text(), process_.err().text());
  CHECK_MESSAGE(status == 0, "the server must end with status 0");
}

int Server::stop(int signal_number) {
  stopped_ = true;
  process_.signal(signal_number);
  return process_.wait();
}

Outcome run_server(const Launch& launch) {
  Process process(server_program(), launch);
  Outcome outcome;
  outcome.status = process.wait();
  outcome.out = process.out().whole();
  outcome.err = process.err().whole();
  return outcome;
}

}  // namespace holdfast::integration
