// The random choices of each step.
#include "generator.h"

#include <algorithm>

#include "core/state/tokens.h"

namespace holdfast::simulation {

// Each run omits some commands and repeats others often, so that runs differ more than steps do.
Generator::Generator(const Profile& profile) : profile_(profile), dice_(profile.seed * 2) {
  std::vector<std::string> keys = {"k",  "lock:1", "", std::string("\r\n\0z", 4), std::string(40, 'q'),
                                   "key"};
  std::vector<std::string> owners = {"ann", "bob", "cy", std::string("\0\xff\r\n", 4), std::string(60, 'w'),
                                     "eve"};
  if (dice_.one_in(20)) keys[0] = std::string(1100, 'K');
  if (dice_.one_in(20)) owners[0] = std::string(512, 'O');
  keys_.assign(keys.begin(), keys.begin() + profile.keys);
  owners_.assign(owners.begin(), owners.begin() + profile.owners);
  const std::vector<std::pair<Maker, int>> kinds = {
      {&Generator::renew, 4},   {&Generator::fence, 3},  {&Generator::locks, 5},
      {&Generator::lease, 6},   {&Generator::set, 6},    {&Generator::del, 3},
      {&Generator::expire, 4},  {&Generator::select, 2}, {&Generator::look_at_key, 5},
      {&Generator::unblock, 2}, {&Generator::flush, 1},  {&Generator::malformed, 1},
  };
  makers_.assign(30, &Generator::lock);
  makers_.insert(makers_.end(), 14, &Generator::unlock);
  for (const auto& [maker, weight] : kinds) {
    const int times = weight * dice_.pick<int>({0, 1, 1, 2});
    makers_.insert(makers_.end(), static_cast<size_t>(times), maker);
  }
  pass_weight_ = dice_.pick<uint64_t>({10, 25, 40});
  churn_weight_ = dice_.pick<uint64_t>({5, 20, 60});
}

Step Generator::next(const World& world) {
  world_ = &world;
  conn_ = static_cast<int>(dice_.below(static_cast<uint64_t>(profile_.conns)));
  if (dice_.below(100) < pass_weight_) return pass(world);
  if (!world.is_open(conn_) || dice_.below(1000) < churn_weight_) return open_or_drop(world, conn_);
  for (int tries = 0; tries < profile_.conns && !world.may_send(conn_); ++tries) {
    conn_ = (conn_ + 1) % profile_.conns;
  }
  if (!world.may_send(conn_)) return pass(world);
  return command(world, conn_);
}

Step Generator::open_or_drop(const World& world, int conn) {
  Step step;
  step.kind = world.is_open(conn) ? Step::Kind::kDrop : Step::Kind::kOpen;
  step.conn = conn;
  return step;
}

// Half of the passes of time are followed by a loop iteration, the other half by any step.
Step Generator::pass(const World& world) {
  Step step;
  if (dice_.one_in(2)) return step;
  step.kind = Step::Kind::kPass;
  const int64_t now = world.now().mono.count;
  const std::optional<TimeMs> next = world.model().next_event();
  const uint64_t choice = dice_.below(100);
  const int64_t left = next ? next->count - now : -1;
  if (left > 0 && left < 100000 && choice < 65) {
    step.pass_ms = std::max<int64_t>(0, left + (choice < 35 ? 0 : choice < 50 ? -1 : 1));
  } else if (choice < 90) {
    step.pass_ms = dice_.between(0, 20);
  } else if (choice < 98) {
    step.pass_ms = dice_.between(20, 2000);
  } else {
    step.pass_ms = dice_.between(2000, 20000000);
  }
  return step;
}

Step Generator::command(const World& world, int conn) {
  Step step;
  step.kind = Step::Kind::kCommand;
  step.conn = conn;
  queued_ = world.model().in_multi(world.serial(conn));
  if (queued_ && dice_.one_in(4)) {
    step.args = {dice_.one_in(5) ? "DISCARD" : "EXEC"};
  } else if (!queued_ && profile_.transactions && dice_.one_in(25)) {
    step.args = {"MULTI"};
  } else if (!queued_ && dice_.one_in(30)) {
    step.args = {"HELLO", "3"};
  } else {
    step.args = any_command();
  }
  return step;
}

Args Generator::any_command() { return (this->*dice_.pick(makers_))(); }

std::string Generator::owner_of(const std::string& key) {
  if (dice_.one_in(3)) return owner();
  const auto found = world_->model().keys().find({world_->model().selected(world_->serial(conn_)), key});
  if (found == world_->model().keys().end() || found->second.holds.empty()) return owner();
  return dice_.pick(found->second.holds).owner;
}

std::string Generator::ttl() {
  const uint64_t choice = dice_.below(100);
  if (choice < 25) return "0";
  if (choice < 45) return std::to_string(dice_.between(1, 9));
  if (choice < 80) return std::to_string(dice_.between(10, 60));
  if (choice < 97) return std::to_string(dice_.pick<int64_t>({100, 1000, 60000}));
  return "9007199254740991";
}

std::string Generator::wait_ms() {
  if (dice_.one_in(3)) return "0";
  return std::to_string(dice_.one_in(2) ? dice_.between(1, 20) : dice_.between(20, 1000));
}

// Returns a token near the known tokens of the key. Values far ahead are used only where the reply is
// certain.
std::string Generator::token(const std::string& key) {
  const TokenBook& book = world_->model().tokens();
  const uint64_t counter = book.counter(key);
  const auto wall = static_cast<uint64_t>(world_->now().wall_us);
  const auto lead = static_cast<uint64_t>(Config().max_token_lead.count) * 1000;
  const uint64_t choice = queued_ ? dice_.below(60) : dice_.below(100);
  if (choice < 20) return std::to_string(dice_.below(3));
  if (choice < 80) return std::to_string(counter + dice_.below(4) - (counter > 1 ? 2 : counter));
  if (choice < 90) return std::to_string(counter + 1000);
  // A key of this length cannot have a counter of its own: the server rejects tokens far ahead.
  if (choice < 93 || key.size() > Tokens::kMaxAheadKeyBytes) return std::to_string(wall);
  if (choice < 96) return std::to_string(std::max(wall, counter) + lead);
  return std::to_string(std::max(wall, book.largest()) + lead + 1);
}

std::string Generator::note() {
  return dice_.pick<std::string>(
      {"", "why", "nightly job", std::string("\0\r\n\xff", 4), std::string(256, 'n')});
}

Args Generator::lock() {
  const std::string k = key();
  Args args = {dice_.one_in(9) ? "lock" : "LOCK", k, dice_.one_in(4) ? owner_of(k) : owner(), ttl()};
  if (!queued_ && dice_.one_in(60)) args[2] = "*";
  std::vector<Args> options;
  if (dice_.one_in(3)) options.push_back({dice_.one_in(2) ? "SHARED" : "shared"});
  if (options.empty() && dice_.one_in(3)) options.push_back({"LIMIT", std::to_string(dice_.between(1, 3))});
  if (!dice_.one_in(4)) {
    options.push_back({"WAIT", wait_ms()});
    if (dice_.one_in(2)) options.push_back({"ASYNC"});
  }
  if (dice_.one_in(5)) options.push_back({"SESSION"});
  if (dice_.one_in(6)) options.push_back({"DELAY", std::to_string(dice_.pick<int>({0, 1, 5, 30}))});
  if (dice_.one_in(8)) options.push_back({"TOKEN", token(k)});
  if (dice_.one_in(5)) options.push_back({dice_.one_in(9) ? "note" : "NOTE", note()});
  for (size_t n = options.size(); n > 0; --n) {
    const size_t at = dice_.below(n);
    args.insert(args.end(), options[at].begin(), options[at].end());
    options.erase(options.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return args;
}

Args Generator::renew() {
  const std::string k = key();
  if (dice_.one_in(2)) return {"RENEW", k, owner_of(k)};
  return {"RENEW", k, owner_of(k), ttl()};
}

Args Generator::unlock() {
  const std::string k = key();
  return {"UNLOCK", k, owner_of(k)};
}

Args Generator::fence() {
  const std::string k = key();
  return {"FENCE", k, owner_of(k), token(k)};
}

Args Generator::locks() {
  const uint64_t choice = dice_.below(10);
  if (choice < 4) return {"LOCKS", "INFO", key()};
  if (choice < 5) return {"LOCKS", "OWNED", owner()};
  if (choice < 7) return {"LOCKS", "BREAK", key()};
  if (choice < 8) return {"LOCKS", "REVOKE", key()};
  const std::vector<uint64_t>& shown = world_->model().tokens().shown();
  const uint64_t token = shown.empty() || dice_.one_in(5) ? 0 : dice_.pick(shown);
  if (queued_) return {"LOCKS", "INFO", key()};
  return {"LOCKS", "CHECK", key(), std::to_string(token)};
}

std::string Generator::lease_id() {
  const std::map<std::string, Lease>& leases = world_->model().leases();
  if (leases.empty() || dice_.one_in(3))
    return dice_.pick<std::string>({"L1", "L2", std::string("\0\r\n", 3)});
  auto some = leases.begin();
  std::advance(some, static_cast<std::ptrdiff_t>(dice_.below(leases.size())));
  return some->first;
}

Args Generator::lease_grant() {
  const bool star = !queued_ && dice_.one_in(10);
  Args args = {"LEASE", "GRANT", star ? "*" : lease_id(), ttl()};
  if (args[3] == "0") args[3] = "25";
  std::vector<std::string> left = keys_;
  for (int64_t n = dice_.between(1, 3); n > 0 && !left.empty(); --n) {
    const size_t at = dice_.below(left.size());
    args.push_back(left[at]);
    args.push_back(dice_.one_in(8) ? "" : owner());
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return args;
}

Args Generator::lease() {
  const uint64_t choice = dice_.below(10);
  if (choice < 4) return lease_grant();
  if (choice < 5) return {"LEASE", "CONFIRM", lease_id()};
  if (choice < 6) return {"LEASE", "CANCEL", lease_id()};
  if (choice < 8) return {"LEASE", "INFO", lease_id()};
  const std::string renewed = ttl();
  if (dice_.one_in(2) || renewed == "0") return {"LEASE", "RENEW", lease_id()};
  return {"LEASE", "RENEW", lease_id(), renewed};
}

Args Generator::set() {
  const std::string k = key();
  Args args = {"SET", k, dice_.one_in(3) ? owner_of(k) : owner()};
  const uint64_t condition = dice_.below(8);
  if (condition < 3) args.push_back("NX");
  if (condition == 3) args.push_back("XX");
  if (condition == 4) args.insert(args.end(), {"IFEQ", owner_of(k)});
  const uint64_t expiry = dice_.below(3);
  if (expiry == 0) args.push_back("KEEPTTL");
  if (expiry == 1) args.insert(args.end(), {"PX", std::to_string(dice_.between(1, 60))});
  if (dice_.one_in(5)) args.push_back("GET");
  return args;
}

Args Generator::look_at_key() {
  if (dice_.one_in(6)) return {"EXISTS", key(), key()};
  if (dice_.one_in(6)) return {"DBSIZE"};
  return {dice_.pick<std::string>({"GET", "PTTL", "TYPE", "get", "EXISTS", "TTL"}), key()};
}

Args Generator::del() {
  if (dice_.one_in(3)) return {"DEL", key(), key()};
  return {dice_.one_in(3) ? "UNLINK" : "DEL", key()};
}

Args Generator::expire() {
  const uint64_t choice = dice_.below(6);
  if (choice == 0) return {"EXPIRE", key(), dice_.pick<std::string>({"1", "2", "0", "-1"})};
  if (choice < 3) return {"PERSIST", key()};
  return {"PEXPIRE", key(), std::to_string(dice_.between(dice_.one_in(9) ? 0 : 1, 60))};
}

Args Generator::flush() {
  if (!dice_.one_in(4)) return look_at_key();
  return {dice_.one_in(2) ? "FLUSHALL" : "FLUSHDB"};
}

Args Generator::select() {
  return {"SELECT", std::to_string(dice_.below(static_cast<uint64_t>(profile_.databases)))};
}

Args Generator::unblock() {
  const auto conn = static_cast<int>(dice_.below(static_cast<uint64_t>(profile_.conns)));
  Args args = {"CLIENT", "UNBLOCK", "@" + std::to_string(conn)};
  if (dice_.one_in(2)) args.push_back(dice_.one_in(2) ? "TIMEOUT" : "error");
  return args;
}

Args Generator::malformed() {
  const std::string k = key();
  const std::string o = owner();
  const std::vector<Args> lines = {
      {"LOCK", k, o, "-1"},
      {"LOCK", k, o, "1e3"},
      {"LOCK", k, o, " 1"},
      {"LOCK", k, o, "9007199254740992"},
      {"LOCK", k, "", "10"},
      {"LOCK", k, std::string(513, 'x'), "10"},
      {"LOCK", k, o, "10", "SHARED", "SHARED"},
      {"LOCK", k, o, "10", "SHARED", "LIMIT", "2"},
      {"LOCK", k, o, "10", "WAIT", "5", "wait", "5"},
      {"LOCK", k, o, "10", "WAIT"},
      {"LOCK", k, o, "10", "WAIT", "-1"},
      {"LOCK", k, o, "10", "ASYNC"},
      {"LOCK", k, o, "10", "LIMIT", "0"},
      {"LOCK", k, o, "10", "LIMIT", "2147483648"},
      {"LOCK", k, o, "10", "DELAY", "x"},
      {"LOCK", k, o, "10", "TOKEN", "9007199254740992"},
      {"LOCK", k, o, "10", "NX"},
      {"LOCK", k, o, "10", "NOTE"},
      {"LOCK", k, o, "10", "NOTE", "a", "NOTE", "a"},
      {"LOCK", k, o, "10", "NOTE", std::string(257, 'n')},
      {"RENEW", k, o, "-1"},
      {"SELECT", "16"},
      {"LEASE", "RENEW", "L1", "0"},
      {"LEASE", "GRANT", "L1", "0", k, o},
      {"LEASE", "GRANT", "L1", "10", k, o, k, o},
      {"EXPIRE", k, "abc"},
  };
  return dice_.pick(lines);
}

}  // namespace holdfast::simulation
