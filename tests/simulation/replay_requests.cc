// Chooses the steps.
#include "replay_requests.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "core/base/parse.h"
#include "server/named_values.h"

namespace holdfast::simulation {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kNowMs = 1000000000000;  // of session_time(0)

// These end the connection, change who may do what, or are not for requests at random.
bool is_left_out(const Command& c) {
  constexpr std::array<std::string_view, 4> kContainers = {"acl", "client", "config", "debug"};
  constexpr std::array<std::string_view, 13> kNames = {
      "auth",  "hello", "quit",    "reset",     "shutdown",   "monitor",   "exec",
      "multi", "watch", "discard", "subscribe", "psubscribe", "ssubscribe"};
  return std::ranges::find(kContainers, c.container()) != kContainers.end() ||
         std::ranges::find(kNames, c.name) != kNames.end();
}

const std::vector<NamedValues>& choices() {
  static const std::vector<NamedValues> all = {
      {"count", {"1", "2", "-1", "0", "3", "500"}},
      {"decrement", {"1", "-7"}},
      {"destination-db", {"0", "1"}},
      {"element", {"a", "b", "c", "", "12", "element3"}},
      {"increment", {"1", "-7", "2.5"}},
      {"index", {"0", "1", "-1", "3", "700"}},
      {"index1", {"0", "1"}},
      {"index2", {"0", "1", "2"}},
      {"limit", {"1", "2", "3"}},
      {"max", {"+inf", "2", "(5", "0", "+", "[c"}},
      {"max-burst", {"0", "4"}},
      {"member", {"a", "b", "c", "m3", "m4", "", "12", "-7", "5"}},
      {"min", {"-inf", "0", "(1", "-", "[a"}},
      {"numkeys", {"1", "1", "1", "2", "0"}},
      {"offset", {"0", "1", "100", "3000", "4090", "69999", "80000"}},
      {"period", {"1", "60"}},
      {"pivot", {"a", "b", "element3"}},
      {"quantity", {"1"}},
      {"rank", {"1", "-1"}},
      {"score", {"0", "-0", "1", "2.5", "-3", "1e300", "inf", "-inf"}},
      {"start", {"0", "1", "-3", "2"}},
      {"stop", {"-1", "5", "-2", "1", "900"}},
      {"timeout", {"0.01", "0"}},
      {"token", {"5", "500000", "999000"}},
      {"hint", {"999000"}},
      {"text", {"", "why", "nightly"}},
      {"weight", {"1", "0", "-2", "inf"}},
      {"function", {"w", "x", "y", "z"}},
      {"library-name", {"A", "B", "C"}},
      {"owner", {"o1", "o2", "o3"}},
      {"id", {"l1", "l2", "l3"}},
      {"comparison-digest", {"2d06800538d394c2"}},
  };
  return all;
}

std::string long_text(char c, size_t size) { return std::string(size, c); }

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    const std::string code = std::to_string(static_cast<unsigned char>(c));
    out += std::isalnum(static_cast<unsigned char>(c)) != 0
               ? std::string(1, c)
               : "\\" + std::string(3 - code.size(), '0') + code;
  }
  return out + "'";
}

}  // namespace

ReplayRequests::ReplayRequests(uint64_t seed) : dice_(seed) {
  for (const Command* command : runnable_commands()) {
    if (is_left_out(*command)) continue;
    ((command->flags & kWrite) != 0 ? writes_ : others_).push_back(command);
  }
}

ReplayStep ReplayRequests::next(const ReplayWorld& world) {
  world_ = &world;
  if (planned_.empty()) plan(world);
  ReplayStep step = std::move(planned_.front());
  planned_.pop_front();
  return step;
}

ReplayStep ReplayRequests::ask(size_t client, Words words) {
  ReplayStep step{ReplayStep::Kind::kAsk, ms_, client, std::move(words)};
  step.ends_iteration = !dice_.one_in(4);
  return step;
}

ReplayStep ReplayRequests::event(ReplayStep::Kind kind, uint64_t number) const {
  ReplayStep step;
  step.kind = kind;
  step.ms = ms_;
  step.number = number;
  return step;
}

void ReplayRequests::plan(const ReplayWorld& world) {
  using Kind = ReplayStep::Kind;
  const size_t client = dice_.below(ReplayWorld::kClients);
  const uint64_t kind = dice_.below(100);
  if (kind < 6) {
    ms_ += dice_.one_in(6) ? dice_.between(100, 5000) : dice_.between(0, 60);
    planned_.push_back(event(Kind::kTick));
  } else if (kind < 8) {
    planned_.push_back(event(Kind::kReconnect, client));
  } else if (kind < 10) {
    planned_.push_back(event(Kind::kOptions, dice_.below(UINT32_MAX)));
  } else if (kind < 13 && !world.is_saving()) {
    planned_.push_back(event(Kind::kSnapshot));
  } else if (kind < 25 && world.is_saving()) {
    planned_.push_back(event(Kind::kWalk, dice_.one_in(2) ? 100 : 1 + dice_.below(3)));
  } else if (kind < 32) {
    planned_.push_back(event(Kind::kCompare, dice_.below(UINT32_MAX)));
  } else if (kind < 33) {
    planned_.push_back(event(Kind::kRestart, dice_.below(UINT32_MAX)));
  } else if (kind < 36) {
    planned_.push_back(ask(client, {"MULTI"}));
    for (uint64_t n = 1 + dice_.below(4); n > 0; --n) planned_.push_back(ask(client, request()));
    planned_.push_back(ask(client, {"EXEC"}));
  } else {
    planned_.push_back(ask(client, request()));
  }
}

Words ReplayRequests::request() {
  const uint64_t kind = dice_.below(100);
  if (kind < 9) return of_functions();
  if (kind < 12) return large();
  if (kind < 17) return shrinking();
  if (kind < 22) return script();
  Words words = of_table(*dice_.pick(kind < 92 ? writes_ : others_));
  const bool empties = words[0] == "FLUSHALL" || words[0] == "FLUSHDB";
  if (empties && !dice_.one_in(4)) return {"SELECT", number(0, 1)};
  return dice_.one_in(40) ? damaged(std::move(words), dice_) : words;
}

Words ReplayRequests::of_table(const Command& command) {
  Words words =
      words_for(command, dice_, [&](const ArgNode& argument) { return value_of(command, argument); });
  const auto fields = std::ranges::find(words, "FIELDS");
  if (words.end() - fields > 2) {
    const auto count = (words.end() - fields - 2) / (words[0] == "HSETEX" ? 2 : 1);
    *(fields + 1) = std::to_string(count);
  }
  return words;
}

std::string ReplayRequests::key(std::string_view group) {
  if (group == "sorted-set") group = "z";
  const bool any = group == "generic" || group == "scripting" || group == "server" || dice_.one_in(10);
  const char letter = any ? dice_.pick({'h', 'l', 's', 'z'}) : group == "string" ? 't' : group[0];
  if (any && dice_.one_in(3)) return (dice_.one_in(2) ? "t" : "lock") + number(0, 2);
  return (letter == 'l' && group == "lock" ? std::string("lock") : std::string(1, letter)) + number(0, 2);
}

std::string ReplayRequests::value_of(const Command& command, const ArgNode& argument) {
  const std::string& name = argument.name;
  if (argument.type == ArgType::kKey) return key(command.group);
  if (name == "field") return "f" + number(0, 6);
  if (name == "id" && dice_.one_in(2)) return "l" + number(1, 12);
  if (const auto* known = values_of(choices(), name)) return std::string(dice_.pick(*known));
  if (name == "function-code") return library();
  if (name == "serialized-value") return world_->payload(command.container() == "function");
  if (name == "ttl") return dice_.one_in(5) ? "0" : number(1, 3000);
  if (name == "milliseconds") return number(dice_.one_in(9) ? -1 : 1, dice_.one_in(2) ? 60 : 3000);
  if (name == "seconds") return number(0, 5);
  if (name == "unix-time-seconds") return std::to_string(kNowMs / 1000 + ms_ / 1000 + dice_.between(-1, 5));
  if (name == "unix-time-milliseconds") return std::to_string(kNowMs + ms_ + dice_.between(-1, 3000));
  if (dice_.one_in(8)) return long_text('v', static_cast<size_t>(dice_.pick({60, 100, 2050, 5000})));
  return dice_.one_in(3) ? number(-5, 12) : "v" + number(0, 5);
}

std::string ReplayRequests::library() {
  std::string code = "#!lua name=" + std::string(1, dice_.pick({'A', 'B', 'C'})) + "\n";
  const std::array<std::string_view, 3> bodies = {"redis.call('hset', k[1], 'f1', '1')",
                                                  "redis.call('sadd', k[1], 'm3')", "1"};
  for (const char name : {'w', 'x', 'y', 'z'}) {
    if (!dice_.one_in(3)) continue;
    code.append("redis.register_function('")
        .append(1, name)
        .append("', function(k, a) return ")
        .append(bodies[dice_.below(bodies.size())])
        .append(" end)\n");
  }
  return code;
}

Words ReplayRequests::of_functions() {
  switch (dice_.below(9)) {
    case 0:
      return {"FUNCTION", "DUMP"};
    case 1:
    case 2:
      return {"FUNCTION", "RESTORE", world_->payload(true), dice_.pick({"FLUSH", "APPEND", "REPLACE"})};
    case 3:
      return {"FUNCTION", "DELETE", std::string(1, dice_.pick({'A', 'B', 'C'}))};
    case 4:
      return {"FCALL", std::string(1, dice_.pick({'w', 'x', 'y', 'z'})), "1", key("generic")};
    case 5:
      if (dice_.one_in(3)) return {"FUNCTION", "FLUSH"};
      [[fallthrough]];
    default:
      return {"FUNCTION", "LOAD", "REPLACE", library()};
  }
}

// Makes a value large.
Words ReplayRequests::large() {
  const int n = dice_.pick({20, 140, 600, 1200});
  Words words;
  switch (dice_.below(6)) {
    case 0:
      return {"HSET", key("hash"), "f" + number(0, 6), long_text('x', 300)};
    case 1:
      return {"SET", key("string"), long_text('s', static_cast<size_t>(dice_.pick({2040, 2050, 70000})))};
    case 2:
      words = {"HSET", key("hash")};
      for (int i = 0; i < n; ++i) words.insert(words.end(), {"f" + std::to_string(i), "x"});
      return words;
    case 3:
      words = {"RPUSH", key("list")};
      for (int i = 0; i < n; ++i) words.push_back("element" + std::to_string(i % 7));
      return words;
    case 4:
      words = {"SADD", key("set")};
      for (int i = 0; i < n; ++i) words.push_back((n == 600 ? "" : "m") + std::to_string(i));
      return words;
    default:
      words = {"ZADD", key("sorted-set")};
      for (int i = 0; i < n; ++i)
        words.insert(words.end(), {std::to_string(i % 50), "m" + std::to_string(i)});
      return words;
  }
}

// Makes a large value small, or changes the deadlines of one.
Words ReplayRequests::shrinking() {
  Words words;
  switch (dice_.below(9)) {
    case 0:
    case 1:
      words = {"HDEL", key("hash")};
      for (int i = 3; i < 1200; ++i) words.push_back("f" + std::to_string(i));
      return words;
    case 2:
      return {"LTRIM", key("list"), "0", number(0, 5)};
    case 3:
      return {"SPOP", key("set"), dice_.pick({"17", "590", "1190"})};
    case 4:
      return {"ZREMRANGEBYRANK", key("sorted-set"), "3", "-2"};
    case 5:
      return {"HPERSIST", key("hash"), "FIELDS", "3", "f0", "f1", "f2"};
    case 6:
      return {"HPEXPIRE", key("hash"), number(1, 5000), "FIELDS", "2", "f0", "f" + number(1, 6)};
    case 7:
      return {"PEXPIRE", key("generic"), number(1, 5000)};
    default:
      return {"HSET", key("hash"), "f" + number(0, 6), "v"};
  }
}

// Several commands of the table in one script.
Words ReplayRequests::script() {
  std::string code;
  for (uint64_t n = 1 + dice_.below(3); n > 0; --n) {
    const Words words = of_table(*dice_.pick(writes_));
    if (words.size() > 40) continue;
    std::string arguments;
    for (const std::string& word : words) arguments += (arguments.empty() ? "" : ", ") + quoted(word);
    code += "redis.pcall(" + arguments + ") ";
  }
  return {"EVAL", code + "return 1", "0"};
}

}  // namespace holdfast::simulation
