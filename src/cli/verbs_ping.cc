// holdfast ping: shows the reachability, response time, version and clock of each server.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/status.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

using Kind = client::Value::Kind;

struct Health {
  std::string server;
  bool reachable = false;
  std::string why;  // the server cannot be used
  int64_t round_trip_us = 0;
  std::string version, redis_version;  // empty: unknown
  std::optional<int64_t> offset_us, token_lead_us;
};

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), number);
  return wrong == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Returns the value of a line "name:value" of INFO; empty if there is no such line.
std::string line_of(const Answer& info, const std::string& name) {
  const std::string text = "\n" + info.value.text;
  const size_t at = text.find("\n" + name + ":");
  if (at == std::string::npos) return {};
  const size_t begin = at + name.size() + 2;
  return text.substr(begin, text.find_first_of("\r\n", begin) - begin);
}

// Returns the reply of TIME, which has seconds and microseconds, in microseconds; nullopt if it is
// malformed.
std::optional<int64_t> clock_of(const Answer& time) {
  if (!time.is(Kind::kArray) || time.value.elements.size() != 2) return std::nullopt;
  const auto s = number_in(time.value.elements[0].text);
  const auto us = number_in(time.value.elements[1].text);
  return s && us ? std::optional(*s * 1000000 + *us) : std::nullopt;
}

// Sends PING first, so that the measured request does not include the connection setup.
std::vector<Health> examine(Servers& servers) {
  const std::vector<size_t> all = servers.all();
  const std::vector<Answer> pings = servers.ask(all, {"PING"});
  const std::vector<Answer> times = servers.ask(all, {"TIME"});
  const std::vector<Answer> versions = servers.ask(all, {"INFO", "server"});
  const std::vector<Answer> locks = servers.ask(all, {"INFO", "locks"});
  std::vector<Health> healths(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Health& health = healths[i];
    health.server = pings[i].server;
    health.reachable = !pings[i].is(Kind::kLost) && !times[i].is(Kind::kLost);
    health.round_trip_us = times[i].round_trip_us;
    health.version = line_of(versions[i], "holdfast_version");
    health.redis_version = line_of(versions[i], "redis_version");
    const auto clock = clock_of(times[i]);
    const auto token = number_in(line_of(locks[i], "largest_token"));
    if (clock) health.offset_us = *clock - times[i].clock_us;
    if (clock && token) health.token_lead_us = *token - *clock;
    for (const Answer* answer : {&pings[i], &times[i], &versions[i]}) {
      if (health.why.empty() && !answer->good()) health.why = answer->why();
    }
    const bool redis = servers.config().servers[i].redis;
    if (health.why.empty() && health.version.empty() && !redis)
      health.why = "not a Holdfast server, but redis_version " + health.redis_version;
  }
  return healths;
}

std::string ms_text(std::optional<int64_t> us) {
  return us ? fmt::format("{:.3f} ms", static_cast<double>(*us) / 1000) : "-";
}

void print_health(const std::vector<Health>& healths) {
  std::vector<std::vector<std::string>> table{
      {"SERVER", "ANSWERS IN", "VERSION", "CLOCK AHEAD", "TOKEN AHEAD"}};
  for (const Health& health : healths) {
    if (!health.why.empty()) {
      table.push_back({health.server, "-", "-", "-", printable(health.why)});
      continue;
    }
    const std::string version = health.version.empty() ? "Redis " + health.redis_version : health.version;
    table.push_back({health.server, ms_text(health.round_trip_us), printable(version),
                     ms_text(health.offset_us), ms_text(health.token_lead_us)});
  }
  print_table(table);
}

Json json_of(const Health& health) {
  Json row{{"server", health.server}, {"reachable", health.reachable}};
  if (!health.why.empty()) {
    row["error"] = health.why;
    return row;
  }
  const auto ms = [](std::optional<int64_t> us) {
    return us ? Json(static_cast<double>(*us) / 1000) : Json(nullptr);
  };
  row["round_trip_ms"] = ms(health.round_trip_us);
  row["holdfast_version"] = health.version.empty() ? Json(nullptr) : Json(health.version);
  row["redis_version"] = health.redis_version;
  row["clock_offset_ms"] = ms(health.offset_us);
  row["token_lead_ms"] = ms(health.token_lead_us);
  return row;
}

}  // namespace

int verb_ping(const Call& call) {
  Servers servers(call.servers);
  const client::ClientConfig& config = servers.config();
  const std::vector<Health> healths = examine(servers);
  size_t away = 0;
  Json rows = Json::array();
  for (const Health& health : healths) {
    if (!health.why.empty()) ++away;
    rows.push_back(json_of(health));
  }
  // True if every key can be locked, whichever servers it maps to.
  const bool quorum = away <= config.replicas - config.write_quorum;
  const size_t usable = healths.size() - away;
  if (call.json) {
    if (!print_json({{"servers", rows}, {"quorum", quorum}})) return kNoOutput;
  } else {
    print_health(healths);
    print("{} of {} server{} usable: {}\n", usable, healths.size(), healths.size() == 1 ? "" : "s",
          quorum ? "enough for a lock" : "too few for a lock");
    if (!flush()) return kNoOutput;
  }
  return quorum ? 0 : kUnavailable;
}

}  // namespace holdfast
