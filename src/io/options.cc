// One row an option: name, default, range, where its value goes, and what --help says. Sizes as in Redis:
// k m g are powers of 1000, kb mb gb powers of 1024.
#include "io/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "core/version.h"

namespace holdfast {
namespace {

namespace po = boost::program_options;

enum class Kind { kText, kLevel, kNumber, kSize, kOctal, kPort };

using Target = std::variant<std::string Options::*, uint64_t Options::*>;

struct Row {
  const char* group;
  const char* name;
  const char* fallback;
  Kind kind;
  Target target;
  uint64_t min;
  uint64_t max;
  const char* help;
};

constexpr uint64_t kMaxU64 = std::numeric_limits<uint64_t>::max();
constexpr uint64_t kMaxI32 = std::numeric_limits<int32_t>::max();
// A lead is counted in microseconds within a token's 53 bits.
constexpr uint64_t kMaxLeadMs = kMaxToken / 1000;

using O = Options;

// clang-format off: a table reads by its columns
const std::array kRows{
    Row{"Network", "port", "7379", Kind::kPort, &O::port, 0, 65535,
        "TCP port; 0: no TCP; auto: any free one, told by the ready line"},
    Row{"Network", "bind", "127.0.0.1 -::1", Kind::kText, &O::bind, 0, 0,
        "addresses to listen on, repeated or separated by blanks; \"-\" before one: it may be missing; "
        "\"*\" and "
        "\"::*\": all of IPv4 and of IPv6"},
    Row{"Network", "unixsocket", "", Kind::kText, &O::unixsocket, 0, 0,
        "path of a Unix socket to listen on too"},
    Row{"Network", "unixsocketperm", "0", Kind::kOctal, &O::unixsocketperm, 0, 0777,
        "permissions of the Unix socket, octal; 0: as the umask has it"},
    Row{"Network", "tcp-backlog", "511", Kind::kNumber, &O::tcp_backlog, 1, 65535,
        "connections that may wait to be accepted"},
    Row{"Network", "tcp-keepalive", "300", Kind::kNumber, &O::tcp_keepalive_s, 0, 32767,
        "seconds of silence after which the peer is probed; 0: never"},
    Row{"Network", "timeout", "0", Kind::kNumber, &O::idle_timeout_s, 0, kMaxI32,
        "seconds after which an idle client is closed, unless it waits for a lock; 0: never"},

    Row{"Limits", "maxclients", "10000", Kind::kNumber, &O::maxclients, 1, kMaxClients, "clients at once"},
    Row{"Limits", "proto-max-bulk-len", "512mb", Kind::kSize, &O::bulk_bytes, 1, kMaxI32,
        "size of one argument"},
    Row{"Limits", "max-arguments", "1048576", Kind::kNumber, &O::arguments, 1, kMaxI32,
        "arguments of one command"},
    Row{"Limits", "inline-max", "64kb", Kind::kSize, &O::inline_bytes, 32, kMaxI32,
        "size of a command typed as a line"},
    Row{"Limits", "client-query-buffer-limit", "1gb", Kind::kSize, &O::query_buffer_bytes, 1, kMaxU64,
        "unparsed input of one client, beyond which it is closed"},
    Row{"Limits", "client-output-buffer-limit", "256mb", Kind::kSize, &O::output_buffer_bytes, 0, kMaxU64,
        "unread replies of one client, beyond which it is closed; 0: no limit"},
    Row{"Limits", "maxmemory", "0", Kind::kSize, &O::memory_bytes, 0, kMaxU64,
        "memory beyond which commands that need more are refused; 0: no limit"},

    Row{"Locks", "max-waiters", "1000000", Kind::kNumber, &O::max_waiters, 0, kMaxI32,
        "waiting requests in all"},
    Row{"Locks", "max-waiters-per-key", "100000", Kind::kNumber, &O::max_waiters_per_key, 0, kMaxI32,
        "waiting requests of one key"},
    Row{"Locks", "max-owner", "512", Kind::kSize, &O::max_owner_bytes, 1, 65535, "size of an owner's name"},
    Row{"Locks", "lease-memory", "100000", Kind::kNumber, &O::lease_memory, 0, kMaxI32,
        "ended leases whose fate is remembered"},
    Row{"Locks", "max-token-lead", "86400000", Kind::kNumber, &O::max_token_lead_ms, 0, kMaxLeadMs,
        "milliseconds by which a client may push a token ahead of the clock"},
    Row{"Locks", "session-grace", "0", Kind::kNumber, &O::session_grace_ms, 0, kMaxTtlMs,
        "milliseconds that a SESSION lock outlives its connection"},

    Row{"Logging", "loglevel", "notice", Kind::kLevel, &O::loglevel, 0, 0,
        "debug, verbose, notice or warning"},
    Row{"Logging", "logfile", "", Kind::kText, &O::logfile, 0, 0,
        "file to log to, opened anew on SIGHUP; empty: standard output"},

    Row{"General", "hash-seed", "0", Kind::kNumber, &O::hash_seed, 0, kMaxU64,
        "seed of the tables, to run the same way twice; 0: a random one"},
};
// clang-format on

constexpr std::array<std::string_view, 4> kLevels{"debug", "verbose", "notice", "warning"};

struct Unit {
  std::string_view name;
  uint64_t factor;
};
constexpr std::array kUnits{Unit{"", 1},           Unit{"b", 1},        Unit{"k", 1000},
                            Unit{"kb", 1U << 10},  Unit{"m", 1000000},  Unit{"mb", 1U << 20},
                            Unit{"g", 1000000000}, Unit{"gb", 1U << 30}};

std::optional<uint64_t> parse_number(std::string_view text, int base) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_size(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<uint64_t> value = parse_number(text.substr(0, digits), 10);
  std::string unit(text.substr(digits));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  for (const Unit& u : kUnits) {
    if (u.name != unit || !value || *value > kMaxU64 / u.factor) continue;
    return *value * u.factor;
  }
  return std::nullopt;
}

std::optional<uint64_t> parse_integer(const Row& row, std::string_view text) {
  const std::optional<uint64_t> value = row.kind == Kind::kSize    ? parse_size(text)
                                        : row.kind == Kind::kOctal ? parse_number(text, 8)
                                                                   : parse_number(text, 10);
  return value && *value >= row.min && *value <= row.max ? value : std::nullopt;
}

std::string expected(const Row& row) {
  switch (row.kind) {
    case Kind::kText:
      return "text";
    case Kind::kLevel:
      return "debug, verbose, notice or warning";
    case Kind::kNumber:
      return fmt::format("a number from {} to {}", row.min, row.max);
    case Kind::kSize:
      return fmt::format("a size from {} to {} bytes, such as 100, 64kb, 512mb or 1gb", row.min, row.max);
    case Kind::kOctal:
      return fmt::format("an octal number from {:o} to {:o}", row.min, row.max);
    case Kind::kPort:
      return fmt::format("a number from {} to {}, or auto", row.min, row.max);
  }
  return "";
}

// False if the row does not take this text; then nothing has changed.
bool assign(const Row& row, const std::string& text, Options& options) {
  if (const auto* member = std::get_if<std::string Options::*>(&row.target)) {
    if (row.kind == Kind::kLevel && std::find(kLevels.begin(), kLevels.end(), text) == kLevels.end())
      return false;
    options.*(*member) = text;
    return true;
  }
  const bool any_port = row.kind == Kind::kPort && text == "auto";
  const std::optional<uint64_t> value = any_port ? 0 : parse_integer(row, text);
  if (!value) return false;
  if (row.kind == Kind::kPort) options.any_port = any_port;
  options.*std::get<uint64_t Options::*>(row.target) = *value;
  return true;
}

// The value as CONFIG GET shows it.
std::string shown(const Row& row, const Options& options) {
  if (const auto* member = std::get_if<std::string Options::*>(&row.target)) return options.*(*member);
  const uint64_t value = options.*std::get<uint64_t Options::*>(row.target);
  return row.kind == Kind::kOctal ? fmt::format("{:o}", value) : std::to_string(value);
}

const char* argument_name(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "TEXT";
    case Kind::kLevel:
      return "LEVEL";
    case Kind::kSize:
      return "SIZE";
    case Kind::kOctal:
      return "MODE";
    case Kind::kNumber:
    case Kind::kPort:
      break;
  }
  return "N";
}

po::options_description described(const char* group) {
  po::options_description options(group, 100);
  for (const Row& row : kRows) {
    if (std::string_view(row.group) != group) continue;
    const std::string fallback = *row.fallback == '\0' ? "none" : row.fallback;
    const std::string help = fmt::format("{} (default {})", row.help, fallback);
    auto* value = po::value<std::vector<std::string>>()->value_name(argument_name(row.kind));
    if (std::string_view(row.name) == "bind") value->multitoken();
    options.add_options()(row.name, value, help.c_str());
  }
  return options;
}

po::options_description file_options() {
  po::options_description all;
  for (const char* group : {"Network", "Limits", "Locks", "Logging", "General"}) all.add(described(group));
  return all;
}

po::options_description line_options() {
  po::options_description only_here("Command line only", 100);
  only_here.add_options()("config", po::value<std::vector<std::string>>()->value_name("FILE"),
                          "read options from FILE, lines of \"name = value\", # begins a comment")(
      "help,h", "print this")("version,v", "print the version");
  po::options_description all = file_options();
  all.add(only_here);
  return all;
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: holdfast-server [--config FILE] [--NAME VALUE ...]\n"
          "A lock server that speaks the Redis protocol. What the command line says wins over the file.\n"
          "Sizes take a unit: 1k is 1000 bytes, 1kb 1024; so do m and mb, g and gb.\n"
          "Exit status: 0 after SIGTERM or SIGINT, 1 if an option is wrong or the server cannot start.\n"
       << line_options();
  return text.str();
}

// What one source (line or file) says: for each name the values in their order.
using Given = std::map<std::string, std::vector<std::string>>;

Result<Given> collect(const po::parsed_options& parsed, const std::string& source) {
  Given given;
  for (const po::option& option : parsed.options) {
    if (option.string_key.empty()) {
      return Failure{fmt::format("{}unexpected argument '{}'; see --help", source, option.value.front())};
    }
    std::vector<std::string>& values = given[option.string_key];
    values.insert(values.end(), option.value.begin(), option.value.end());
  }
  return given;
}

Result<Given> read_line(int argc, const char* const* argv) {
  try {
    // Abbreviated names are refused: a new option could change what they mean.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    return collect(po::parse_command_line(argc, argv, line_options(), style), "");
  } catch (const po::error& e) {
    return Failure{fmt::format("{}; see --help", e.what())};
  }
}

Result<Given> read_file(const std::string& path) {
  std::ifstream file(path);
  // A folder opens, but cannot be read: peek() tells.
  if (!file || (file.peek() == std::ifstream::traits_type::eof() && !file.eof())) {
    return Failure{fmt::format("cannot read the config file {}: {}", path, std::strerror(errno))};
  }
  try {
    return collect(po::parse_config_file(file, file_options()), path + ": ");
  } catch (const po::error& e) {
    return Failure{fmt::format("{}: {}; see --help", path, e.what())};
  }
}

// Takes over what `given` says of the table's options. Of several values the last counts, but for
// addresses.
Result<Done> take(const Given& given, const std::string& prefix, Options& options) {
  for (const Row& row : kRows) {
    const auto found = given.find(row.name);
    if (found == given.end()) continue;
    std::string text = found->second.back();
    if (std::string_view(row.name) == "bind") text = fmt::format("{}", fmt::join(found->second, " "));
    if (assign(row, text, options)) continue;
    return Failure{fmt::format("{}{}: expected {}, got '{}'", prefix, row.name, expected(row), text)};
  }
  return Done{};
}

uint64_t or_unlimited(uint64_t limit) { return limit == 0 ? kMaxU64 : limit; }

}  // namespace

Result<Options> read_options(int argc, const char* const* argv) {
  Options options;
  for (const Row& row : kRows) {
    const bool taken = assign(row, row.fallback, options);
    assert(taken);
    static_cast<void>(taken);
  }
  Result<Given> line = read_line(argc, argv);
  if (!line) return Failure{line.error()};
  if (line->contains("help")) options.answer = help_text();
  if (line->contains("version")) options.answer = fmt::format("holdfast-server {}\n", kHoldfastVersion);
  if (!options.answer.empty()) return options;
  if (const auto config = line->find("config"); config != line->end()) {
    options.config_file = config->second.back();
    Result<Given> file = read_file(options.config_file);
    if (!file) return Failure{file.error()};
    if (Result<Done> taken = take(*file, options.config_file + ": ", options); !taken)
      return Failure{taken.error()};
  }
  if (Result<Done> taken = take(*line, "--", options); !taken) return Failure{taken.error()};
  return options;
}

LogLevel log_level(const Options& options) {
  const auto* found = std::find(kLevels.begin(), kLevels.end(), options.loglevel);
  return static_cast<LogLevel>(found - kLevels.begin());
}

Config engine_config(const Options& options) {
  Config config;
  config.limits.clients = static_cast<uint32_t>(options.maxclients);
  config.limits.bulk_bytes = options.bulk_bytes;
  config.limits.arguments = static_cast<uint32_t>(options.arguments);
  config.limits.inline_bytes = static_cast<uint32_t>(options.inline_bytes);
  config.limits.query_buffer_bytes = options.query_buffer_bytes;
  config.limits.output_buffer_bytes = or_unlimited(options.output_buffer_bytes);
  config.limits.waiters = static_cast<uint32_t>(options.max_waiters);
  config.limits.waiters_per_key = static_cast<uint32_t>(options.max_waiters_per_key);
  config.limits.owner_bytes = static_cast<uint32_t>(options.max_owner_bytes);
  config.limits.memory_bytes = options.memory_bytes;
  config.limits.lease_memory = static_cast<uint32_t>(options.lease_memory);
  config.hash_seed = options.hash_seed;
  config.max_token_lead = DurationMs{static_cast<int64_t>(options.max_token_lead_ms)};
  config.session_grace = DurationMs{static_cast<int64_t>(options.session_grace_ms)};
  for (const Row& row : kRows) config.settings.emplace_back(row.name, shown(row, options));
  config.settings.emplace_back("databases", std::to_string(kDatabases));
  // What clients and redis-benchmark ask for, by Redis's names: nothing is written to disk.
  config.settings.emplace_back("appendonly", "no");
  config.settings.emplace_back("save", "");
  return config;
}

}  // namespace holdfast
