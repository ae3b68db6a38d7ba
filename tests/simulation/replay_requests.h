// Random steps for a ReplayWorld: requests of every command of the table that changes what the disk keeps,
// on few keys, so that they collide, and on values of every size.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/command/command.h"
#include "dice.h"
#include "replay_world.h"
#include "server/syntax_words.h"

namespace holdfast::simulation {

class ReplayRequests {
 public:
  explicit ReplayRequests(uint64_t seed);
  using Words = std::vector<std::string>;

  ReplayStep next(const ReplayWorld& world);
  // The commands of the table that write.
  const std::vector<const Command*>& writes() const { return writes_; }
  // A request of this command with small arguments. RESTORE needs a world: see next().
  Words of_table(const Command& command);

 private:
  ReplayStep ask(size_t client, Words words);
  ReplayStep event(ReplayStep::Kind kind, uint64_t number = 0) const;
  void plan(const ReplayWorld& world);
  Words request();
  Words of_functions();
  Words large();
  Words shrinking();
  Words script();
  std::string value_of(const Command& command, const ArgNode& argument);
  std::string key(std::string_view group);
  std::string library();
  std::string number(int64_t lowest, int64_t highest) {
    return std::to_string(dice_.between(lowest, highest));
  }

  Dice dice_;
  const ReplayWorld* world_ = nullptr;
  int64_t ms_ = 0;
  std::deque<ReplayStep> planned_;
  std::vector<const Command*> writes_;
  std::vector<const Command*> others_;
};

}  // namespace holdfast::simulation
