// The options of the server: names, defaults, help and checks in one table; command line and file. Touches
// nothing but the config file.
#pragma once

#include <cstdint>
#include <string>

#include "core/config.h"
#include "io/log.h"
#include "io/result.h"

namespace holdfast {

// What the user asked for, checked. Defaults stand in the table in options.cc, the only place that has
// them.
struct Options {
  std::string bind;  // addresses, blank-separated; "-" before one: the machine need not have it
  uint64_t port = 0;
  bool any_port = false;  // --port auto
  std::string unixsocket;
  uint64_t unixsocketperm = 0;  // 0: as the umask has it
  uint64_t tcp_backlog = 0;
  uint64_t tcp_keepalive_s = 0;
  uint64_t idle_timeout_s = 0;

  uint64_t maxclients = 0;
  uint64_t bulk_bytes = 0;
  uint64_t arguments = 0;
  uint64_t inline_bytes = 0;
  uint64_t query_buffer_bytes = 0;
  uint64_t output_buffer_bytes = 0;
  uint64_t memory_bytes = 0;

  uint64_t max_waiters = 0;
  uint64_t max_waiters_per_key = 0;
  uint64_t max_owner_bytes = 0;
  uint64_t lease_memory = 0;
  uint64_t max_token_lead_ms = 0;
  uint64_t session_grace_ms = 0;

  std::string loglevel;
  std::string logfile;

  uint64_t hash_seed = 0;
  std::string config_file;

  std::string answer;  // --help and --version: print this and do nothing else
};

// Reads the command line, and the file that --config names; the command line wins. A failure names the
// option and what it expects.
Result<Options> read_options(int argc, const char* const* argv);

LogLevel log_level(const Options& options);

// The engine's part of the options: limits, durations and what CONFIG GET shows. The doors (random,
// host_facts) and what differs from start to start are the caller's.
Config engine_config(const Options& options);

}  // namespace holdfast
