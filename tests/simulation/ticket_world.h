// Clients that wait by ticket, on real engines, in a network with cuts; and the judge of what they got.
//
// Always: two holders never exclude each other within their validity; the token of an exclusive lock is
// larger than each token that was given before. In a case that promises it: the liveness of docs/safety.md,
// measured from one TTL after the begin of the faults on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dice.h"
#include "ticket_client.h"
#include "ticket_network.h"
#include "ticket_server.h"

namespace holdfast::simulation::ticket {

class World;

enum class Locks : uint8_t { kExclusive, kShared, kCounted };  // kShared: a half of the clients are readers

// What a world has, and what happens to it.
struct Case {
  std::string name;
  size_t servers = 3;
  size_t clients = 6;
  Locks locks = Locks::kExclusive;
  int64_t ttl_ms = 1000;
  int64_t delay_us = 300;    // of a message, one way
  int64_t hold_us = 20'000;  // the longest hold; the shortest is 0
  double loss = 0;
  int64_t clocks_us = 3000;     // wall clocks are wrong by at most this
  int64_t calm_us = 5'000'000;  // without faults, for the comparison
  int64_t faulty_us = 20'000'000;
  // Of the time with faults. `client`: a member of the group, or one of the extra clients.
  std::function<bool(World&, const ClientPlan&, size_t server, Way way)> cut;
  std::function<int64_t(World&, const ClientPlan&, size_t server)> more_delay_us;
  std::function<int64_t(World&)> hold;  // instead of hold_us
  size_t extra_clients = 0;             // which need not be served: they have the group kExtra
  std::function<void(World&)> faults;   // schedules them
  // What is promised: the share of the rate without faults, and whether each client is served in time.
  double least_rate = 0.5;
  bool fair = true;
};

inline constexpr size_t kGroups = 3;
inline constexpr size_t kExtra = 1000;  // groups from here on are those of extra clients

struct Figures {
  double before = 0;  // grants in a second
  double after = 0;
  double rate = 0;  // after / before
  double longest_wait_s = 0;
  double longest_gap_s = 0;
  double least_to_most = 0;
  double fair_share_s = 0;
  uint64_t grants = 0;
  uint64_t lost = 0;
  double packets = 0;               // for each grant
  std::vector<std::string> faults;  // of safety
  // Why the case's promise is broken; empty if it is kept.
  std::string complaint(const Case& c) const;
};

class World {
 public:
  World(Case plan, uint64_t seed, std::function<void(const std::string&)> tell = nullptr);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  Figures run();

  // For the faults of a case:
  Events& events() { return events_; }
  QuickDice& dice() { return dice_; }
  const Case& plan() const { return plan_; }
  Server& server(size_t n) { return *servers_[n]; }
  size_t minority() const { return (plan_.servers - 1) / 2; }
  int64_t begin_us() const { return plan_.calm_us; }
  int64_t end_us() const { return plan_.calm_us + plan_.faulty_us; }
  // The servers that a group misses in the n-th period of a changing cut: a random minority, always the
  // same.
  bool misses(size_t group, int64_t period, size_t server);
  void restart(size_t server, int64_t down_us, bool with_data);
  enum class Victim : uint8_t { kAny, kHolder, kVoter };
  // A client vanishes, and another one takes its place.
  void replace_one(Victim victim);
  // This share of the clients vanishes for good.
  void end_some(size_t count);
  // From now on these clients get no answers, or are cut off: see deaf().
  void silence(size_t count) { silent_ = count; }
  bool is_silent(const ClientPlan& client) const { return client.index < silent_; }

 private:
  void make_server(size_t n);
  Client& spawn(size_t group);
  void entered(Client& c);
  void left(Client& c);
  bool excludes(const Client& a, const Client& b) const;
  void fault(const std::string& what);
  bool counts(const Client& c) const;
  Figures judge(uint64_t before, double before_s);

  Case plan_;
  QuickDice dice_;
  uint64_t seed_;
  Events events_;
  Network network_;
  Surroundings around_;
  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<int64_t> born_us_;
  std::vector<Client*> inside_;
  std::vector<std::string> faults_;
  std::vector<int64_t> entries_us_;
  uint64_t largest_token_ = 0;
  uint64_t largest_exclusive_ = 0;
  size_t silent_ = 0;
};

}  // namespace holdfast::simulation::ticket
