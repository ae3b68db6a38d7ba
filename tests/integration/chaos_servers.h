// Real servers with data folders behind a network that fails; they are killed and started again, stopped
// and woken.
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
// The settings with which a server has such a clock; the library for that is built in the folder.
std::vector<std::string> with_clock(const TempFolder& folder, std::chrono::microseconds ahead);

class ChaosServers {
 public:
  // `clocks` are how far each one's wall clock is ahead. May only be used by the thread that made it.
  ChaosServers(const std::vector<std::chrono::microseconds>& clocks, uint64_t seed,
               const Intensity& intensity);
  ~ChaosServers();

  // quorum://..., through the proxy or past it. Past it a server that starts again has another port.
  std::string place(const std::string& settings) const;
  size_t size() const { return servers_.size(); }
  bool is_up(size_t server) const;
  const Server& at(size_t server) const { return *servers_.at(server).process; }
  const ChaosProxy& proxy() const { return proxy_; }

  void kill(size_t server);  // SIGKILL; it must be up
  void stop(size_t server);  // SIGSTOP; stands still when this returns
  // Up again: started on the same folder, or woken.
  void revive(size_t server);

 private:
  struct Place {
    std::vector<std::string> env;
    std::unique_ptr<Server> process;  // none: killed
    bool stopped = false;
  };
  void start(size_t server);

  TempFolder folder_;
  ChaosProxy proxy_;
  std::vector<Place> servers_;
};

}  // namespace holdfast::integration
