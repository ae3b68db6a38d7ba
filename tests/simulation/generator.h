// Generates the next step of a run. Few keys, owners and connections make requests collide. Time often
// stops at a deadline, 1 ms before it and 1 ms after it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "dice.h"
#include "step.h"
#include "world.h"

namespace holdfast::simulation {

class Generator {
 public:
  explicit Generator(const Profile& profile);

  Step next(const World& world);

 private:
  using Maker = Args (Generator::*)();

  Step open_or_drop(const World& world, int conn);
  Step pass(const World& world);
  Step command(const World& world, int conn);
  Args any_command();

  const std::string& key() { return dice_.pick(keys_); }
  const std::string& owner() { return dice_.pick(owners_); }
  // Returns an owner, in most cases one that holds the key or waits for it.
  std::string owner_of(const std::string& key);
  std::string ttl();
  std::string wait_ms();
  std::string note();
  std::string token(const std::string& key);
  std::string lease_id();

  Args lock();
  Args renew();
  Args unlock();
  Args fence();
  Args locks();
  Args lease();
  Args lease_grant();
  Args set();
  Args look_at_key();
  Args del();
  Args expire();
  Args flush();
  Args select();
  Args unblock();
  Args malformed();

  Profile profile_;
  Dice dice_;
  std::vector<std::string> keys_;
  std::vector<std::string> owners_;
  std::vector<Maker> makers_;  // repeated in proportion to their probability
  uint64_t pass_weight_;       // of 100 steps
  uint64_t churn_weight_;      // of 1000 steps
  const World* world_ = nullptr;
  int conn_ = 0;         // the connection that sends
  bool queued_ = false;  // the request goes into a transaction
};

}  // namespace holdfast::simulation
