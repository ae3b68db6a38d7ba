// Real servers with data folders behind a network with faults. Tests kill and restart them, stop and resume
// them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chaos_proxy.h"
#include "files/temp_folder.h"
#include "server_harness.h"

namespace holdfast::integration {

// HOLDFAST_TEST_CLOCK for a process, as skewed_clock.cc reads it.
std::string clock_setting(std::chrono::microseconds ahead, int64_t rate_ppm = 0);
// The environment of a server with such a clock. Builds the necessary library in the folder.
std::vector<std::string> with_clock(const TempFolder& folder, std::chrono::microseconds ahead);

class ChaosServers {
 public:
  // `clocks` has how far the wall clock of each server is ahead. Only the thread that made it may use it.
  ChaosServers(const std::vector<std::chrono::microseconds>& clocks, uint64_t seed,
               const Intensity& intensity);
  ~ChaosServers();

  // The address quorum://... of the servers through the proxy. After a restart a server has another port
  // behind the proxy.
  std::string place(const std::string& settings) const;
  size_t size() const { return servers_.size(); }
  bool is_up(size_t server) const;
  const Server& at(size_t server) const { return *servers_.at(server).process; }
  const ChaosProxy& proxy() const { return proxy_; }

  void kill(size_t server);  // SIGKILL; it must be up
  void stop(size_t server);  // SIGSTOP; the server is stopped when this returns
  // Restarts the server on the same folder, or resumes it.
  void revive(size_t server);

 private:
  struct Place {
    std::vector<std::string> env;
    std::unique_ptr<Server> process;  // null: killed
    bool stopped = false;
  };
  void start(size_t server);

  TempFolder folder_;
  ChaosProxy proxy_;
  std::vector<Place> servers_;
};

}  // namespace holdfast::integration
