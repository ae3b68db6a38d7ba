// Options from the command line and the config file, and the values derived from them; their table is
// options_table.cc.
#include "io/config/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/program_options.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <sstream>
#include <vector>

#include "core/base/event_flags.h"
#include "core/command/command.h"
#include "io/config/config_file.h"
#include "io/config/fixed_settings.h"
#include "io/config/options_table.h"
#include "io/config/programs.h"
#include "io/os/build_info.h"
#include "io/os/replace_file.h"

namespace holdfast {
namespace {

namespace po = boost::program_options;

const char* argument_name(Kind kind) {
  switch (kind) {
    case Kind::kText:
      return "TEXT";
    case Kind::kPath:
      return "PATH";
    case Kind::kSecret:
      return "PASSWORD";
    case Kind::kUser:
      return "RULES";
    case Kind::kLevel:
      return "LEVEL";
    case Kind::kLogFormat:
      return "FORMAT";
    case Kind::kYesNo:
      return "yes|no";
    case Kind::kAuth:
      return "yes|no|optional";
    case Kind::kFsync:
      return "WHEN";
    case Kind::kSave:
      return "PAIRS";
    case Kind::kBusyPoll:
      return "WHEN";
    case Kind::kPercentiles:
      return "NUMBERS";
    case Kind::kDebug:
      return "WHO";
    case Kind::kEvents:
      return "LETTERS";
    case Kind::kSize:
      return "SIZE";
    case Kind::kOctal:
      return "MODE";
    case Kind::kNumber:
    case Kind::kNumberOrOff:
    case Kind::kPort:
      break;
  }
  return "N";
}

po::options_description described(const char* group) {
  po::options_description options(group, 100);
  for (const Row& row : option_rows()) {
    if (std::string_view(row.group) != group) continue;
    const std::string fallback = *row.fallback == '\0' ? "none" : row.fallback;
    const std::string help = fmt::format("{} (default {})", row.help, fallback);
    auto* value = po::value<std::vector<std::string>>()->value_name(argument_name(row.kind));
    if (is_address_list(row)) value->multitoken();
    options.add_options()(row.name, value, help.c_str());
  }
  return options;
}

bool has_rows(std::string_view group) {
  return std::ranges::any_of(option_rows(), [&](const Row& row) { return row.group == group; });
}

po::options_description file_options() {
  po::options_description all;
  for (const char* group : {"Network", "TLS", "HTTP", "Proxy", "Security", "Limits", "Locks", "Disk",
                            "Data", "Scripts", "Logging", "General"}) {
    if (has_rows(group)) all.add(described(group));
  }
  return all;
}

// Adds the old names. --help does not list them.
po::options_description with_old_names(po::options_description options) {
  for (const Alias& alias : option_aliases()) {
    if (find_row(alias.name) != nullptr)
      options.add_options()(alias.old_name, po::value<std::vector<std::string>>());
  }
  return options;
}

po::options_description line_options() {
  po::options_description only_here("Command line only", 100);
  only_here.add_options()("config", po::value<std::vector<std::string>>()->value_name("FILE"),
                          "file to read options from; each line is \"name = value\"; # starts a comment")(
      "check-config",
      "check the options, and all that a start would check, without a start: --check-config FILE checks a "
      "file; exit status 0 or 1, with one line for each error")(
      "print-config", "print a config file that has all options, with these options set")(
      "print-commands", "print the commands of the protocol: name, arguments, group, complexity, summary")(
      "help,h", "print this help")("version,v", "print the version");
  po::options_description all = file_options();
  all.add(only_here);
  return all;
}

std::string help_text() {
  std::ostringstream text;
  text << "Usage: " << program_name()
       << " [--config FILE] [--NAME VALUE ...]\n"
          "A lock server that speaks the Redis protocol. The command line wins over the file.\n"
          "Sizes take a unit: 1k is 1000 bytes, 1kb is 1024 bytes; m and mb, g and gb follow the same "
          "rule.\n"
          "Old names of options still work; docs/configuration.md lists them under \"Old names\".\n"
          "Exit status: 0 after SIGTERM or SIGINT, 1 if an option is wrong or the server cannot start.\n"
       << line_options();
  return text.str();
}

// The options that the file cannot have.
constexpr std::array<std::string_view, 6> kLineOnly{"config",         "check-config", "print-config",
                                                    "print-commands", "help",         "version"};

// Returns a line for each command, with its parts separated by tabs.
std::string command_lines() {
  std::string lines;
  for (const Command& command : all_commands()) {
    std::string name = upper_case(command.name);
    std::ranges::replace(name, '|', ' ');
    lines += fmt::format("{}\t{}\t{}\t{}\t{}\n", name, command.syntax, command.group, command.complexity,
                         command.summary);
  }
  return lines;
}

// Returns the words that can follow an option, each with its description.
std::string value_lines(std::string_view name, std::string_view begin) {
  const Row* row = find_row(name);
  if (name == "config" || name == "check-config" || (row != nullptr && row->kind == Kind::kPath))
    return ":files\n";
  std::string lines;
  if (row == nullptr) return lines;
  for (const std::string_view word : choices(*row)) {
    if (word.starts_with(begin)) lines += fmt::format("{}\tvalue\n", word);
  }
  if (row->kind == Kind::kPort && std::string_view("auto").starts_with(begin))
    lines += "auto\tany free port\n";
  const std::string_view fallback = row->fallback;
  if (choices(*row).empty() && !fallback.empty() && fallback.starts_with(begin))
    lines += fmt::format("{}\tdefault\n", fallback);
  return lines;
}

// Returns what can be in the place of the last word, for the shells: see cli/complete.h.
std::string completions(const std::vector<std::string_view>& words) {
  if (words.empty()) return "";
  const po::options_description all = line_options();
  const std::string_view before = words.size() > 1 ? words[words.size() - 2] : "";
  const auto takes_value = [before](const auto& option) {
    return before == "--" + option->long_name() &&
           (option->semantic()->max_tokens() > 0 || option->long_name() == "check-config");
  };
  if (std::ranges::any_of(all.options(), takes_value)) return value_lines(before.substr(2), words.back());
  std::string lines;
  for (const auto& option : all.options()) {
    const std::string word = "--" + option->long_name();
    if (word.starts_with(words.back())) lines += fmt::format("{}\t{}\n", word, option->description());
  }
  return lines;
}

// One option in one source (command line or file).
struct GivenOption {
  std::string written;  // the name in the source, which may be an old one; that of the last value
  std::vector<std::string> values;
};

// All options of one source by their names, never by old ones.
using Given = std::map<std::string, GivenOption>;

void add(Given& given, const std::string& written, const std::vector<std::string>& values) {
  const Row* row = find_row(written);
  GivenOption& option = given[row != nullptr ? row->name : written];
  option.written = written;
  option.values.insert(option.values.end(), values.begin(), values.end());
}

bool is_secret(const Row* row) { return row != nullptr && is_secret(*row); }

// A word that is no option names the file to check: --check-config FILE.
bool names_file(const po::parsed_options& parsed) {
  const auto is_word = [](const po::option& o) { return o.string_key.empty(); };
  const auto is_check = [](const po::option& o) { return o.string_key == "check-config"; };
  return std::ranges::count_if(parsed.options, is_word) == 1 &&
         std::ranges::any_of(parsed.options, is_check);
}

// The word is not shown after a secret option: it may be the rest of a password with a blank in it.
Failure unexpected_argument(const po::parsed_options& parsed, const std::string& word) {
  const bool may_show = std::ranges::none_of(
      parsed.options, [](const po::option& o) { return is_secret(find_row(o.string_key)); });
  return {fmt::format("unexpected argument{}; put a value with blanks in quotation marks; see --help",
                      may_show ? " '" + word + "'" : "")};
}

Result<Given> collect(const po::parsed_options& parsed) {
  Given given;
  for (const po::option& option : parsed.options) {
    const bool is_word = option.string_key.empty();
    if (is_word && !names_file(parsed)) return unexpected_argument(parsed, option.value.front());
    add(given, is_word ? "config" : option.string_key, option.value);
  }
  return given;
}

// Boost copies an unknown option into its message in the place of words such as "%canonical_option%". It
// loops without end if the option itself contains such a word. No valid option has two percent signs.
bool is_endless(std::string_view text) {
  const std::string_view name = text.substr(0, text.find_first_of(" \t="));
  return find_row(name) == nullptr && name != "config" && std::ranges::count(text, '%') > 1;
}

// The text after the name is not shown: it may be the password of a mistyped option.
Failure unknown_option(std::string_view text) {
  const bool letter = text.starts_with('-') && !text.starts_with("--");
  const std::string_view name = text.substr(0, text.find_first_of(" \t="));
  return {fmt::format("unrecognised option '{}'; see --help", letter ? name.substr(0, 2) : name)};
}

Failure unknown_word(std::span<const char* const> words) {
  for (const std::string_view word : words) {
    const size_t dashes = word.starts_with("--") ? 2 : 0;
    const std::string_view name = word.substr(dashes, word.find('=') - dashes);
    const bool known = std::ranges::find(kLineOnly, name) != kLineOnly.end() || find_row(name) != nullptr;
    if (word.starts_with('-') && (dashes == 0 || !known) && word != "-h" && word != "-v")
      return unknown_option(word);
  }
  return {"unrecognised option; see --help"};
}

Result<Given> read_line(int argc, const char* const* argv) {
  for (const std::string_view word : std::span(argv, static_cast<size_t>(argc)).subspan(1)) {
    const size_t dashes = word.starts_with("--") ? 2 : 0;
    if (word.starts_with('-') && is_endless(word.substr(dashes))) return unknown_option(word);
  }
  try {
    // Abbreviated names are rejected, because a new option could change their meaning.
    const int style = po::command_line_style::default_style & ~po::command_line_style::allow_guessing;
    return collect(po::parse_command_line(argc, argv, with_old_names(line_options()), style));
  } catch (const po::unknown_option&) {
    return unknown_word(std::span(argv, static_cast<size_t>(argc)).subspan(1));
  } catch (const po::error& e) {
    return Failure{fmt::format("{}; see --help", e.what())};
  }
}

// Returns the settings of the file. Appends its errors to `errors`.
Given read_file(const std::string& path, std::vector<std::string>& errors) {
  std::ifstream file(path);
  // A folder can be opened but not read: peek() detects that.
  if (!file || (file.peek() == std::ifstream::traits_type::eof() && !file.eof())) {
    errors.push_back(fmt::format("cannot read the config file {}: {}", path, std::strerror(errno)));
    return {};
  }
  file.clear();
  FileSettings read = read_settings(file, path);
  errors.insert(errors.end(), read.errors.begin(), read.errors.end());
  Given given;
  for (FileSetting& setting : read.settings) add(given, setting.written, {std::move(setting.value)});
  return given;
}

// Assigns the values in `given` to the options. If an option has several values, the last one counts;
// `bind` and `user` use all values.
void take(const Given& given, Options& options, std::vector<std::string>& errors) {
  for (const Row& row : option_rows()) {
    const auto found = given.find(row.name);
    if (found == given.end()) continue;
    const std::string text = combined(row, found->second.values);
    if (assign(row, text, options)) continue;
    const std::string got = is_secret(row) ? "" : fmt::format(", got '{}'", text);
    errors.push_back(fmt::format("--{}: expected {}{}", found->second.written, expected(row), got));
  }
}

// Appends an error for each pair of options that contradict each other.
void check_pairs(const Options& options, std::vector<std::string>& errors) {
  if (!options.users.empty() && !options.aclfile.empty())
    errors.emplace_back("the options user and aclfile cannot be used together; remove one of them");
  if (options.port != 0 && options.port == options.tls_port)
    errors.push_back(
        fmt::format("port and tls-port are both {}; choose another port for one of them", options.port));
  if (options.log_format == "journald" && !options.logfile.empty())
    errors.emplace_back("log-format journald writes no time, which logfile needs; remove one of them");
  if (!has_http(options) && (!options.http_bind.empty() || options.http_tls == "yes"))
    errors.emplace_back("http-bind and http-tls have no effect without http-port; set it, or remove them");
  if (options.unixsocketperm != 0 && options.unixsocket.empty())
    errors.emplace_back(
        "unixsocketperm has no effect without unixsocket; set it, or remove unixsocketperm");
}

void set_defaults(Options& options) {
  // Those of this program last: they may have other defaults.
  for (const std::span<const Row> rows : {all_option_rows(), option_rows()}) {
    for (const Row& row : rows) {
      const bool taken = assign(row, row.fallback, options);
      assert(taken);
      static_cast<void>(taken);
    }
  }
}

uint64_t or_unlimited(uint64_t limit) { return limit == 0 ? std::numeric_limits<uint64_t>::max() : limit; }

}  // namespace

ReadOptions read_all_options(int argc, const char* const* argv) {
  ReadOptions read;
  auto& [options, errors] = read;
  set_defaults(options);
  if (argc > 1 && std::string_view(argv[1]) == "__complete") {
    options.answer = completions({argv + 2, argv + argc});
    return read;
  }
  Result<Given> line = read_line(argc, argv);
  if (!line) {
    errors.push_back(line.error());
    return read;
  }
  options.check_only = line->contains("check-config");
  if (line->contains("help")) options.answer = help_text();
  if (line->contains("version")) options.answer = version_text(program_name());
  if (line->contains("print-commands")) options.answer = command_lines();
  if (options.answer) return read;
  if (const auto config = line->find("config"); config != line->end()) {
    options.config_file = config->second.values.back();
    take(read_file(options.config_file, errors), options, errors);
  }
  take(*line, options, errors);
  check_pairs(options, errors);
  if (line->contains("print-config")) options.answer = commented_config(options);
  return read;
}

Result<Options> read_options(int argc, const char* const* argv) {
  ReadOptions read = read_all_options(argc, argv);
  if (!read.errors.empty()) return Failure{read.errors.front()};
  return std::move(read.options);
}

void hide_secrets(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) continue;
    const size_t end = std::min(word.find('='), word.size());
    if (!is_secret(find_row(word.substr(2, end - 2)))) continue;
    char* value = end < word.size() ? argv[i] + end + 1 : i + 1 < argc ? argv[++i] : nullptr;
    if (value != nullptr) std::fill_n(value, std::strlen(value), '*');
  }
}

// Returns why the option cannot have the value, or an empty string.
static std::string change_option(const std::string& name, const std::string& value, Options& options) {
  const Row* const row = find_row(name);
  if (row == nullptr) return fixed_refusal(name, value);
  if (row->when == When::kStart) return "can't set immutable config";
  return assign(*row, value, options) ? "" : refusal(*row, value);
}

std::optional<ConfigRefusal> change_options(Options& options, const ConfigChanges& changes) {
  Options changed = options;
  std::set<std::string> seen;
  for (const auto& [name, value] : changes) {
    if (find_row(name) == nullptr && !is_fixed_setting(name)) return ConfigRefusal{name, ""};
  }
  for (const auto& [name, value] : changes) {
    const Row* const row = find_row(name);
    if (!seen.insert(row == nullptr ? name : row->name).second)
      return ConfigRefusal{name, "duplicate parameter"};
    if (const std::string why = change_option(name, value, changed); !why.empty())
      return ConfigRefusal{name, why};
  }
  std::vector<std::string> errors;
  check_pairs(changed, errors);
  if (!errors.empty()) return ConfigRefusal{changes.front().first, errors.front()};
  options = changed;
  return std::nullopt;
}

void adopt_changes(const Options& options, Config& config) {
  Config made = engine_config(options);
  config.limits = made.limits;
  config.max_token_lead = made.max_token_lead;
  config.session_grace = made.session_grace;
  config.settings = std::move(made.settings);
  config.renamed_settings = std::move(made.renamed_settings);
  config.limits.set_intset_entries = static_cast<uint32_t>(options.set_intset_entries);
  config.limits.zset_packed_entries = static_cast<uint32_t>(options.zset_packed_entries);
  config.limits.zset_packed_member_bytes = static_cast<uint32_t>(options.zset_packed_member_bytes);
  config.notify_flags = made.notify_flags;
  config.slowlog_us = made.slowlog_us;
  config.slowlog_entries = made.slowlog_entries;
  config.latency_threshold_ms = made.latency_threshold_ms;
  config.latency_tracking = made.latency_tracking;
  config.latency_percentiles = std::move(made.latency_percentiles);
  config.acl_log_entries = made.acl_log_entries;
  config.slow_wait_ms = made.slow_wait_ms;
}

Result<Done> rewrite_config_file(const Options& options, const std::vector<std::string>& users) {
  const std::string& path = options.config_file;
  if (path.empty()) return Failure{"The server is running without a config file"};
  if (Result<std::string> file = regular_file(path); !file)
    return Failure{fmt::format("Rewriting config file: {}", file.error())};
  std::ifstream old(path);
  if (!old) return Failure{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  if (Result<Done> written = replace_file(path, rewritten_config(old, options, users)); !written) {
    return Failure{fmt::format("Rewriting config file: {}", written.error())};
  }
  return Done{};
}

bool has_http(const Options& options) { return options.any_http_port || options.http_port != 0; }

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
  config.limits.pubsub_output_bytes = options.pubsub_output_bytes;
  config.limits.tracking_keys = options.tracking_keys;
  config.limits.patterns = static_cast<uint32_t>(options.patterns);
  config.limits.busy_reply_ms = static_cast<int64_t>(options.busy_reply_ms);
  config.limits.script_hard_ms = static_cast<int64_t>(options.script_hard_ms);
  config.limits.script_memory_bytes = options.script_memory_bytes;
  config.limits.script_run_bytes = options.script_run_bytes;
  config.limits.hash_packed_entries = static_cast<uint32_t>(options.hash_packed_entries);
  config.limits.hash_packed_value_bytes = static_cast<uint32_t>(options.hash_packed_value_bytes);
  config.limits.set_intset_entries = static_cast<uint32_t>(options.set_intset_entries);
  config.limits.zset_packed_entries = static_cast<uint32_t>(options.zset_packed_entries);
  config.limits.zset_packed_member_bytes = static_cast<uint32_t>(options.zset_packed_member_bytes);
  config.notify_flags = *parse_event_flags(options.notify_events);
  config.slowlog_us = static_cast<int64_t>(options.slowlog_us);
  config.slowlog_entries = options.slowlog_entries;
  config.latency_threshold_ms = static_cast<int64_t>(options.latency_threshold_ms);
  config.latency_tracking = options.latency_tracking == "yes";
  config.latency_percentiles = *parse_percentiles(options.latency_percentiles);
  config.debug_command = options.debug_command;
  config.limits.history_events = static_cast<uint32_t>(options.history_events);
  config.limits.max_ended_leases = static_cast<uint32_t>(options.max_ended_leases);
  config.hash_seed = options.hash_seed;
  config.max_token_lead = DurationMs{static_cast<int64_t>(options.max_token_lead_ms)};
  config.session_grace = DurationMs{static_cast<int64_t>(options.session_grace_ms)};
  config.requirepass = options.requirepass;
  config.acl_log_entries = options.acl_log_entries;
  config.slow_wait_ms = static_cast<int64_t>(options.log_waits_over_ms);
  for (const Row& row : option_rows()) {
    if (row.kind != Kind::kUser) config.settings.emplace_back(row.name, shown(row, options));
  }
  for (auto& setting : fixed_settings(options)) config.settings.push_back(std::move(setting));
  for (const Alias& alias : option_aliases()) {
    if (const Row* row = find_row(alias.name))
      config.renamed_settings.emplace_back(alias.old_name, shown(*row, options));
  }
  return config;
}

}  // namespace holdfast
