// Reads the ready line: "ready to accept connections on 127.0.0.1:4711, [::1]:4711 (pid 1)".
#include "server_harness.h"

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <string_view>

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

}  // namespace

std::string server_program() {
  const char* named = std::getenv("HOLDFAST_SERVER");
  return named != nullptr ? named : "build/asan/holdfast-server";
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
