// One process of the server, from its start to its end: the real store, engine and server on the simulated
// loop, disk and clocks. It does what src/server.cc does.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/engine/engine.h"
#include "io/config/options.h"
#include "io/disk/store.h"
#include "io/net/server.h"

namespace holdfast::simulation {

using Words = std::vector<std::string>;

class Process {
 public:
  // Begins a task that runs the server. `arguments` are options beside those that the simulation sets.
  explicit Process(const Words& arguments);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool ended() const { return ended_; }
  // Why it ended; empty after a stop that kept what it must. Only if it has ended.
  const std::string& failure() const { return failure_; }
  const Options& options() const { return *options_; }
  // Null before the folder was opened, and after the end.
  Engine* engine() { return engine_.get(); }
  bool loaded() { return engine_ != nullptr && started_ && !engine_->availability().loading; }

 private:
  void run();
  Config config();

  std::unique_ptr<Options> options_;
  std::shared_ptr<const TlsContext> tls_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::string failure_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace holdfast::simulation
