// The features of a run, and requests beyond those of server_commands.cc: of every command, and in
// sequences that belong together.
#include <algorithm>
#include <array>
#include <utility>

#include "core/base/sha1.h"
#include "server_generator.h"
#include "server_scripts.h"

namespace holdfast::simulation {
namespace {

// Commands that stop the server or other clients: only with arguments that the checks know.
bool is_special(const Command& command) {
  constexpr std::array kSpecial = {"shutdown", "client|pause", "config|set", "debug"};
  return std::ranges::find(kSpecial, command.name) != kSpecial.end();
}

}  // namespace

// Each run uses some groups of the table, and of these about half of the commands.
void ServerGenerator::choose_features() {
  for (const Command* command : runnable_commands()) {
    if (!is_special(*command)) commands_.push_back(command);
  }
  std::vector<std::string_view> groups;
  for (const Command* command : commands_) groups.push_back(command->group);
  std::ranges::sort(groups);
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  std::erase_if(groups, [this](std::string_view) { return dice_.one_in(2); });
  for (const Command* command : commands_) {
    const bool wanted = std::ranges::find(groups, command->group) != groups.end();
    if (wanted && dice_.one_in(2)) chosen_.push_back(command);
  }
  if (chosen_.empty()) chosen_ = commands_;
  for (uint64_t* odds : {&odds_.shared, &odds_.limit, &odds_.wait, &odds_.session, &odds_.delay,
                         &odds_.token, &odds_.forever, &odds_.damage}) {
    *odds = dice_.pick<uint64_t>({0, 0, 10, 30, 80});
  }
  odds_.damage /= 8;
  network_weight_ = dice_.pick<uint64_t>({0, 0, 20, 100});
  pipelines_ = dice_.one_in(3);
  stops_in_saves_ = dice_.one_in(4);
  changeable_ = changeable_options();
  slow_scripts_ = dice_.one_in(6);
  if (slow_scripts_ || dice_.one_in(2)) more_options_ = more_options();
}

Words ServerGenerator::any_command() {
  const Command& command = *dice_.pick(chosen_);
  const bool eval = (command.flags & kScript) != 0 && command.name.starts_with("eval");
  if (eval) return script_call(command);
  Words words = words_for(command, dice_, [this](const ArgNode& argument) { return value_of(argument); });
  if (command.syntax.find("command [arg") != std::string_view::npos) {
    const Words inner =
        words_for(*dice_.pick(commands_), dice_, [this](const auto& a) { return value_of(a); });
    words.resize(words.size() > 3 && command.name == "acl|dryrun" ? 3 : 2);
    words.insert(words.end(), inner.begin(), inner.end());
  }
  return words;
}

Words ServerGenerator::script_call(const Command& command) {
  const std::string text =
      slow_scripts_ && dice_.one_in(4) ? dice_.pick(slow_scripts()) : dice_.pick(scripts());
  const bool by_sum = command.name.starts_with("evalsha");
  return {upper_case(command.name), by_sum ? sha1_hex(text) : text, "1", key(),
          dice_.one_in(2) ? owner() : value()};
}

Words ServerGenerator::any_script() {
  static const std::vector<std::string_view> names = {"eval", "evalsha", "eval_ro", "evalsha_ro", "eval"};
  if (dice_.one_in(6)) return {"SCRIPT", "LOAD", dice_.pick(scripts())};
  if (dice_.one_in(20)) return {"SCRIPT", dice_.one_in(2) ? "KILL" : "FLUSH"};
  return script_call(*find_command(dice_.pick(names)));
}

// Users come and go, and clients log in as them.
Words ServerGenerator::user() {
  const std::string name = dice_.pick<std::string>({"u1", "u2"});
  switch (dice_.below(6)) {
    case 0:
      return {"ACL", "SETUSER", name, "on", "nopass", "~*", "&*", "+@all"};
    case 1:
      return {"ACL",  "SETUSER", name,     "reset",        "on",    ">pw",
              "%R~*", "~k*",     "+@lock", "+@connection", "+@read"};
    case 2:
      return {"ACL", "DELUSER", name};
    case 3:
      return {"HELLO", "3", "AUTH", name, "pw"};
    case 4:
      return {"AUTH", "pw"};
    default:
      return {"AUTH", name, "pw"};
  }
}

Words ServerGenerator::watch() {
  if (dice_.one_in(5)) return {"UNWATCH"};
  return {"WATCH", key(), key()};
}

Words ServerGenerator::tracking() {
  switch (dice_.below(6)) {
    case 0:
      return {"HELLO", "3"};
    case 1:
      return {"CLIENT", "TRACKING", "ON"};
    case 2:
      return {"CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "k", "PREFIX", "j", "NOLOOP"};
    case 3:
      return {"CLIENT", "TRACKING", "ON", dice_.one_in(2) ? "OPTIN" : "OPTOUT", "NOLOOP"};
    case 4:
      return {"CLIENT", "CACHING", dice_.one_in(2) ? "YES" : "NO"};
    default:
      return {"CLIENT", "TRACKING", dice_.one_in(3) ? "OFF" : "ON", "REDIRECT",
              std::to_string(dice_.between(1, 9))};
  }
}

// Requests with many names or a large value, which the server serves in chunks.
Words ServerGenerator::large() {
  const uint64_t choice = dice_.below(6);
  if (choice == 0) return {"SET", key(), std::string(dice_.below(60'000), 'v')};
  if (choice == 1) return {"HSET", "h", "big", std::string(dice_.below(20'000), 'h')};
  Words words = choice == 2 ? Words{"DEL"} : choice == 3 ? Words{"MSET"} : Words{"MGET"};
  if (choice == 4) words = {"LEASE", "GRANT", lease_id(), ttl()};
  if (choice == 5) words = {"SUBSCRIBE"};
  const bool pairs = choice == 3 || choice == 4;
  for (uint64_t n = dice_.between(1, 150); n > 0; --n) {
    words.push_back("many:" + std::to_string(n));
    if (pairs) words.push_back(owner());
  }
  return words;
}

// A slow server, and what it records of slow requests.
Words ServerGenerator::debug() {
  switch (dice_.below(8)) {
    case 0:
      return {"DEBUG", "HELP"};
    case 1:
      return {"CONFIG", "SET", "slowlog-log-slower-than", "0", "latency-monitor-threshold", "1"};
    case 2:
      return {"SLOWLOG", "GET", std::to_string(dice_.between(-1, 9))};
    case 3:
      return {"LATENCY", "LATEST"};
    case 4:
      return {"LATENCY", dice_.one_in(2) ? "HISTORY" : "GRAPH", "command"};
    default:
      return {"DEBUG", "SLEEP", dice_.one_in(2) ? "0.01" : "0.2"};
  }
}

Words ServerGenerator::shutdown_words() {
  Words words = {"SHUTDOWN"};
  for (const char* word : {"NOSAVE", "SAVE", "NOW", "FORCE"}) {
    if (dice_.one_in(4)) words.emplace_back(word);
  }
  if (words.size() > 2 && words[1] == "NOSAVE" && words[2] == "SAVE") words.erase(words.begin() + 2);
  return words;
}

// A stop while the server saves, which a BGSAVE during the recovery wait has begun.
std::optional<ScriptStep> ServerGenerator::stop_in_save(const ServerWorld& world) {
  if (std::exchange(end_next_, false)) return end(world);
  if (!stops_in_saves_ || !world.recovers() || !dice_.one_in(10)) return std::nullopt;
  end_next_ = true;
  return ScriptStep{dice_.between(0, 3000), {"send", "0", "BGSAVE"}};
}

// What the network does to a client, other than to bring its requests.
ScriptStep ServerGenerator::network_step(const std::string& client) {
  switch (dice_.below(6)) {
    case 0:
      return {pause_us(), {"room", client, std::to_string(dice_.below(300))}};
    case 1:
      return {pause_us(), {"read", client}};
    case 2:
      return {pause_us(), {"reset", client}};
    case 3:
      return {
          pause_us(),
          {"raw", "70",
           dice_.pick<std::string>({"PING\r\n", "get k\r\n", "\r\n", "*1\r\n$4\r\nPI",
                                    "*2\r\n$3\r\nGET\r\n$-1\r\n", "*-1\r\n", "*9999999999\r\n", "$5\r\n",
                                    "set k \"a b\\x41\\n\" \r\n", "set 'k\r\n", "*1\r\n$9999999999\r\n",
                                    "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*1\r\n:5\r\n", "*3\r\n$3\r"})}};
    case 4:
      return {pause_us(), {"raw", "71", std::string(dice_.below(70'000), 'i')}};
    default: {
      const int64_t us = pause_us();
      const std::string size = std::to_string(dice_.below(40));
      return step_of(us, {"cut", client, size}, any_command());
    }
  }
}

// The last change of a request on its way: damage, or no pause before the next one.
ScriptStep ServerGenerator::delivered(ScriptStep step) {
  if (dice_.below(100) < odds_.damage) {
    const Words words = damaged({step.words.begin() + 2, step.words.end()}, dice_);
    step.words.resize(2);
    step = step_of(step.run_us, std::move(step.words), words);
  }
  if (pipelines_ && !dice_.one_in(4)) step.run_us = 0;
  return step;
}

}  // namespace holdfast::simulation
