// The choices of a run and of its steps.
#include "server_generator.h"

#include <algorithm>
#include <utility>

namespace holdfast::simulation {
ServerGenerator::ServerGenerator(uint64_t seed) : dice_(seed * 2 + 11) {
  const std::vector<std::string> keys = {"k", "job", "pool{k}", "a:1", "doc", "n"};
  const std::vector<std::string> owners = {"ann", "bob", "cy", "dan"};
  keys_.assign(keys.begin(), keys.begin() + dice_.between(1, 6));
  owners_.assign(owners.begin(), owners.begin() + dice_.between(2, 4));
  clients_ = static_cast<int>(dice_.between(2, 6));
  in_multi_.resize(static_cast<size_t>(clients_));
  choose_features();
  choose_commands();
  changes_options_ = dice_.one_in(4);
  long_silence_ = dice_.one_in(3);
  kills_ = !dice_.one_in(4);
  crashes_ = dice_.one_in(2);
  stops_ = dice_.one_in(2) || (!kills_ && !crashes_);
  shutdowns_ = dice_.one_in(6);
  sets_clock_ = dice_.one_in(5);
  if (dice_.one_in(2)) {
    for (const char* fault :
         {"capacity", "readonly", "failwrite", "failsync", "failfolder", "slow", "folder"}) {
      if (dice_.one_in(2)) disk_faults_.emplace_back(fault);
    }
  }
  end_weight_ = dice_.pick<uint64_t>({3, 10, 30, 80});
  fault_weight_ = disk_faults_.empty() ? 0 : dice_.pick<uint64_t>({5, 20});
  silence_weight_ = dice_.pick<uint64_t>({2, 10, 40});
  story_weight_ = dice_.pick<uint64_t>({0, 10, 30});
}

// Each run omits some commands and repeats others often.
void ServerGenerator::choose_commands() {
  const std::vector<std::pair<Maker, int>> kinds = {
      {&ServerGenerator::renew, 4},       {&ServerGenerator::fence, 2},
      {&ServerGenerator::break_lock, 2},  {&ServerGenerator::lease, 6},
      {&ServerGenerator::set, 6},         {&ServerGenerator::hash, 6},
      {&ServerGenerator::counter, 4},     {&ServerGenerator::expire, 4},
      {&ServerGenerator::move, 4},        {&ServerGenerator::flush, 1},
      {&ServerGenerator::script, 4},      {&ServerGenerator::del, 4},
      {&ServerGenerator::look, 4},        {&ServerGenerator::save, 2},
      {&ServerGenerator::config, 1},      {&ServerGenerator::pause, 1},
      {&ServerGenerator::transaction, 4}, {&ServerGenerator::any_command, 20},
      {&ServerGenerator::any_script, 4},  {&ServerGenerator::user, 2},
      {&ServerGenerator::watch, 3},       {&ServerGenerator::tracking, 3},
      {&ServerGenerator::large, 2},       {&ServerGenerator::debug, 1},
  };
  makers_.assign(20, &ServerGenerator::lock);
  makers_.insert(makers_.end(), 10, &ServerGenerator::unlock);
  for (const auto& [maker, weight] : kinds) {
    const int times = weight * dice_.pick<int>({0, 0, 1, 2});
    makers_.insert(makers_.end(), static_cast<size_t>(times), maker);
  }
}

ScriptStep ServerGenerator::next(const ServerWorld& world) {
  world_ = &world;
  if (std::optional<ScriptStep> step = story_step()) return *step;
  if (!world.runs()) {
    if (dice_.one_in(8)) return silence();
    if (world.disk_fails() && dice_.one_in(3)) return fault(world);  // it may prevent each start
    if (crashes_ && dice_.one_in(20)) return {0, {"crash", "0", std::to_string(dice_.below(1'000'000))}};
    return start();
  }
  if (world.is_stopping() && dice_.one_in(3)) return {dice_.between(0, 5 * kMsUs), {"term"}};
  if (std::optional<ScriptStep> step = stop_in_save(world)) return *step;
  if (std::exchange(check_next_, false) && dice_.one_in(2)) return {0, {"check"}};
  const uint64_t choice = dice_.below(1000);
  if (choice < end_weight_ || (!world.is_loaded() && dice_.one_in(10))) {
    const bool may_lose = world.is_loaded() && (kills_ || crashes_);
    return may_lose && dice_.one_in(3) ? first_of(end_behind_replies()) : end(world);
  }
  if (choice < end_weight_ + fault_weight_) return fault(world);
  if (choice < end_weight_ + fault_weight_ + silence_weight_) return silence();
  if (dice_.one_in(25)) return {0, {"check"}};
  return request();
}

int64_t ServerGenerator::pause_us() {
  const uint64_t choice = dice_.below(100);
  if (choice < 40) return dice_.between(0, 100);
  if (choice < 80) return dice_.between(100, 5 * kMsUs);
  if (choice < 97) return dice_.between(5 * kMsUs, 100 * kMsUs);
  return dice_.between(100 * kMsUs, 2 * kSecondUs);
}

std::string ServerGenerator::pick_option(const std::string& name) {
  if (name == "appendonly") return dice_.pick<std::string>({"yes", "yes", "no"});
  if (name == "appendfsync") return dice_.pick<std::string>({"everysec", "always", "always", "no"});
  if (name == "save") return dice_.pick<std::string>({"3600 1 300 100", "", "5 1", "60 3"});
  if (name == "session-grace") return dice_.pick<std::string>({"0", "0", "1000", "60000"});
  if (name == "recovery-wait") return dice_.pick<std::string>({"60000", "30000", "3600000", "0"});
  if (name == "compress") return dice_.pick<std::string>({"yes", "no"});
  if (name == "fsync-interval") return dice_.pick<std::string>({"1000", "100"});
  if (name == "journal-max") return dice_.pick<std::string>({"64mb", "4kb"});
  return "";
}

// The defaults are as likely as each other combination.
Words ServerGenerator::options() {
  if (!fixed_options_.empty() && !changes_options_) return fixed_options_;
  Words options = {"hash-max-listpack-entries", "8", "zset-max-listpack-entries", "4"};
  for (const char* name : {"appendonly", "appendfsync", "save", "session-grace", "recovery-wait",
                           "compress", "fsync-interval", "journal-max"}) {
    if (!dice_.one_in(2)) continue;
    options.emplace_back(name);
    options.push_back(pick_option(name));
  }
  options.insert(options.end(), more_options_.begin(), more_options_.end());
  fixed_options_ = options;
  return options;
}

ScriptStep ServerGenerator::start() {
  std::fill(in_multi_.begin(), in_multi_.end(), false);
  const int64_t us = dice_.one_in(4) ? dice_.between(0, 3 * kMsUs) : kSecondUs;
  return step_of(us, {"start"}, options());
}

ScriptStep ServerGenerator::end(const ServerWorld&) {
  const std::string seed = std::to_string(dice_.below(1'000'000));
  const std::string operations =
      std::to_string(dice_.one_in(3) ? 0 : dice_.between(1, dice_.one_in(2) ? 4 : 30));
  std::vector<ScriptStep> ends;
  if (kills_) ends.push_back({0, {"kill", operations}});
  if (crashes_) ends.push_back({0, {"crash", operations, seed}});
  if (stops_) ends.push_back({dice_.one_in(3) ? dice_.between(0, 5 * kMsUs) : kSecondUs, {"term"}});
  if (shutdowns_) {
    ends.push_back(step_of(kSecondUs, {"send", "900"}, shutdown_words()));
  }
  return dice_.pick(ends);
}

// Faults last for a few steps, or through some silence.
ScriptStep ServerGenerator::fault(const ServerWorld& world) {
  if (world.disk_fails() && !dice_.one_in(4)) {
    check_next_ = true;
    return {dice_.one_in(2) ? 25 * kSecondUs : pause_us(), {"disk", "works"}};
  }
  const std::string kind = dice_.pick(disk_faults_);
  if (kind == "folder") {
    return {pause_us(),
            {"folder", dice_.pick<std::string>({"remove", "remove", "restore", "copy", "old", "foreign"})}};
  }
  std::string amount = std::to_string(dice_.between(1, 4));
  if (kind == "capacity") amount = std::to_string(dice_.below(dice_.one_in(2) ? 100 : 1500));
  if (kind == "slow") amount = std::to_string(dice_.between(10, 3000) * kMsUs);
  return {pause_us(), {"disk", kind, amount}};
}

ScriptStep ServerGenerator::silence() {
  check_next_ = true;
  const uint64_t choice = dice_.below(100);
  int64_t us = dice_.between(kSecondUs, 20 * kSecondUs);
  if (choice > 60) us = dice_.between(20 * kSecondUs, 200 * kSecondUs);
  if (long_silence_ && choice > 90) us = dice_.between(200 * kSecondUs, 3600 * kSecondUs);
  if (long_silence_ && choice > 97) us = world_->runs() ? 2 * 3600 * kSecondUs : 4 * 86400 * kSecondUs;
  if (sets_clock_ && dice_.one_in(3)) {
    const int64_t ms = dice_.pick<int64_t>({1, 1000, 60000, 3'600'000, 86'400'000});
    return {pause_us(), {"wall", std::to_string(dice_.one_in(2) ? ms : -ms)}};
  }
  return {us, {"run"}};
}

ScriptStep ServerGenerator::request() {
  const auto client = static_cast<size_t>(dice_.below(static_cast<uint64_t>(clients_)));
  const std::string name = std::to_string(client);
  if (dice_.one_in(60)) {
    in_multi_[client] = false;
    return {pause_us(), {"drop", name}};
  }
  if (dice_.below(1000) < network_weight_) return network_step(name);
  Words words = (this->*dice_.pick(makers_))();
  if (words[0] == "MULTI" || words[0] == "EXEC" || words[0] == "DISCARD") {
    if (in_multi_[client]) words = {dice_.one_in(8) ? "DISCARD" : "EXEC"};
    in_multi_[client] = !in_multi_[client];
  } else if (dice_.one_in(40)) {
    words = dice_.one_in(2) ? Words{"HELLO", "3"} : Words{"SELECT", std::to_string(dice_.below(2))};
  }
  const int64_t us = pause_us();
  return delivered(step_of(us, {"send", name}, words));
}

}  // namespace holdfast::simulation
