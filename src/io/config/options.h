// The options of the server: names, defaults, help and checks in one table; command line and file. Reads
// and writes no file but the config file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/config.h"
#include "io/os/log.h"
#include "io/os/result.h"

namespace holdfast {

// The values of all options, checked. The table in options_table.cc is the only place that has the
// defaults.
struct Options {
  std::string bind;  // addresses, blank-separated; "-" before one: it may be missing on the machine
  uint64_t port = 0;
  bool any_port = false;  // --port auto
  std::string unixsocket;
  uint64_t unixsocketperm = 0;  // 0: the umask decides
  uint64_t tcp_backlog = 0;
  uint64_t tcp_keepalive_s = 0;
  std::string busy_poll;  // auto, no, or microseconds
  uint64_t idle_timeout_s = 0;

  uint64_t tls_port = 0;
  bool any_tls_port = false;  // --tls-port auto
  std::string tls_cert_file;
  std::string tls_key_file;
  std::string tls_key_pass;
  std::string tls_ca_file;
  std::string tls_ca_dir;
  std::string tls_auth_clients;
  std::string tls_protocols;
  std::string tls_ciphers;
  std::string tls_ciphersuites;
  std::string tls_prefer_server_ciphers;
  uint64_t tls_handshake_s = 0;

  uint64_t http_port = 0;      // 0: no HTTP
  bool any_http_port = false;  // --http-port auto
  std::string http_bind;       // as bind; empty: the addresses of bind
  uint64_t http_max_clients = 0;
  std::string http_tls;

  std::string requirepass;
  std::string users;  // one user in each line: a name and its rules
  std::string aclfile;
  uint64_t acl_log_entries = 0;
  std::string protected_mode;

  uint64_t maxclients = 0;
  uint64_t bulk_bytes = 0;
  uint64_t arguments = 0;
  uint64_t inline_bytes = 0;
  uint64_t query_buffer_bytes = 0;
  uint64_t output_buffer_bytes = 0;
  uint64_t pubsub_output_bytes = 0;
  uint64_t memory_bytes = 0;
  uint64_t tracking_keys = 0;
  uint64_t history_events = 0;
  uint64_t patterns = 0;

  std::string notify_events;
  uint64_t hash_packed_entries = 0;
  uint64_t hash_packed_value_bytes = 0;
  uint64_t set_intset_entries = 0;
  uint64_t zset_packed_entries = 0;
  uint64_t zset_packed_member_bytes = 0;
  uint64_t busy_reply_ms = 0;
  uint64_t script_hard_ms = 0;
  uint64_t script_memory_bytes = 0;
  uint64_t script_run_bytes = 0;

  uint64_t slowlog_us = 0;
  uint64_t slowlog_entries = 0;
  uint64_t latency_threshold_ms = 0;
  std::string latency_tracking;
  std::string latency_percentiles;
  std::string debug_command;

  uint64_t max_waiters = 0;
  uint64_t max_waiters_per_key = 0;
  uint64_t max_owner_bytes = 0;
  uint64_t max_ended_leases = 0;
  uint64_t max_token_lead_ms = 0;
  uint64_t session_grace_ms = 0;

  std::string dir;
  std::string appendonly;
  std::string appendfsync;
  uint64_t fsync_interval_ms = 0;
  uint64_t journal_max = 0;
  std::string save;
  uint64_t write_threshold = 0;
  uint64_t autosave_ms = 0;
  std::string compress;
  uint64_t compress_level = 0;
  std::string skip_unknown;
  uint64_t recovery_wait_ms = 0;

  std::string servers;  // of a proxy
  uint64_t server_timeout_ms = 0;
  uint64_t untimed_ttl_ms = 0;

  std::string loglevel;
  std::string log_format;
  uint64_t log_waits_over_ms = 0;
  std::string logfile;

  uint64_t hash_seed = 0;
  std::string config_file;

  std::optional<std::string> answer;  // --help and --version: print this and do nothing else
  bool check_only = false;            // --check-config
};

struct ReadOptions {
  Options options;
  // One line each: which option, in which line of which file, and the expected values. If there are any,
  // `options` has the values of the other options.
  std::vector<std::string> errors;
};

// Reads the command line and the file that --config names. The command line takes precedence.
ReadOptions read_all_options(int argc, const char* const* argv);
// The same, with the first error only.
Result<Options> read_options(int argc, const char* const* argv);

// Overwrites the passwords among the arguments of this process, because every local user can read them.
// Call it after read_options().
void hide_secrets(int argc, char** argv);

// Applies CONFIG SET: all of the values, or none. If it returns a refusal, the options are unchanged.
std::optional<ConfigRefusal> change_options(Options& options, const ConfigChanges& changes);

// Updates the parts of a running engine's config that follow from options with When::kAnyTime.
void adopt_changes(const Options& options, Config& config);

// Writes the present options to the file that --config named. A line that names an option gets its value.
// Comments stay. An option that the file lacks is added if its value is not the default. `users` replace
// the users in the file.
Result<Done> rewrite_config_file(const Options& options, const std::vector<std::string>& users);

// Whether the server listens for HTTP.
bool has_http(const Options& options);

LogLevel log_level(const Options& options);
LogFormat log_format(const Options& options);
// Returns the format that the command line asks for, also if another option is wrong.
LogFormat wanted_log_format(int argc, const char* const* argv);

// Returns the engine's part of the options: limits, durations and the settings that CONFIG GET shows. The
// caller adds the hooks (random, host_facts) and the values that differ from start to start.
Config engine_config(const Options& options);

}  // namespace holdfast
