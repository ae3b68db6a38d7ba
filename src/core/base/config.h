// What the engine is told at its start: limits, durations and the doors to what it must not do itself.
// A plain value; the shell fills it from its options, a test from its case.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

inline constexpr uint32_t kMaxClients = 1U << 20U;  // the largest value of the limit itself

// Everything that grows from outside has a limit with a name. A limit is the largest value that is allowed.
struct Limits {
  uint32_t clients = 10000;
  uint64_t bulk_bytes = 512ULL << 20;        // one argument of a command
  uint32_t arguments = 1U << 20;             // arguments of one command
  uint32_t inline_bytes = 64U << 10;         // a command typed as a line; also the length line of a frame
  uint64_t query_buffer_bytes = 1ULL << 30;  // unparsed input of one connection
  uint64_t output_buffer_bytes = 256ULL << 20;  // unsent replies of one connection
  uint32_t waiters = 1000000;                   // waiting requests in all
  uint32_t waiters_per_key = 100000;
  uint32_t owner_bytes = 512;
  uint64_t memory_bytes = 0;                    // 0: no limit
  uint32_t lease_memory = 100000;               // ended leases whose outcome is remembered
  uint64_t pubsub_output_bytes = 32ULL << 20;   // unsent messages and replies of a subscriber; 0: no limit
  uint32_t patterns = 1000;                     // different ones that PSUBSCRIBE has named
  uint64_t tracking_keys = 1000000;             // keys remembered for CLIENT TRACKING; 0: no limit
  int64_t busy_reply_ms = 5000;                 // a script beyond it no longer keeps others waiting
  int64_t script_hard_ms = 60000;               // a script beyond it that has not written ends; 0: no limit
  uint64_t script_memory_bytes = 256ULL << 20;  // of all scripts and what they make
  uint64_t script_run_bytes = 16ULL << 20;      // of one run, beside its arguments
  uint32_t hash_packed_entries = 512;           // fields of a hash that is kept packed
  uint32_t hash_packed_value_bytes = 64;        // size of a field or value in one
};

// What INFO and CONFIG GET say of the process. Asked for only when a client asks.
struct HostFacts {
  int64_t pid = 0;
  int64_t tcp_port = 0;
  int64_t rss_bytes = 0;
  int64_t system_bytes = 0;          // of memory, that the machine has
  int64_t allocator_used_bytes = 0;  // by the C library: what the process has of it,
  int64_t allocator_held_bytes = 0;  // and what it has of the system for that
  int64_t uptime_s = 0;
  double cpu_user_s = 0;
  double cpu_system_s = 0;
  std::string executable;
  std::string config_file;
};

struct Config;

// Names and values that CONFIG SET gives.
using ConfigChanges = std::vector<std::pair<std::string, std::string>>;

// Why a CONFIG SET is refused.
struct ConfigRefusal {
  std::string name;
  std::string why;  // empty: there is no such option
};

struct ShutdownMode {
  bool save = false;        // a snapshot first, whatever the settings say
  bool never_save = false;  // no snapshot
  bool now = false;         // without waiting for anybody
  bool force = false;       // even if the snapshot fails
};

// The disk, for the commands that speak of it. Null where there is no data folder. What returns a text
// returns that of an error, or nothing.
struct StorageHooks {
  std::function<std::string()> save;                // a snapshot, now: comes back when it is in place
  std::function<std::string()> save_in_background;  // begins with the next turn
  std::function<std::string(ShutdownMode)> shut_down;
  std::function<int64_t()> last_save_s;  // the time of the last snapshot that succeeded
  // The lines of INFO's persistence section.
  std::function<std::vector<std::pair<std::string, std::string>>()> facts;
};

// The file of users. Null where there is none.
struct AclFileHooks {
  // Its text goes to `text`; returns why it cannot be read, or nothing.
  std::function<std::string(std::string& text)> read;
  // Replaces it. Returns why it cannot, or nothing.
  std::function<std::string(std::string_view text)> write;
};

struct Config {
  Limits limits;
  uint64_t hash_seed = 0;                // the shell draws it, so that nobody can aim keys at one table
  uint64_t token_floor = 0;              // no token at or below it is issued
  std::vector<AheadToken> tokens_ahead;  // nor any of these keys at or below theirs
  DurationMs max_token_lead{86400000};
  DurationMs session_grace{0};
  // Since which start of the machine the engine's clock counts, and how far the wall clock was ahead of it
  // when a server first read the folder since then: see SavedClock. No id: not known.
  std::string boot_id;
  int64_t first_ahead_ms = 0;
  std::string run_id = std::string(40, '0');
  // Fills the span with bytes nobody can guess: owners and lease ids made by the server.
  std::function<void(std::span<uint8_t>)> random;
  std::function<HostFacts()> host_facts;
  // The C library's own report of its memory, for MEMORY MALLOC-STATS.
  std::function<std::string()> allocator_report;
  // A clock that only measures how long work takes, in microseconds; null: no work takes any time. What
  // the engine decides by it are the limits of scripts, and what it tells people.
  std::function<int64_t()> clock_us;
  // Takes what redis.log() says: 0 debug .. 3 warning.
  std::function<void(int level, std::string_view text)> log;
  // Options as CONFIG GET shows them, in order: name and value.
  ConfigChanges settings;
  uint32_t notify_flags = 0;  // NotifyFlag: which keyspace events are published
  int64_t slowlog_us = 10000;
  uint64_t slowlog_entries = 128;
  int64_t latency_threshold_ms = 0;  // 0: LATENCY keeps nothing
  bool latency_tracking = true;      // whether the times of calls are counted, for percentiles
  std::vector<double> latency_percentiles{50, 99, 99.9};  // those that INFO shows
  std::string debug_command = "no";                       // who may call DEBUG: no, yes, local
  std::string requirepass;                                // of the user "default"; empty: none
  // The users at the start, as acl_rules.h has them; they must be right, which Acl::load() tells.
  std::string acl_text;
  std::string acl_source;  // where they come from
  uint64_t acl_log_entries = 128;
  AclFileHooks acl_file;
  // Takes a line on what somebody did that others may want to know of.
  std::function<void(std::string_view line)> audit;
  // CONFIG SET: makes all of the changes or none, and writes to `config` what follows from them.
  std::function<std::optional<ConfigRefusal>(const ConfigChanges&, Config& config)> change;
  // CONFIG REWRITE: saves the options to their file, and the users in place of those that it has. Returns
  // why it cannot, or nothing.
  std::function<std::string(const std::vector<std::string>& users)> rewrite;
  StorageHooks storage;
  // DEBUG SLEEP.
  std::function<void(int64_t us)> sleep;
};

}  // namespace holdfast
