// The options of a run: at the start, and by CONFIG SET.
#include <algorithm>
#include <array>

#include "io/config/options_table.h"
#include "named_values.h"
#include "server_generator.h"

namespace holdfast::simulation {
namespace {

// Values that the kind of the option does not give, and those that the simulation can bear: a script must
// end, and a client must be able to connect.
const std::vector<NamedValues>& special_values() {
  static const std::vector<NamedValues> all = {
      {"autosave", {"0", "500", "60000"}},
      {"busy-poll", {"auto", "no", "0", "50"}},
      {"busy-reply-threshold", {"5", "20", "5000"}},
      {"client-output-buffer-limit", {"0", "20kb", "256mb"}},
      {"client-output-buffer-limit-pubsub", {"0", "1kb", "32mb"}},
      {"enable-debug-command", {"yes", "local", "no"}},
      {"hash-max-listpack-entries", {"0", "8", "512"}},
      {"hash-max-listpack-value", {"0", "64", "5"}},
      {"journal-max-size", {"64mb", "4kb", "0", "20kb"}},
      {"latency-monitor-threshold", {"0", "1"}},
      {"latency-tracking-info-percentiles", {"", "50 99", "0 100"}},
      {"max-arguments", {"1048576", "100"}},
      {"max-ended-leases", {"100000", "2", "0"}},
      {"max-inline-size", {"64kb", "64"}},
      {"max-owner-size", {"512", "2", "3"}},
      {"max-token-lead", {"86400000", "0", "1000"}},
      {"max-waiters", {"1000000", "2", "0"}},
      {"max-waiters-per-key", {"100000", "1", "0"}},
      {"maxclients", {"10000", "7", "3"}},
      {"maxmemory", {"0", "0", "1mb", "100mb"}},
      {"notify-keyspace-events", {"", "KEA", "Kx", "Eg$h", "KEnm"}},
      {"requirepass", {"", "", "pw"}},
      {"script-run-memory-limit", {"16mb", "1mb"}},
      {"script-timeout", {"50", "300", "60000"}},
      {"slowlog-log-slower-than", {"10000", "0", "1"}},
      {"slowlog-max-len", {"128", "2", "0"}},
      {"timeout", {"0", "0", "1", "60"}},
      {"tracking-table-max-keys", {"1000000", "1", "0"}},
      {"user", {"u1 on >pw ~* &* +@all", "u2 on nopass ~k* resetchannels -@all +@lock +@connection"}},
      {"write-threshold", {"0", "1", "20"}},
  };
  return all;
}

// The simulation sets these itself, has no such thing, or cannot judge it.
bool is_outside(const Row& row) {
  constexpr std::array kOutside = {"port",          "bind",      "unixsocket", "unixsocketperm",
                                   "dir",           "logfile",   "aclfile",    "tcp-backlog",
                                   "tcp-keepalive", "tls-port",  "hash-seed",  "protected-mode",
                                   "loglevel",      "log-format"};
  const std::string_view name = row.name;
  return name.starts_with("http-") || std::ranges::find(kOutside, name) != kOutside.end();
}

// Limits that slow_scripts() reach.
std::string_view limit_for_scripts(std::string_view name) {
  if (name == "busy-reply-threshold") return "5";
  return name == "script-timeout" ? "50" : "1mb";
}

}  // namespace

std::string ServerGenerator::option_value(const Row& row) {
  if (std::string value = pick_option(row.name); !value.empty() || std::string_view(row.name) == "save")
    return value;
  if (const auto* special = values_of(special_values(), row.name)) return std::string(dice_.pick(*special));
  if (row.kind == Kind::kYesNo) return dice_.one_in(2) ? "yes" : "no";
  if (row.kind == Kind::kNumber || row.kind == Kind::kSize) {
    constexpr uint64_t kSmall = 100;
    const std::string small = std::to_string(std::clamp(kSmall, row.min, row.max));
    const std::string lowest = std::to_string(std::max<uint64_t>(row.min, 1));
    return dice_.pick<std::string>({lowest, row.fallback, std::to_string(row.max), small});
  }
  return row.fallback;
}

// Options beside those of pick_option(). Each run uses a few.
Words ServerGenerator::more_options() {
  Words options;
  for (const Row& row : option_rows()) {
    const bool scripts = row.group == std::string_view("Scripts");
    if (scripts && slow_scripts_)
      options.insert(options.end(), {row.name, std::string(limit_for_scripts(row.name))});
    if (scripts && slow_scripts_) continue;
    const bool usual = !pick_option(row.name).empty() || std::string_view(row.name) == "save";
    if (usual || is_outside(row) || std::string_view(row.name).ends_with("-max-listpack-entries")) continue;
    if (row.group == std::string_view("TLS") || !dice_.one_in(8)) continue;
    const std::string value = option_value(row);
    if (!value.empty()) options.insert(options.end(), {row.name, value});
  }
  return options;
}

// CONFIG SET of one or two options that may change at any time; at times with a value that is not allowed.
Words ServerGenerator::config() {
  Words words = {"CONFIG", "SET"};
  do {
    const Row& row = dice_.pick(changeable_);
    words.insert(words.end(), {row.name, dice_.one_in(12) ? "wrong" : option_value(row)});
  } while (dice_.one_in(4));
  return words;
}

std::vector<Row> ServerGenerator::changeable_options() {
  std::vector<Row> rows;
  for (const Row& row : option_rows()) {
    if (row.when == When::kAnyTime && !is_outside(row)) rows.push_back(row);
  }
  return rows;
}

}  // namespace holdfast::simulation
