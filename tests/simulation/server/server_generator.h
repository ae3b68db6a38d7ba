// Makes the next step of a run. Each run uses a random subset of the commands, options and faults ("swarm
// testing"), so that rare combinations are common.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "../dice.h"
#include "durations.h"
#include "io/config/options_table.h"
#include "script.h"
#include "server_world.h"
#include "syntax_words.h"

namespace holdfast::simulation {

class ServerGenerator {
 public:
  explicit ServerGenerator(uint64_t seed);

  ScriptStep next(const ServerWorld& world);

 private:
  using Maker = std::vector<std::string> (ServerGenerator::*)();

  // How many of 100 locks and other requests have something.
  struct Odds {
    uint64_t shared = 0;
    uint64_t limit = 0;
    uint64_t wait = 0;
    uint64_t session = 0;
    uint64_t delay = 0;
    uint64_t token = 0;
    uint64_t forever = 0;  // ttl 0
    uint64_t damage = 0;
  };

  void choose_commands();
  void choose_features();
  ScriptStep start();
  ScriptStep end(const ServerWorld& world);
  ScriptStep fault(const ServerWorld& world);
  ScriptStep silence();
  ScriptStep request();
  int64_t pause_us();
  Words options();
  std::string pick_option(const std::string& name);
  std::string option_value(const Row& row);
  Words more_options();
  static std::vector<Row> changeable_options();
  static const std::vector<std::string>& option_names();
  Words shutdown_words();
  std::optional<ScriptStep> stop_in_save(const ServerWorld& world);
  ScriptStep network_step(const std::string& client);
  ScriptStep delivered(ScriptStep step);

  std::string key() { return dice_.pick(keys_); }
  std::string owner() { return dice_.pick(owners_); }
  std::string holder_of(const std::string& key);
  std::string ttl();
  std::string value() { return "v" + std::to_string(dice_.below(1000)); }
  std::string lease_id() { return dice_.pick<std::string>({"L1", "L2", "L3"}); }
  bool happens(uint64_t odds) { return dice_.below(100) < odds; }
  std::string value_of(const ArgNode& argument);
  std::string time_of(const ArgNode& argument);
  Words script_call(const Command& command);

  std::string attempt();
  Words ticket();
  Words lock();
  Words renew();
  Words unlock();
  Words fence();
  Words break_lock();
  Words lease();
  Words set();
  Words hash();
  Words field_deadline(const std::string& k, const std::string& field);
  Words counter();
  Words expire();
  Words move();
  Words flush();
  Words script();
  Words del();
  Words look();
  Words save();
  Words config();
  Words pause();
  Words transaction();
  Words any_command();
  Words any_script();
  Words user();
  Words watch();
  Words tracking();
  Words large();
  Words debug();

  Dice dice_;
  std::vector<std::string> keys_;
  std::vector<std::string> owners_;
  std::vector<Maker> makers_;             // repeated in proportion to their probability
  std::vector<const Command*> commands_;  // all
  std::vector<const Command*> chosen_;    // of this run
  Odds odds_;
  std::vector<Row> changeable_;
  Words more_options_;
  std::vector<std::string> fixed_options_;
  bool slow_scripts_ = false;
  bool pipelines_ = false;
  bool stops_in_saves_ = false;
  bool end_next_ = false;
  uint64_t network_weight_ = 0;  // of 1000 requests
  bool changes_options_ = false;
  bool long_silence_ = false;
  bool kills_ = false;
  bool crashes_ = false;
  bool stops_ = false;
  bool shutdowns_ = false;
  bool sets_clock_ = false;
  std::vector<std::string> disk_faults_;  // that this run uses
  uint64_t end_weight_ = 0;               // of 1000 steps
  uint64_t fault_weight_ = 0;
  uint64_t silence_weight_ = 0;
  int clients_ = 4;
  const ServerWorld* world_ = nullptr;
  std::vector<bool> in_multi_;
  bool check_next_ = false;

  // server_stories.cc
  std::optional<ScriptStep> story_step();
  std::vector<ScriptStep> story();
  ScriptStep first_of(const std::vector<ScriptStep>& steps);
  ScriptStep lossy_end();
  Words long_lock(const std::string& key, const std::string& owner);
  std::vector<ScriptStep> silence_before_end();
  std::vector<ScriptStep> stop_in_recovery_wait();
  std::vector<ScriptStep> end_behind_replies();
  std::vector<ScriptStep> lock_delay_before_end();
  std::vector<ScriptStep> sessions_across_starts();
  std::vector<ScriptStep> stop_after_save_began();
  std::vector<ScriptStep> full_disk_before_end();
  std::vector<ScriptStep> new_folder_in_save();
  std::deque<ScriptStep> story_;  // the steps that follow
  uint64_t story_weight_ = 0;     // of 1000 steps
};

}  // namespace holdfast::simulation
