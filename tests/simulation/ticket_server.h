// One server of the world: an engine with a clock, a journal and connections. It stops and starts with or
// without its data, and may stand still.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/engine.h"
#include "core/state/tokens.h"
#include "ticket_clock.h"
#include "ticket_network.h"

namespace holdfast::simulation::ticket {

class Server {
 public:
  using Send = std::function<void(const ConnectionPtr&, std::string bytes)>;
  using Hangup = std::function<void(const ConnectionPtr&)>;

  Server(Events& events, Clock clock, int64_t wall_skew_us, Send send, Hangup hangup);

  void receive(const ConnectionPtr& c, Connection::Packet&& packet);
  bool listens() const { return engine_ != nullptr || proxied_; }
  // `proxied`: the connections stay open, as a proxy has them. While the server is down, the proxy replies
  // with errors, and then it opens its own connections again.
  void stop(bool proxied = false);
  // `recovery_ms` without data: for so long it grants nothing. Its token counters are always kept.
  void start(bool with_data, int64_t recovery_ms);
  // Nothing is done before that time; the kernel takes connections and bytes meanwhile.
  void freeze(int64_t until_us) { frozen_until_us_ = std::max(frozen_until_us_, until_us); }
  // A client that does not release: its hold begins when the lock is free.
  void leave_hold(const std::string& key, int64_t ttl_ms);
  // LOCKS BREAK by an operator.
  void break_lock(const std::string& key);
  void check_invariants() const;

 private:
  Now now() const;
  void make_engine();
  void open(const ConnectionPtr& c);
  void apply(const ConnectionPtr& c, const Words& words);
  void drop(const ConnectionPtr& c);
  void apply_one(ConnId id, const std::vector<std::string_view>& words);
  void conclude(Effects& fx);
  void arm();
  void tick();

  Events& events_;
  Clock clock_;
  int64_t wall_skew_us_ = 0;
  Send send_;
  Hangup hangup_;
  std::unique_ptr<Engine> engine_;
  std::string journal_;
  IssuedTokens issued_;
  uint64_t runs_ = 0;
  bool proxied_ = false;
  ConnId leftover_;
  int64_t frozen_until_us_ = 0;
  int64_t recovers_until_us_ = 0;
  int64_t armed_us_ = INT64_MAX;
  std::map<Connection*, ConnId> ids_;
  std::map<uint64_t, ConnectionPtr> connections_;  // by serial
};

}  // namespace holdfast::simulation::ticket
