// Uses Boost.Program_options.
#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <stdexcept>

namespace holdfast {
namespace {

namespace po = boost::program_options;

constexpr const char* kDefaultServers = "holdfast://127.0.0.1:7379";
constexpr const char* kArguments = "arguments";
constexpr int64_t kMaxLimit = 2147483647;
constexpr milliseconds kLongestTtl = LockOptions::kLongestTtl;
constexpr double kTooLongMs = 9.2e18;  // longer than any limit, and still an int64_t

po::options_description described(std::string_view options) {
  po::options_description all;
  while (!options.empty()) {
    const size_t end = std::min(options.find(' '), options.size());
    std::string name(options.substr(0, end));
    options.remove_prefix(std::min(end + 1, options.size()));
    const bool has_value = name.ends_with('=');
    if (has_value) {
      name.pop_back();
      all.add_options()(name.c_str(), po::value<std::string>());
    } else {
      all.add_options()(name.c_str(), "");
    }
  }
  all.add_options()(kArguments, po::value<std::vector<std::string>>());
  return all;
}

// Rejects an unknown option with two percent signs. Boost replaces words such as "%canonical_option%" in
// its message by the option's text. If that text contains such a word, Boost loops forever.
void refuse_endless(const std::vector<std::string>& words, const po::options_description& known) {
  for (const std::string& word : words) {
    if (word == "--") return;
    if (!word.starts_with('-') || std::ranges::count(word, '%') < 2) continue;
    const size_t dashes = word.starts_with("--") ? 2 : 0;
    const std::string name = word.substr(dashes, word.find('=') - dashes);
    if (dashes == 0 || known.find_nothrow(name, false) == nullptr)
      refuse(fmt::format("unrecognised option '{}'", word));
  }
}

// Returns the value with the characters that would end it in an address as %26 and the like.
std::string encoded(const std::string& value) {
  std::string out;
  for (const char c : value) {
    if (c == '%' || c == '&' || c == '@') {
      out += fmt::format("%{:02x}", c);
    } else {
      out += c;
    }
  }
  return out;
}

// Rejects an unknown option without its value. Boost's message shows the value too, which may be a
// password:
// "--pasword=...", "-p...".
void refuse_unknown(const std::vector<std::string>& words, const po::options_description& known) {
  for (const std::string& word : words) {
    if (word == "--") return;
    if (!word.starts_with('-') || word == "-") continue;
    const bool is_long = word.starts_with("--");
    const std::string name = is_long ? word.substr(2, word.find('=') - 2) : word.substr(0, 2);
    if (known.find_nothrow(name, false) != nullptr) continue;
    if (name == "password")
      refuse(
          "a password on the command line is visible in ps: use --password-file FILE, or "
          "HOLDFAST_PASSWORD");
    refuse(fmt::format("unrecognised option '{}{}'", is_long ? "--" : "", name));
  }
}

}  // namespace

void refuse(const std::string& why) { throw std::invalid_argument(why); }

Given read_words(const std::vector<std::string>& words, std::string_view options) {
  const po::options_description all = described(options);
  refuse_endless(words, all);
  po::positional_options_description arguments;
  arguments.add(kArguments, -1);
  Given given;
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    po::store(po::command_line_parser(words).options(all).positional(arguments).style(style).run(), given);
  } catch (const po::unknown_option&) {
    refuse_unknown(words, all);
    throw;
  }
  return given;
}

std::vector<std::string> arguments_of(const Given& given) {
  return given.contains(kArguments) ? given[kArguments].as<std::vector<std::string>>()
                                    : std::vector<std::string>();
}

void refuse_empty(const std::string& argument, std::string_view what) {
  if (argument.empty()) refuse(fmt::format("{} is empty; is a variable not set?", what));
}

milliseconds duration_of(const Given& given, const char* option, milliseconds fallback,
                         milliseconds longest) {
  if (!given.contains(option)) return fallback;
  const std::string& text = given[option].as<std::string>();
  const std::optional<milliseconds> value = parse_duration(text);
  if (!value)
    refuse(fmt::format("--{} must be a time, as in 30s, 500ms, 2m or 0.5, not '{}'", option, text));
  if (*value > longest) {
    refuse(fmt::format("--{} must be at most {}h, which are {} ms, not '{}'", option,
                       std::chrono::duration_cast<std::chrono::hours>(longest).count(), longest.count(),
                       text));
  }
  return *value;
}

int64_t number_of(const Given& given, const char* option, int64_t low, int64_t high, int64_t fallback) {
  if (!given.contains(option)) return fallback;
  const std::string& text = given[option].as<std::string>();
  int64_t value = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (wrong != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    refuse(fmt::format("--{} must be a number from {} to {}, not '{}'", option, low, high, text));
  }
  return value;
}

// Parses "50ms,2,10s"; the second and the third part are optional.
static RetryBackoff backoff_of(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  RetryBackoff backoff;
  const auto first = parse_duration(parts[0]);
  const auto longest = parts.size() > 2 ? parse_duration(parts[2]) : std::max(first, {backoff.longest});
  bool good = parts.size() <= 3 && first && longest && first->count() >= 1 && *first <= *longest;
  if (good && parts.size() > 1) {
    const char* last = parts[1].data() + parts[1].size();
    const auto [end, wrong] =
        std::from_chars(parts[1].data(), last, backoff.factor, std::chars_format::fixed);
    good = wrong == std::errc() && end == last && backoff.factor >= 1 &&
           backoff.factor <= RetryBackoff::kLargestFactor;
  }
  if (!good) {
    refuse(fmt::format(
        "--backoff must be the first pause, a factor from 1 to 100 and the longest pause, as in 100ms or "
        "50ms,2,10s, not '{}'",
        text));
  }
  backoff.first = *first;
  backoff.longest = *longest;
  return backoff;
}

void read_lock_options(const Given& given, LockSettings& lock) {
  if (given.contains("no-wait") && given.contains("wait")) refuse("-n and --wait exclude each other");
  if (given.contains("shared") && given.contains("limit"))
    refuse("--shared and --limit exclude each other");
  lock.ttl = duration_of(given, "ttl", lock.ttl, kLongestTtl);
  constexpr milliseconds kShortest = LockOptions::kShortestTtl;
  if (lock.ttl < kShortest)
    refuse(fmt::format("--ttl must be at least {} ms, not {} ms", kShortest.count(), lock.ttl.count()));
  if (given.contains("wait")) lock.wait = duration_of(given, "wait", {}, kLongestTtl);
  if (given.contains("no-wait")) lock.wait = milliseconds(0);
  lock.limit = static_cast<uint32_t>(number_of(given, "limit", 1, kMaxLimit, lock.limit));
  lock.max_attempts = static_cast<uint32_t>(number_of(given, "attempts", 1, kMaxLimit, 0));
  if (lock.max_attempts > 0 && given.contains("no-wait")) refuse("-n and --attempts exclude each other");
  if (given.contains("backoff")) lock.backoff = backoff_of(given["backoff"].as<std::string>());
  if (given.contains("note")) lock.note = given["note"].as<std::string>();
  if (lock.note.size() > LockOptions::kLongestNote)
    refuse(fmt::format("--note must be at most {} bytes, not {}", LockOptions::kLongestNote,
                       lock.note.size()));
  lock.quiet = given.contains("quiet");
  if (given.contains("limit")) lock.mode = Mode::kCountedLock;
  if (given.contains("shared")) lock.mode = Mode::kSharedLock;
}

// Rejects an embedded engine: no other process could use it.
std::string servers_of(const Given& given) {
  const char* set = std::getenv("HOLDFAST_SERVERS");
  std::string servers = set != nullptr && *set != '\0' ? set : kDefaultServers;
  if (given.contains("servers")) servers = given["servers"].as<std::string>();
  refuse_empty(servers, "--servers");
  if (servers.starts_with("embedded:")) {
    refuse(
        "--servers embedded: works only for the threads of one program, not for this command; "
        "start holdfast-server, and give its address: HOST:PORT, or several: HOST,HOST,HOST");
  }
  if (given.contains("tls")) servers = with_setting(servers, "tls", "yes");
  for (const char* option : {"cacert", "cert", "key"}) {
    if (given.contains(option)) servers = with_setting(servers, option, given[option].as<std::string>());
  }
  return servers;
}

std::string with_setting(const std::string& servers, const char* name, const std::string& value) {
  return fmt::format("{}{}{}={}", servers, servers.find('?') == std::string::npos ? '?' : '&', name,
                     encoded(value));
}

std::optional<milliseconds> parse_duration(const std::string& text) {
  if (text.empty() || ((text[0] < '0' || text[0] > '9') && text[0] != '.')) return std::nullopt;
  double value = 0;
  const char* last = text.data() + text.size();
  const auto [end, wrong] = std::from_chars(text.data(), last, value, std::chars_format::fixed);
  if (wrong != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<size_t>(last - end));
  if (unit == "s" || unit.empty()) {
    value *= 1000;
  } else if (unit == "m") {
    value *= 60 * 1000;
  } else if (unit == "h") {
    value *= 3600 * 1000;
  } else if (unit != "ms") {
    return std::nullopt;
  }
  value = std::min(value, kTooLongMs);
  // ceil() alone is not enough: 1.001 s is a little more than 1001 ms as a double.
  return milliseconds(static_cast<int64_t>(std::ceil(value - 1e-6)));
}

}  // namespace holdfast
