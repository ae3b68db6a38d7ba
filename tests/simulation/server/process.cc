// Puts the parts of the server together.
#include "process.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "disk.h"
#include "io/config/acl_file.h"
#include "io/os/clock.h"
#include "io/os/host_info.h"
#include "io/os/log.h"
#include "loop.h"
#include "scheduler.h"

namespace holdfast::simulation {

Process::Process(const Words& arguments) {
  std::vector<const char*> argv{"holdfast-server", "--dir", "folder", "--protected-mode", "no"};
  for (const std::string& word : arguments) argv.push_back(word.c_str());
  Result<Options> options = read_options(static_cast<int>(argv.size()), argv.data());
  if (!options) {
    std::fprintf(stderr, "%s\n", options.error().c_str());
    std::abort();
  }
  options_ = std::make_unique<Options>(*options);
  Scheduler& scheduler = Scheduler::get();
  scheduler.start(
      [this] {
        run();
        server_.reset();
        engine_.reset();
        store_.reset();
        ended_ = true;
      },
      scheduler.now_us());
}

void Process::run() {
  auto opened = Store::open(*options_, Disk::get().folder(), read_clock);
  if (!opened) {
    failure_ = opened.error();
    return;
  }
  store_ = std::move(*opened);
  engine_ = std::make_unique<Engine>(config());
  std::vector<ListenSocket> sockets(1);
  sockets[0].name = "simulation";
  server_ = std::make_unique<Server>(*engine_, *options_, std::move(sockets), store_.get(), tls_);
  engine_->availability().loading = true;
  started_ = true;
  if (Result<Done> served = server_->run(); !served) failure_ = served.error();
}

// As complete_config() of src/server.cc.
Config Process::config() {
  Config config = engine_config(*options_);
  config.limits.clients = static_cast<uint32_t>(options_->maxclients);
  config.hash_seed = random_number();
  config.token_floor = store_->past().token_floor();
  config.tokens_ahead = store_->past().tokens_ahead();
  config.boot_id = store_->clock().boot_id;
  config.first_ahead_ms = store_->clock().ahead_ms;
  config.run_id = random_hex(40);
  config.random = fill_random;
  config.clock_us = store_->script_clock(read_stopwatch_us);
  config.change = [this](const ConfigChanges& changes, Config& c) -> std::optional<ConfigRefusal> {
    if (auto refused = change_options(*options_, changes)) return refused;
    adopt_changes(*options_, c);
    return std::nullopt;
  };
  config.rewrite = [this](const std::vector<std::string>& users) -> std::string {
    const Result<Done> done = rewrite_config_file(*options_, users);
    return done ? "" : done.error();
  };
  config.audit = [](std::string_view line) { log_line(LogLevel::kNotice, "audit: " + std::string(line)); };
  config.log = [](int level, std::string_view text) {
    log_script_line(static_cast<LogLevel>(level), text);
  };
  config.sleep = [](int64_t us) { Scheduler::get().spend(us); };
  config.host_facts = [] { return HostFacts{}; };
  config.allocator_report = read_allocator_report;
  const UsersText users = users_of(*options_);
  config.acl_text = users.text;
  config.acl_source = users.source;
  config.storage = store_->storage_hooks();
  config.storage.shut_down = [this](ShutdownMode mode) {
    std::string why = store_->prepare_stop(mode);
    if (why.empty()) server_->ask_to_stop();
    return why;
  };
  return config;
}

}  // namespace holdfast::simulation
