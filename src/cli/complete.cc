// Reads the texts of --help, which have options and verbs in fixed columns. Names of locks come from the
// servers, if they answer soon: a key press must not wait for long.
#include "cli/complete.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <set>
#include <sstream>

#include "cli/options.h"
#include "cli/output.h"
#include "cli/secrets.h"
#include "cli/servers.h"
#include "cli/show.h"

namespace holdfast {
namespace {

constexpr size_t kHelpColumn = 22;  // where the description of an option begins
constexpr const char* kServerTimeoutMs = "300";
constexpr const char* kMostNames = "2000";

struct Option {
  std::string name;    // "--wait"
  std::string letter;  // "-w", or empty
  std::string value;   // as in the help: "TIME"; empty: it has none
  std::string description;
};

std::string trimmed(std::string_view text) {
  const size_t first = std::min(text.find_first_not_of(' '), text.size());
  return std::string(text.substr(first, text.find_last_not_of(' ') + 1 - first));
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

// Parses a line such as "  -w, --wait TIME     the longest wait for the lock".
std::optional<Option> option_in(const std::string& line) {
  Option option;
  const size_t name = line.find("--");
  if (!line.starts_with("  -") || (name != 2 && name != 6)) return std::nullopt;
  if (name == 6) option.letter = line.substr(2, 2);
  const size_t end = std::min(line.find(' ', name), line.size());
  option.name = line.substr(name, end - name);
  if (end < kHelpColumn) option.value = trimmed(line.substr(end, kHelpColumn - 1 - end));
  if (line.size() > kHelpColumn) option.description = line.substr(kHelpColumn);
  return option;
}

std::vector<Option> options_in(const std::string& help) {
  std::vector<Option> options;
  for (const std::string& line : split(help, '\n')) {
    if (auto option = option_in(line)) options.push_back(std::move(*option));
  }
  return options;
}

const Option* find_option(const std::vector<Option>& options, const std::string& word) {
  const auto found = std::ranges::find_if(
      options, [&](const Option& o) { return o.name == word || (o.letter == word && !word.empty()); });
  return found == options.end() ? nullptr : &*found;
}

// The command line up to the word that is completed.
struct Line {
  std::vector<std::string> words;  // from the verb on
  std::string current;
  std::vector<Option> options;  // of the verb
  std::string usage;            // the first line of its help
};

void offer(const Line& line, const std::string& word, const std::string& description = "") {
  if (word.starts_with(line.current)) print("{}\t{}\n", word, description);
}

// Returns the pattern that matches all names that begin with `text`.
std::string pattern_of(const std::string& text) {
  std::string pattern;
  for (const char c : text) {
    if (std::string_view("*?[]\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern + "*";
}

// Returns the address from the words of the command line and the environment.
std::string address_of(const Line& line) {
  const std::vector<Option> known = options_in(std::string(kServerHelp));
  std::vector<std::string> given;
  for (size_t i = 1; i < line.words.size(); ++i) {
    const std::string& word = line.words[i];
    const Option* option = find_option(known, word.substr(0, word.find('=')));
    if (option == nullptr) continue;
    given.push_back(word);
    if (!option->value.empty() && word == option->name && i + 1 < line.words.size())
      given.push_back(line.words[++i]);
    // A password on standard input would be read from the terminal.
    if (given.back() == "-" || given.back().ends_with("=-")) refuse("");
  }
  const Given parsed = read_words(given, kServerOptions);
  return with_setting(with_login(servers_of(parsed), parsed), "timeout", kServerTimeoutMs);
}

// Offers the names of the locks that are held. Without an answer of a server there are none.
void offer_locks(const Line& line) {
  std::set<std::string> names;
  try {
    Servers servers(address_of(line));
    const std::vector<std::string> argv{"LOCKS", "LIST",    "0", "MATCH", pattern_of(line.current),
                                        "COUNT", kMostNames};
    for (const Answer& answer : servers.ask(servers.all(), argv)) {
      if (!answer.is(client::Value::Kind::kArray) || answer.value.elements.size() != 2) continue;
      for (const client::Value& row : answer.value.elements[1].elements)
        names.insert(field(row, "key").text);
    }
  } catch (const std::exception&) {
    return;  // a wrong address or password: the command itself will say so
  }
  for (const std::string& name : names) {
    const bool plain = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
    if (plain && !name.empty()) offer(line, name, "lock");
  }
}

void offer_values(const Line& line, const Option& option) {
  if (option.value == "F" || option.value == "FILE" || option.value == "DIR") return print(":files\n");
  if (option.value == "PATTERN") return offer_locks(line);
  static constexpr std::array kAddresses{"127.0.0.1:7379", "holdfast://", "holdfasts://",    "quorum://",
                                         "redis://",       "rediss://",   "redis-cluster://"};
  static constexpr std::array kTimes{"500ms", "10s", "30s", "5m", "1h"};
  if (option.value == "WHERE") {
    for (const char* address : kAddresses) offer(line, address, "address");
  } else if (option.value == "TIME") {
    for (const char* time : kTimes) offer(line, time, "time");
  }
}

// Returns the number of the words behind the verb that are neither options nor their values.
size_t arguments_before(const Line& line) {
  size_t arguments = 0;
  for (size_t i = 1; i < line.words.size(); ++i) {
    const Option* option = find_option(line.options, line.words[i]);
    if (option != nullptr && !option->value.empty()) ++i;
    if (option == nullptr && !line.words[i].starts_with('-')) ++arguments;
  }
  return arguments;
}

// Returns the arguments of the verb, as its usage names them: "NAME", "OWNER", "PATH...".
std::vector<std::string> arguments_in(const std::string& usage) {
  std::vector<std::string> arguments = split(usage, ' ');
  std::erase_if(arguments,
                [](const std::string& word) { return word.empty() || word[0] < 'A' || word[0] > 'Z'; });
  arguments.erase(arguments.begin());  // "Usage:"
  std::erase_if(arguments, [](const std::string& word) { return word.find(']') != std::string::npos; });
  return arguments;
}

void offer_arguments(const Line& line) {
  const std::vector<std::string> arguments = arguments_in(line.usage);
  if (arguments.empty()) return;
  const size_t place = arguments_before(line);
  if (place >= arguments.size() && !arguments.back().ends_with("...")) return;
  const std::string& argument = arguments[std::min(place, arguments.size() - 1)];
  for (const char* files : {"PATH", "DIR", "FILE"}) {
    if (argument.starts_with(files)) return print(":files\n");
  }
  if (argument.starts_with("NAME")) offer_locks(line);
}

void offer_verbs(const Line& line, const std::string& usage) {
  for (const std::string& row : split(usage, '\n')) {
    const size_t description = row.rfind("  ");
    if (!row.starts_with("  ") || description == 0) continue;
    offer(line, trimmed(row.substr(2, row.find(' ', 2) - 2)), row.substr(description + 2));
  }
  offer(line, "--help", "list the verbs");
  offer(line, "--version", "print the version");
}

}  // namespace

void complete(const std::vector<std::string>& words, const std::string& usage, HelpOf help_of) {
  if (words.empty()) return;
  Line line{{words.begin(), words.end() - 1}, words.back(), {}, ""};
  if (line.words.empty()) return offer_verbs(line, usage);
  const std::string help = help_of(line.words[0]);
  if (help.empty()) return;  // no such verb
  line.options = options_in(help);
  line.usage = help.substr(0, help.find('\n'));
  const bool runs = line.usage.find(" -- ") != std::string::npos;
  const auto dashes = std::ranges::find(line.words, "--");
  if (runs && dashes != line.words.end()) return print(":command {}\n", dashes - line.words.begin() + 2);
  const Option* before = find_option(line.options, line.words.back());
  if (before != nullptr && !before->value.empty()) return offer_values(line, *before);
  if (!line.current.starts_with('-')) return offer_arguments(line);
  for (const Option& option : line.options) offer(line, option.name, option.description);
  if (runs) offer(line, "--", "the command follows");
}

}  // namespace holdfast
