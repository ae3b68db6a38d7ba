// The parts of a program that serves, and their order. Connects the parts and decides nothing.
#include "io/program/serve.h"

#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/version.h"
#include "core/engine/engine.h"
#include "io/config/acl_file.h"
#include "io/config/programs.h"
#include "io/config/tls_setup.h"
#include "io/disk/store.h"
#include "io/http/http_door.h"
#include "io/net/check_start.h"
#include "io/net/listen.h"
#include "io/net/server.h"
#include "io/os/clock.h"
#include "io/os/host_info.h"
#include "io/os/log.h"
#include "io/os/standard_streams.h"

namespace holdfast {

namespace {

// Blocks of at least this size get their own mapping: the system gets them back when they are freed, and
// they grow in place without a copy. From the heap glibc could not return them while small blocks lie
// between them.
constexpr int kOwnMappingBytes = 256 << 10;

// Applies CONFIG SET. Changes of the process itself (file limit, TLS) come first, as they may fail.
std::optional<ConfigRefusal> change(Options& options, std::shared_ptr<const TlsContext>& tls,
                                    const ConfigChanges& changes, Config& config) {
  Options wanted = options;
  if (auto refused = change_options(wanted, changes)) return refused;
  if (wanted.maxclients != options.maxclients) {
    Result<uint32_t> clients = make_room(wanted);
    if (!clients || *clients < wanted.maxclients) {
      return ConfigRefusal{"maxclients",
                           "The operating system is not able to handle the specified number of clients"};
    }
  }
  if (auto refused = reload_tls(wanted, changes, tls)) return refused;
  options = wanted;
  set_log_level(log_level(options));
  set_log_format(log_format(options));
  adopt_changes(options, config);
  return std::nullopt;
}

std::string rewrite(const Options& options, const std::vector<std::string>& users) {
  const Result<Done> done = rewrite_config_file(options, users);
  return done ? "" : done.error();
}

// Returns the engine's config with the values that differ from start to start: random numbers, the clock,
// the process.
Config complete_config(Options& options, std::shared_ptr<const TlsContext>& tls, uint32_t clients,
                       uint16_t tcp_port, Store* store) {
  Config config = engine_config(options);
  const Now now = read_clock();
  config.limits.clients = clients;
  if (config.hash_seed == 0) config.hash_seed = random_number();
  // Without a folder the clock is above every token of an earlier run, because no run issues more than one
  // token in a microsecond.
  config.token_floor = store != nullptr ? store->past().token_floor() : static_cast<uint64_t>(now.wall_us);
  if (store != nullptr) {
    config.tokens_ahead = store->past().tokens_ahead();
    config.boot_id = store->clock().boot_id;
    config.first_ahead_ms = store->clock().ahead_ms;
  }
  config.run_id = random_hex(40);
  config.random = fill_random;
  config.clock_us = store != nullptr ? store->script_clock(read_stopwatch_us) : read_stopwatch_us;
  config.change = [&options, &tls](const ConfigChanges& changes, Config& c) {
    return change(options, tls, changes, c);
  };
  config.rewrite = [&options](const std::vector<std::string>& users) { return rewrite(options, users); };
  config.audit = [](std::string_view line) { log_line(LogLevel::kNotice, fmt::format("audit: {}", line)); };
  config.slow_wait = log_slow_wait;
  config.sleep = [](int64_t us) { usleep(static_cast<useconds_t>(us)); };
  config.log = [](int level, std::string_view text) {
    log_script_line(static_cast<LogLevel>(level), text);
  };
  config.host_facts = [tcp_port, file = options.config_file, started = now.mono] {
    return read_host_facts(tcp_port, file, started);
  };
  config.allocator_report = read_allocator_report;
  return config;
}

int check(const Options& options) {
  if (const std::vector<std::string> errors = check_start(options); !errors.empty())
    return fail_to_start(errors);
  fmt::print("no errors\n");
  return 0;
}

}  // namespace

int fail_to_start(const std::string& why) {
  print_start_failure(std::string(program_name()) + ": " + why);
  return 1;
}

int fail_to_start(const std::vector<std::string>& errors) {
  for (const std::string& why : errors) fail_to_start(why);
  return 1;
}

int serve(Options& options, const ProgramParts& parts) {
  set_log_format(log_format(options));
  if (Result<Done> log = open_log(log_level(options), options.logfile); !log)
    return fail_to_start(log.error());
  Result<UsersText> users = read_users(options);
  if (!users) return fail_to_start(users.error());
  Result<std::shared_ptr<const TlsContext>> tls = make_tls(options);
  if (!tls) return fail_to_start(tls.error());
  Result<uint32_t> clients = make_room(options);
  if (!clients) return fail_to_start(clients.error());
  Result<Listening> listening = open_listeners(options);
  if (!listening) return fail_to_start(listening.error());
  Result<std::vector<ListenSocket>> http = open_http_listeners(options);
  if (!http) return fail_to_start(http.error());
  std::unique_ptr<Store> store;
  if (!options.dir.empty()) {
    auto opened = Store::open(options);
    if (!opened) return fail_to_start(opened.error());
    store = std::move(*opened);
  }
  log_line(LogLevel::kNotice,
           fmt::format("{} {} starts{}", program_name(), kHoldfastVersion,
                       store != nullptr ? " with the data folder " + options.dir : parts.without_data));
  Config config = complete_config(options, *tls, *clients, listening->port(), store.get());
  config.acl_text = users->text;
  config.acl_source = users->source;
  config.acl_file = acl_file_hooks(options.aclfile);
  Server* running = nullptr;
  config.host_facts = [&running, facts = std::move(config.host_facts)] {
    HostFacts host = facts();
    host.busy_poll = running->busy_poll_facts();
    return host;
  };
  if (store != nullptr) config.storage = store->storage_hooks();
  config.storage.shut_down = [&](ShutdownMode mode) {
    std::string why = store != nullptr ? store->prepare_stop(mode) : "";
    if (why.empty()) running->ask_to_stop();
    return why;
  };
  config.measure_loop = [&](bool on) { return running->meter().measure(on); };
  if (parts.configure) parts.configure(config);
  Engine engine(std::move(config));
  Server server(engine, options, std::move(listening->sockets), store.get(), *tls);
  running = &server;
  std::optional<HttpDoor> door;
  if (!http->empty()) server.add_door(door.emplace(server, std::move(*http), *tls));
  if (parts.add_doors) parts.add_doors(server);
  if (Result<Done> served = server.run(); !served) return fail_to_start(served.error());
  log_line(LogLevel::kNotice, "stopped");
  return 0;
}

void prepare_process() {
  open_closed_streams(ClosedOutput::kDiscards);
  std::signal(SIGXFSZ, SIG_IGN);  // a file at the limit of RLIMIT_FSIZE is an error, as on a full disk
  mallopt(M_MMAP_THRESHOLD, kOwnMappingBytes);
  mallopt(M_TRIM_THRESHOLD, -1);  // the heap never shrinks at once: see heap_release.h
  // Disables fastbins. With them glibc merges all freed small blocks at once at the next allocation of a
  // kilobyte: for a hundred thousand blocks that takes 5 to 17 ms.
  mallopt(M_MXFAST, 0);
}

int run_program(int argc, char** argv, const std::function<ProgramParts(const Options&)>& parts) {
  prepare_process();
  ReadOptions read = read_all_options(argc, argv);
  const LogFormat wanted = wanted_log_format(argc, argv);
  hide_secrets(argc, argv);
  if (!read.errors.empty()) {
    set_log_format(wanted);
    return fail_to_start(read.errors);
  }
  if (!read.options.answer) {
    const ProgramParts own = parts(read.options);
    if (!own.refusal.empty()) return fail_to_start(own.refusal);
    return read.options.check_only ? check(read.options) : serve(read.options, own);
  }
  fmt::print("{}", *read.options.answer);
  return 0;
}

}  // namespace holdfast
