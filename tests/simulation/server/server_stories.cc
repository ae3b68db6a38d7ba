// Sequences of steps around a restart or a fault of the disk, because independent random steps rarely come
// in such an order. Each has random details, and other steps may come between.
#include <string>
#include <utility>
#include <vector>

#include "server_generator.h"

namespace holdfast::simulation {
namespace {

ScriptStep sent(int64_t run_us, const std::string& client, const Words& request) {
  return step_of(run_us, {"send", client}, request);
}

}  // namespace

// Returns the next step of a story, if one is under way or begins now. Some steps are left out, and other
// steps come between.
std::optional<ScriptStep> ServerGenerator::story_step() {
  if (story_.empty() && world_->is_loaded() && dice_.below(1000) < story_weight_) {
    return first_of(story());
  }
  while (!story_.empty() && !dice_.one_in(6)) {
    ScriptStep step = std::move(story_.front());
    story_.pop_front();
    if (!dice_.one_in(20)) return step;
  }
  return std::nullopt;
}

// Begins a story, in the place of another one that is under way.
ScriptStep ServerGenerator::first_of(const std::vector<ScriptStep>& steps) {
  story_.assign(steps.begin() + 1, steps.end());
  return steps.front();
}

std::vector<ScriptStep> ServerGenerator::story() {
  switch (dice_.below(disk_faults_.empty() ? 6 : 8)) {
    case 0:
      return silence_before_end();
    case 1:
      return stop_in_recovery_wait();
    case 2:
      return sessions_across_starts();
    case 3:
      return stop_after_save_began();
    case 4:
      return end_behind_replies();
    case 5:
      return lock_delay_before_end();
    case 6:
      return full_disk_before_end();
    default:
      return new_folder_in_save();
  }
}

ScriptStep ServerGenerator::lossy_end() {
  const std::string seed = std::to_string(dice_.below(1'000'000));
  if (crashes_ && (!kills_ || dice_.one_in(2))) return {0, {"crash", "0", seed}};
  return {0, {"kill", "0"}};
}

Words ServerGenerator::long_lock(const std::string& key, const std::string& owner) {
  return {"LOCK", key, owner, dice_.pick<std::string>({"0", "200000", "600000", "3600000"})};
}

// A hold that is older than the lead of the expiry horizon when the process ends.
std::vector<ScriptStep> ServerGenerator::silence_before_end() {
  const std::string k = key();
  std::vector<ScriptStep> steps = {sent(kSecondUs, "0", long_lock(k, owners_[0]))};
  if (dice_.one_in(3)) steps.push_back(sent(kSecondUs, "0", {"UNLOCK", k, owners_[0]}));
  steps.push_back({dice_.between(60, 180) * kSecondUs, {"run"}});
  steps.push_back({0, {"check"}});
  steps.push_back(lossy_end());
  steps.push_back(start());
  steps.push_back(sent(kSecondUs, "1", long_lock(k, owners_[1])));
  return steps;
}

std::vector<ScriptStep> ServerGenerator::stop_in_recovery_wait() {
  const std::string k = key();
  std::vector<ScriptStep> steps = {sent(pause_us(), "0", long_lock(k, owners_[0])), lossy_end(), start()};
  steps.push_back({kSecondUs, {"term"}});
  steps.push_back(start());
  steps.push_back(sent(kSecondUs, "1", long_lock(k, owners_[1])));
  return steps;
}

// What a reply promised must be there after the next start, also if nothing happened between them.
std::vector<ScriptStep> ServerGenerator::end_behind_replies() {
  std::vector<ScriptStep> steps = {sent(0, "0", long_lock(key(), owner()))};
  for (uint64_t more = dice_.below(3); more > 0; --more) {
    steps.push_back(request());
    steps.back().run_us = 0;
  }
  ScriptStep end = lossy_end();
  end.words[1] = std::to_string(dice_.between(1, 3));
  end.words.emplace_back("replies");
  steps.push_back(end);
  steps.push_back(start());
  return steps;
}

// A lock-delay that still runs at the next start.
std::vector<ScriptStep> ServerGenerator::lock_delay_before_end() {
  const std::string k = key();
  const uint64_t why = dice_.below(3);
  Words lock = {"LOCK", k, owners_[0], why == 0 ? "200" : "600000"};
  if (dice_.one_in(3)) lock.insert(lock.end(), {"LIMIT", "2"});
  if (why == 1) lock.emplace_back("SESSION");
  lock.insert(lock.end(), {"DELAY", dice_.pick<std::string>({"30000", "600000"})});
  std::vector<ScriptStep> steps = {sent(why == 0 ? kSecondUs : pause_us(), "0", lock)};
  if (why == 1) steps.push_back({pause_us(), {"drop", "0"}});
  if (why == 2) steps.push_back(sent(pause_us(), "1", {"LOCKS", "BREAK", k}));
  steps.push_back(lossy_end());
  steps.push_back(start());
  steps.push_back(sent(kSecondUs, "1", long_lock(k, owners_[1])));
  return steps;
}

// The end of a session leaves room for another holder, in each later start, too.
std::vector<ScriptStep> ServerGenerator::sessions_across_starts() {
  const std::string k = key();
  std::vector<ScriptStep> steps;
  for (int round = 0; round < 3; ++round) {
    for (const std::string& owner : owners_) {
      Words lock = {"LOCK", k, owner, dice_.one_in(2) ? "0" : "600000", "LIMIT", "2"};
      if (dice_.one_in(2)) lock.emplace_back("SESSION");
      steps.push_back(sent(pause_us(), std::to_string(dice_.below(2)), lock));
    }
    steps.push_back(dice_.one_in(2) || !stops_ ? ScriptStep{0, {"kill", "0"}}
                                               : ScriptStep{kSecondUs, {"term"}});
    steps.push_back(start());
  }
  return steps;
}

std::vector<ScriptStep> ServerGenerator::stop_after_save_began() {
  const std::string k = key();
  return {sent(pause_us(), "0", long_lock(k, owners_[0])),
          sent(dice_.between(0, 5 * kMsUs), "1", {"BGSAVE"}),
          {kSecondUs, {"term"}},
          start(),
          sent(kSecondUs, "1", long_lock(k, owners_[1]))};
}

std::vector<ScriptStep> ServerGenerator::full_disk_before_end() {
  const std::string k = key();
  std::vector<std::string> fault = {"disk", "capacity", std::to_string(dice_.below(100))};
  if (dice_.one_in(3)) fault = {"disk", dice_.pick<std::string>({"readonly", "failwrite"}), "1"};
  return {sent(pause_us(), "0", {"DEL", k}),
          sent(dice_.one_in(2) ? kSecondUs : pause_us(), "0", {"INCR", "count"}),
          {pause_us(), fault},
          sent(dice_.between(0, 2 * kSecondUs), "0", long_lock(k, owners_[0])),
          sent(dice_.between(0, 2 * kSecondUs), "1", {"INCR", "count"}),
          lossy_end(),
          {0, {"disk", "works"}},
          start(),
          sent(kSecondUs, "1", long_lock(k, owners_[1]))};
}

// The server checks the folder once a second, so the snapshot must take longer.
std::vector<ScriptStep> ServerGenerator::new_folder_in_save() {
  return {sent(pause_us(), "0", long_lock(key(), owners_[0])),
          {0, {"disk", "slow", std::to_string(dice_.between(500, 4000) * kMsUs)}},
          sent(pause_us(), "1", {dice_.one_in(3) ? "BGREWRITEAOF" : "BGSAVE"}),
          {pause_us(), {"folder", "remove"}},
          {pause_us(), {"folder", "restore"}},
          {dice_.between(1, 5) * kSecondUs, {"run"}},
          {25 * kSecondUs, {"disk", "works"}},
          {0, {"check"}}};
}

}  // namespace holdfast::simulation
