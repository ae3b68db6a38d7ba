// The settings of an engine: limits, durations, and hooks for work that the engine must not do itself. A
// plain value; the shell fills it from its options, a test from its case.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/remote_keys.h"
#include "core/base/types.h"

namespace holdfast {

inline constexpr uint32_t kMaxClients = 1U << 20U;  // the largest value of the limit itself

// Each resource that clients can make grow has a limit here. A limit is the largest value that is allowed.
struct Limits {
  uint32_t clients = 10000;
  uint64_t bulk_bytes = 512ULL << 20;        // one argument of a command
  uint32_t arguments = 1U << 20;             // arguments of one command
  uint32_t inline_bytes = 64U << 10;         // a command typed as a line; also the length line of a frame
  uint64_t query_buffer_bytes = 1ULL << 30;  // unparsed input of one connection
  uint64_t output_buffer_bytes = 256ULL << 20;  // unsent replies of one connection
  uint32_t waiters = 1000000;                   // waiting requests, in total; once for each key
  uint32_t waiters_per_key = 100000;
  uint32_t keys_per_wait = 1024;  // keys that one BLPOP may wait for
  uint32_t owner_bytes = 512;
  uint64_t memory_bytes = 0;                   // 0: no limit
  uint32_t history_events = 10000;             // events of LOCKS HISTORY; 0: none
  uint32_t max_ended_leases = 100000;          // ended leases whose outcome is remembered
  uint64_t pubsub_output_bytes = 32ULL << 20;  // unsent messages and replies of a subscriber; 0: no limit
  uint32_t patterns = 1000;                    // different patterns that PSUBSCRIBE has named
  uint64_t tracking_keys = 1000000;            // keys remembered for CLIENT TRACKING; 0: no limit
  int64_t busy_reply_ms = 5000;                // a script that runs longer no longer blocks other clients
  int64_t script_hard_ms = 60000;  // a script that runs longer and has not written is ended; 0: no limit
  uint64_t script_memory_bytes = 256ULL << 20;  // of all scripts and the data that they create
  uint64_t script_run_bytes = 16ULL << 20;      // of one run, without its arguments
  uint32_t hash_packed_entries = 512;           // fields of a packed hash
  uint32_t hash_packed_value_bytes = 64;        // size of a field or value in a packed hash
  uint32_t set_intset_entries = 512;            // members of an intset
  uint32_t zset_packed_entries = 128;           // members of a packed sorted set
  uint32_t zset_packed_member_bytes = 64;       // size of a member in a packed sorted set
};

// How the loop waits for its next event, and how often and how long it polled without a sleep.
struct BusyPollFacts {
  std::string mode;  // the option busy-poll
  uint64_t spins = 0;
  uint64_t hits = 0;         // spins that an event ended
  uint64_t preemptions = 0;  // spins that let another thread run
  uint64_t spun_us = 0;
};

// Facts about the process for INFO and CONFIG GET. The engine asks for them only when a client does.
struct HostFacts {
  int64_t pid = 0;
  int64_t tcp_port = 0;
  int64_t rss_bytes = 0;
  int64_t system_bytes = 0;   // memory of the machine
  int64_t private_bytes = 0;  // the part of rss_bytes that belongs to no file: heap, arenas, stacks
  int64_t uptime_s = 0;
  double cpu_user_s = 0;
  double cpu_system_s = 0;
  std::string executable;
  std::string config_file;
  BusyPollFacts busy_poll;
};

// The CPU time of loop iterations, for DEBUG LOOP.
struct LoopTimes {
  uint64_t iterations = 0;
  uint64_t over_1ms = 0;  // iterations that took longer than 1 ms
  uint64_t longest_us = 0;
};

struct Config;

// Names and values of a CONFIG SET.
using ConfigChanges = std::vector<std::pair<std::string, std::string>>;

// The reason why a CONFIG SET is rejected.
struct ConfigRefusal {
  std::string name;
  std::string why;  // empty: there is no such option
};

struct ShutdownMode {
  bool save = false;        // write a snapshot first, whatever the settings are
  bool never_save = false;  // write no snapshot
  bool now = false;         // do not wait for clients
  bool force = false;       // stop even if the snapshot fails
};

// The next bytes of a backup, or why it failed.
struct BackupBytes {
  std::string bytes;   // empty: the next bytes are not ready yet, ask again
  std::string error;   // empty: no error. The backup ends with an error
  bool ended = false;  // the client has all bytes
};

// The disk, for the commands that need it. The hooks are null if there is no data folder. A returned text
// is an error; it is empty on success.
struct StorageHooks {
  std::function<std::string()> save;                // writes a snapshot now; returns when it is in place
  std::function<std::string()> save_in_background;  // begins with the next loop iteration
  std::function<std::string(ShutdownMode)> shut_down;
  // Begins a backup for a connection; replaces its former one, if that has not ended.
  std::function<std::string(ConnId)> start_backup;
  std::function<BackupBytes(ConnId)> read_backup;
  std::function<int64_t()> last_save_s;  // time of the last snapshot that succeeded
  // Returns the lines of INFO's persistence section.
  std::function<std::vector<std::pair<std::string, std::string>>()> facts;
};

// The file of users. The hooks are null if there is none.
struct AclFileHooks {
  // Reads the file into `text`. Returns an error, or an empty text on success.
  std::function<std::string(std::string& text)> read;
  // Replaces the file. Returns an error, or an empty text on success.
  std::function<std::string(std::string_view text)> write;
};

// A wait for a lock that has just ended. The texts are valid during the call.
struct SlowWait {
  uint32_t db = 0;
  std::string_view key;
  std::string_view owner;
  std::string_view holder;  // the owner that held the key during the wait; empty: no single holder
  int64_t waited_ms = 0;
  bool granted = false;
};

struct Config {
  Limits limits;
  uint64_t hash_seed = 0;    // the shell draws it at random, so that no client can aim keys at one table
  uint64_t token_floor = 0;  // no token at or below it is issued
  std::vector<AheadToken> tokens_ahead;  // the same, for single keys with a floor of their own
  DurationMs max_token_lead{86400000};
  DurationMs session_grace{0};
  // `boot_id` names the start of the machine since which the engine's clock counts; empty: not known.
  // `first_ahead_ms` is how far the wall clock was ahead of that clock when a server first read the folder
  // after this start: see SavedClock.
  std::string boot_id;
  int64_t first_ahead_ms = 0;
  std::string run_id = std::string(40, '0');
  // Fills the span with unpredictable bytes: for owners and lease ids that the server makes.
  std::function<void(std::span<uint8_t>)> random;
  std::function<HostFacts()> host_facts;
  // The C library's own report of its memory, for MEMORY MALLOC-STATS.
  std::function<std::string()> allocator_report;
  // A clock in microseconds that only measures how long work takes. Null: all work takes no time. The
  // engine uses it only for the limits of scripts and for the durations that it reports.
  std::function<int64_t()> clock_us;
  // Takes the text of redis.log(); levels 0 debug .. 3 warning.
  std::function<void(int level, std::string_view text)> log;
  // Takes each wait for a lock that took longer than `slow_wait_ms`, granted or not; 0: none.
  std::function<void(const SlowWait&)> slow_wait;
  int64_t slow_wait_ms = 0;
  // The options in the order of CONFIG GET: name and value.
  ConfigChanges settings;
  // The options that were renamed: old name and value. CONFIG GET shows one only if a request names it
  // exactly.
  ConfigChanges renamed_settings;
  uint32_t notify_flags = 0;   // NotifyFlag: the keyspace events that are published
  int64_t slowlog_us = 10000;  // -1: off
  uint64_t slowlog_entries = 128;
  int64_t latency_threshold_ms = 0;  // 0: LATENCY records nothing
  bool latency_tracking = true;      // whether the durations of calls are counted, for percentiles
  std::vector<double> latency_percentiles{50, 99, 99.9};  // the percentiles in INFO
  std::string debug_command = "no";                       // clients that may call DEBUG: no, yes, local
  std::string requirepass;                                // password of the user "default"; empty: none
  // The users at the start, in the form of acl_rules.h. They must be valid: check them with Acl::load().
  std::string acl_text;
  std::string acl_source;  // origin of `acl_text`
  uint64_t acl_log_entries = 128;
  AclFileHooks acl_file;
  // Takes a line about an administrative action of a client.
  std::function<void(std::string_view line)> audit;
  // CONFIG SET: makes all of the changes or none, and writes the resulting settings to `config`.
  std::function<std::optional<ConfigRefusal>(const ConfigChanges&, Config& config)> change;
  // CONFIG REWRITE: writes the options to their file, and replaces its users by `users`. Returns an error,
  // or an empty text on success.
  std::function<std::string(const std::vector<std::string>& users)> rewrite;
  StorageHooks storage;
  // For a proxy, whose keys are on other servers.
  RemoteHooks remote;
  // DEBUG SLEEP: sleeps for `us` microseconds.
  std::function<void(int64_t us)> sleep;
  // DEBUG LOOP: begins or ends a measurement. Returns the figures since the last begin.
  std::function<LoopTimes(bool on)> measure_loop;
};

}  // namespace holdfast
