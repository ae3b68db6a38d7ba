// A line is: blanks, name, blanks, "=", blanks, value, blanks, and a comment that begins with "#". The line
// of a secret has no comment, because passwords and their hashes may contain a "#".
#include "io/config/config_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <istream>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/base/version.h"
#include "io/config/programs.h"

namespace holdfast {
namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kAppended = "# Added by CONFIG REWRITE";
constexpr size_t kColumns = 100;

// A part of a line, as positions.
struct Part {
  size_t begin = 0;
  size_t end = 0;
  std::string_view of(std::string_view line) const { return line.substr(begin, end - begin); }
};

// Returns the part of [begin, end) without the blanks at both ends. An empty part is at `begin`.
Part trimmed(std::string_view line, size_t begin, size_t end) {
  const std::string_view text = line.substr(begin, end - begin);
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {begin, begin};
  return {begin + first, begin + text.find_last_not_of(kBlanks) + 1};
}

// The parts of a line that sets an option. `row` is null if there is no option of this name.
struct Setting {
  const Row* row = nullptr;
  Part name;
  Part value;
};

// Returns nullopt for a line that sets nothing: it is blank, a comment, or has no "=".
std::optional<Setting> parse_setting(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  const Part name = trimmed(line, 0, equals);
  const Row* row = find_row(name.of(line));
  const bool verbatim = row != nullptr && is_secret(*row);
  const size_t end = verbatim ? line.size() : std::min(line.find('#'), line.size());
  if (end < equals) return std::nullopt;
  return Setting{row, name, trimmed(line, equals + 1, end)};
}

bool is_empty(std::string_view line) {
  const size_t first = line.find_first_not_of(kBlanks);
  return first == std::string_view::npos || line[first] == '#';
}

// The name is shown up to its first blank: the rest may be a password before a stray "=".
std::string unknown(std::string_view name) {
  return fmt::format("unrecognised option '{}'; see --help", name.substr(0, name.find_first_of(" \t")));
}

// Returns why the line is wrong, or an empty string. If it is right, `found` has its setting.
std::string read_setting(std::string_view line, Options& scratch, FileSetting& found) {
  const std::optional<Setting> setting = parse_setting(line);
  if (!setting) return "no =; write name = value; see --help";
  const std::string_view name = setting->name.of(line);
  if (setting->row == nullptr) return unknown(name);
  found = {setting->row, std::string(name), std::string(setting->value.of(line))};
  if (assign(*found.row, found.value, scratch)) return "";
  const std::string got = is_secret(*found.row) ? "" : fmt::format(", got '{}'", found.value);
  return fmt::format("{}: expected {}{}", name, expected(*found.row), got);
}

// Whether both have the same value of the option.
bool is_same(const Row& row, const Options& a, const Options& b) {
  return shown(row, a) == shown(row, b) && is_any_port(row, a) == is_any_port(row, b);
}

std::string value_text(const Row& row, const Options& options) {
  return is_any_port(row, options) ? "auto" : shown(row, options);
}

Options default_options() {
  Options options;
  for (const Row& row : option_rows()) assign(row, row.fallback, options);
  return options;
}

// A file that is being rewritten.
class Rewrite {
 public:
  Rewrite(std::istream& file, const Options& options) : options_(options) {
    for (std::string line; std::getline(file, line);) lines_.emplace_back(line);
    for (size_t i = 0; i < lines_.size(); ++i) {
      if (const auto setting = parse_setting(*lines_[i]); setting && setting->row != nullptr)
        places_[setting->row].push_back(i);
    }
  }

  void write_rows() {
    const Options defaults = default_options();
    for (const Row& row : option_rows()) {
      if (row.kind == Kind::kUser) continue;
      if (const auto found = places_.find(&row); found != places_.end()) {
        update(row, found->second);
      } else if (!is_same(row, options_, defaults)) {
        append(fmt::format("{} = {}", row.name, value_text(row, options_)));
      }
    }
  }

  // Each user keeps its line. Users without a line follow at the end, in their order.
  void write_users(const std::vector<std::string>& users) {
    const Row& row = *find_row("user");
    std::map<std::string_view, size_t> lines;
    for (const size_t i : places_[&row]) {
      const std::string_view line = *lines_[i];
      const std::string_view text = parse_setting(line)->value.of(line);
      const auto user = std::ranges::find(users, name_of(text), name_of);
      const auto earlier = user == users.end() ? lines.end() : lines.find(name_of(*user));
      if (earlier != lines.end()) lines_[earlier->second].reset();
      if (user == users.end()) {
        lines_[i].reset();
      } else {
        set(row, i, *user);
        lines[name_of(*user)] = i;
      }
    }
    for (const std::string& user : users) {
      if (!lines.contains(name_of(user))) append("user = " + user);
    }
  }

  std::string text() const {
    std::string all;
    for (const auto& line : lines_) {
      if (line) all += *line + "\n";
    }
    return all;
  }

 private:
  static std::string_view name_of(std::string_view user) { return user.substr(0, user.find(' ')); }

  // Whether these lines together give the present value of the option.
  bool gives_value(const Row& row, const std::vector<size_t>& places) const {
    std::vector<std::string> values;
    values.reserve(places.size());
    for (const size_t i : places) values.emplace_back(parse_setting(*lines_[i])->value.of(*lines_[i]));
    Options read;
    return assign(row, combined(row, values), read) && is_same(row, read, options_);
  }

  void update(const Row& row, const std::vector<size_t>& places) {
    const bool right = gives_value(row, places);
    if (!right || !is_address_list(row)) {
      for (const size_t i : places) {
        if (i != places.back()) lines_[i].reset();
      }
    }
    for (const size_t i : places) {
      if (!lines_[i]) continue;
      const std::string_view old = parse_setting(*lines_[i])->value.of(*lines_[i]);
      set(row, i, right ? std::string(old) : value_text(row, options_));
    }
  }

  // Writes the name and the value into a line. Keeps the rest.
  void set(const Row& row, size_t i, const std::string& value) {
    const std::string& line = *lines_[i];
    const Setting at = *parse_setting(line);
    const bool glued = at.value.begin == at.value.end && !value.empty();
    lines_[i] = fmt::format("{}{}{}{}{}{}", line.substr(0, at.name.begin), row.name,
                            line.substr(at.name.end, at.value.begin - at.name.end), glued ? " " : "", value,
                            line.substr(at.value.end));
  }

  void append(std::string line) {
    if (std::ranges::none_of(lines_, [](const auto& l) { return l == kAppended; })) {
      if (!lines_.empty()) lines_.emplace_back("");
      lines_.emplace_back(kAppended);
    }
    lines_.emplace_back(std::move(line));
  }

  const Options& options_;
  std::vector<std::optional<std::string>> lines_;  // nullopt: removed
  std::map<const Row*, std::vector<size_t>> places_;
};

// Describes the valid values, for a person who edits the file. Empty for free text.
std::string range_text(const Row& row) {
  switch (row.kind) {
    case Kind::kText:
    case Kind::kPath:
    case Kind::kSecret:
    case Kind::kUser:
      return "";
    case Kind::kNumber:
    case Kind::kSize:
      if (row.max == std::numeric_limits<uint64_t>::max()) {
        return fmt::format("a {} from {} up", row.kind == Kind::kSize ? "size" : "number", row.min);
      }
      return expected(row);
    default:
      return expected(row);
  }
}

// Returns the text as comment lines that fit the columns.
std::string comment(std::string_view text) {
  std::string all;
  std::string line = "#";
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (line.size() > 1 && line.size() + 1 + end > kColumns) {
      all += line + "\n";
      line = "#";
    }
    line += fmt::format(" {}", text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all + line + "\n";
}

std::string described_row(const Row& row) {
  const std::string range = range_text(row);
  return comment(row.help) +
         comment(fmt::format(
             "Default: {}.{} {}", *row.fallback == '\0' ? "none" : row.fallback,
             range.empty() ? "" : fmt::format(" Values: {}.", range),
             row.when == When::kStart ? "A change needs a restart." : "CONFIG SET can change it."));
}

// Returns the option as lines of the file. Only `user` may have several.
std::string row_lines(const Row& row, const Options& options, const Options& defaults) {
  if (is_same(row, options, defaults)) return fmt::format("#{} = {}\n", row.name, row.fallback);
  std::istringstream values(value_text(row, options) + "\n");
  std::string lines;
  for (std::string value; std::getline(values, value);) lines += fmt::format("{} = {}\n", row.name, value);
  return lines;
}

}  // namespace

FileSettings read_settings(std::istream& file, const std::string& path) {
  FileSettings read;
  Options scratch;
  std::map<const Row*, size_t> lines;  // of the options so far
  size_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (is_empty(line)) continue;
    FileSetting setting;
    std::string why = read_setting(line, scratch, setting);
    if (why.empty() && setting.row->kind != Kind::kUser && !is_address_list(*setting.row)) {
      const auto [earlier, is_first] = lines.emplace(setting.row, number);
      if (!is_first)
        why = fmt::format("{}: line {} sets it too; remove one of them", setting.written, earlier->second);
    }
    if (why.empty()) {
      read.settings.push_back(std::move(setting));
    } else {
      read.errors.push_back(fmt::format("{}: line {}: {}", path, number, why));
    }
  }
  return read;
}

std::string commented_config(const Options& options) {
  std::string text = fmt::format(
      "# Configuration of {} {}: all options, with their defaults.\n"
      "#\n"
      "# Each line is \"name = value\". # starts a comment, except in passwords and in lines of users.\n"
      "# Remove the # before an option to set it. Sizes take a unit: 1k is 1000 bytes, 1kb is 1024 bytes;\n"
      "# m and mb, g and gb follow the same rule. CONFIG REWRITE keeps the comments and the order.\n"
      "# To check a changed file: {} --check-config FILE\n",
      program_name(), kHoldfastVersion, program_name());
  const Options defaults = default_options();
  std::string_view group;
  for (const Row& row : option_rows()) {
    if (group != row.group) text += fmt::format("\n## {}\n", row.group);
    group = row.group;
    text += "\n" + described_row(row) + row_lines(row, options, defaults);
  }
  return text;
}

std::string rewritten_config(std::istream& file, const Options& options,
                             const std::vector<std::string>& users) {
  Rewrite rewrite(file, options);
  rewrite.write_rows();
  rewrite.write_users(users);
  return rewrite.text();
}

}  // namespace holdfast
