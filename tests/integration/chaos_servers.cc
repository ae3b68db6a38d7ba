// Data folders are temporary. The library that skews a server's clock is compiled once per folder.
#include "chaos_servers.h"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace holdfast::integration {

std::string clock_setting(std::chrono::microseconds ahead, int64_t rate_ppm) {
  return "HOLDFAST_TEST_CLOCK=" + std::to_string(ahead.count()) + " " + std::to_string(rate_ppm);
}

std::vector<std::string> with_clock(const TempFolder& folder, std::chrono::microseconds ahead) {
  const std::string library = (folder.path() / "clock.so").string();
  const std::string command =
      "g++ -std=c++20 -O1 -shared -fPIC -o " + library + " tests/integration/skewed_clock.cc";
  if (!std::filesystem::exists(library) && std::system(command.c_str()) != 0)
    throw std::runtime_error("cannot build the library that skews clocks");
  std::vector<std::string> environment = preloaded(library);
  environment.push_back(clock_setting(ahead));
  return environment;
}

ChaosServers::ChaosServers(const std::vector<std::chrono::microseconds>& clocks, uint64_t seed,
                           const Intensity& intensity)
    : proxy_(clocks.size(), seed, intensity), servers_(clocks.size()) {
  for (size_t i = 0; i < clocks.size(); ++i) {
    if (clocks[i].count() != 0) servers_[i].env = with_clock(folder_, clocks[i]);
    start(i);
  }
}

ChaosServers::~ChaosServers() {
  for (const Place& place : servers_) {
    if (place.stopped) ::kill(place.process->pid(), SIGCONT);
  }
}

std::string ChaosServers::place(const std::string& settings) const {
  std::string text = "quorum://";
  for (size_t i = 0; i < servers_.size(); ++i)
    text += (i == 0 ? "" : ",") + ("127.0.0.1:" + std::to_string(proxy_.port(i)));
  return text + "?" + settings;
}

bool ChaosServers::is_up(size_t server) const {
  const Place& place = servers_.at(server);
  return place.process != nullptr && !place.stopped;
}

void ChaosServers::start(size_t server) {
  Place& place = servers_.at(server);
  Launch launch;
  launch.args = {"--dir", (folder_.path() / std::to_string(server)).string()};
  launch.env = place.env;
  place.process = std::make_unique<Server>(std::move(launch));
  proxy_.lead_to(server, place.process->port());
}

void ChaosServers::kill(size_t server) {
  servers_.at(server).process->stop(SIGKILL);
  servers_.at(server).process.reset();
}

void ChaosServers::stop(size_t server) {
  Place& place = servers_.at(server);
  ::kill(place.process->pid(), SIGSTOP);
  until("the server is stopped", [&] { return place.process->process().state() == 'T'; });
  place.stopped = true;
}

void ChaosServers::revive(size_t server) {
  Place& place = servers_.at(server);
  if (place.process == nullptr) return start(server);
  ::kill(place.process->pid(), SIGCONT);
  place.stopped = false;
}

}  // namespace holdfast::integration
