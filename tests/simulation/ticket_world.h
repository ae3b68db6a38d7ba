// Clients that wait by ticket, on real engines, in a network with cuts; and the judge of what they got.
//
// Always: two holders never exclude each other within their validity; the token of an exclusive lock is
// larger than each token that was given before. In a case that promises it: the liveness of docs/safety.md,
// measured from one TTL after the begin of the faults on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dice.h"
#include "ticket_client.h"
#include "ticket_network.h"
#include "ticket_server.h"

namespace holdfast::simulation::ticket {

class World;

inline constexpr int64_t kMs = 1000;  // in microseconds

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
  size_t extra_clients = 0;             // which need not be served: they have the groups from kExtra on
  size_t groups = 3;                    // of the other clients, in turn
  bool always_far = false;              // more_delay_us counts before the faults, too
  bool proxied = false;                 // connections stay open while a server restarts
  int64_t excused_us = 0;               // of the time with faults: without a grant, by nature
  std::function<void(World&)> faults;   // schedules them
  client::TicketTimes times;            // of the clients
  double drift = client::kDrift;
  bool recovers = true;  // a server without its data grants nothing for a while
  // What is promised: the share of the rate without faults, and whether each client is served in time.
  double least_rate = 0.5;
  double least_rate_of_5 = 0.5;  // on five servers
  bool fair = true;
};

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
  // A fault, or why the case's promise is broken; empty if it is kept.
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
  // The client of this group vanishes, or is silent from now on; another one takes its place.
  void replace(size_t group, bool silent);
  // So many clients vanish for good.
  void end_some(size_t count);
  // So many clients are silent from now on: the case's cut decides what that means. They need not be
  // served.
  void silence(size_t count);
  // LOCKS BREAK on all servers. Others may enter before the holder knows; but it must come to know.
  void break_lock();
  bool is_silent(const ClientPlan& client) const { return silent_.contains(client.index); }

 private:
  void make_server(size_t n);
  Client& spawn(size_t group);
  // One that takes the place of another one has its mode, so that the rate stays comparable.
  Client& spawn(size_t group, client::LockMode mode);
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
  std::set<size_t> silent_;  // by index
  int64_t broken_us_ = INT64_MIN / 2;
  // Those inside whose lock was broken, and when. 0: they entered so soon after a break that they may have
  // counted votes from before it.
  std::map<const Client*, int64_t> broken_;
};

}  // namespace holdfast::simulation::ticket
