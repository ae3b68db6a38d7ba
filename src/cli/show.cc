// Each verb prints keys and owners through these functions, because they may contain any bytes.
#include "cli/show.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include "cli/output.h"

namespace holdfast {
namespace {

using Kind = client::Value::Kind;

// A longer cell pushes the rest of its own row to the right, not those of all rows.
constexpr size_t kWidestColumn = 60;

Json json_of(const client::Value& value) {
  if (value.kind == Kind::kNull) return nullptr;
  if (value.kind == Kind::kInteger) return value.integer;
  if (value.kind != Kind::kArray) return value.text;
  Json all = Json::array();
  for (const client::Value& one : value.elements) all.push_back(object_of(one));
  return all;
}

// Returns "  (note)", or "" without a note.
std::string note_part(const client::Value& map) {
  const std::string& note = field(map, "note").text;
  return note.empty() ? "" : fmt::format("  ({})", printable(note));
}

// Returns "  from address name" of the connection, or "" if it is not known.
std::string origin_part(const client::Value& map) {
  const std::string& address = field(map, "addr").text;
  const std::string& name = field(map, "name").text;
  if (address.empty() && name.empty()) return "";
  return fmt::format("  from {}", printable(address + (address.empty() || name.empty() ? "" : " ") + name));
}

}  // namespace

std::string mode_text(const client::Value& map) {
  const std::string& mode = field(map, "mode").text;
  return mode == "limit" ? fmt::format("limit {}", field(map, "limit").integer) : mode;
}

std::string hold_text(const client::Value& holder) {
  return fmt::format("held by {}  token {}  ttl {}  held for {}{}{}",
                     printable(field(holder, "owner").text, true), field(holder, "token").integer,
                     time_text(field(holder, "ttl").integer), time_text(field(holder, "held").integer),
                     origin_part(holder), note_part(holder));
}

std::string waiter_text(const client::Value& waiter) {
  return fmt::format("waiting {}  {}  for {}{}{}", printable(field(waiter, "owner").text, true),
                     mode_text(waiter), time_text(field(waiter, "waited").integer), origin_part(waiter),
                     note_part(waiter));
}

std::string json_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool print_json(const Json& json) {
  print("{}\n", json_line(json));
  return flush();
}

std::string time_text(int64_t ms) {
  const int64_t s = ms / 1000;
  if (ms < 0) return "for ever";
  if (ms < 1000) return fmt::format("{} ms", ms);
  if (s < 60) return fmt::format("{}.{} s", s, ms % 1000 / 100);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  return fmt::format("{}h{:02}m", s / 3600, s % 3600 / 60);
}

std::string time_now() {
  const auto us = static_cast<int64_t>(client::Loop::clock_us());
  const time_t s = us / 1000000;
  tm utc{};
  gmtime_r(&s, &utc);
  std::array<char, 32> text{};
  strftime(text.data(), text.size(), "%FT%T", &utc);
  return fmt::format("{}.{:03}Z", text.data(), us / 1000 % 1000);
}

std::string heading(const std::string& text) {
  const auto set = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  const bool bold = isatty(STDOUT_FILENO) != 0 && set("NO_COLOR").empty() && set("TERM") != "dumb";
  return bold ? "\x1b[1m" + text + "\x1b[0m" : text;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], std::min(row[i].size(), kWidestColumn));
  }
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i + 1 < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line += row.back();
    print("{}\n", &row == &rows.front() ? heading(line) : line);
  }
}

Json object_of(const client::Value& map) {
  Json object = Json::object();
  for (size_t i = 0; i + 1 < map.elements.size(); i += 2)
    object[map.elements[i].text] = json_of(map.elements[i + 1]);
  return object;
}

Json row_of(const Answer& answer) {
  Json row{{"server", answer.server}};
  if (!answer.good()) row["error"] = answer.why();
  return row;
}

}  // namespace holdfast
