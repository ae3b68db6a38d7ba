// The proxy's side of its engine: takes the requests on keys that the engine's hooks hand over, and answers
// them from the servers. Each request is a Call (call.h) with a time limit. Nothing that exclusion, tokens
// or releases depend on is only here: a proxy can be killed at any moment.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/remote_keys.h"
#include "core/base/types.h"
#include "proxy/own_holds.h"
#include "proxy/quorum.h"
#include "proxy/server_check.h"
#include "proxy/session_holds.h"
#include "proxy/shell.h"

namespace holdfast::proxy {

class Call;

struct GatewayOptions {
  // The TTL on the servers of a hold without a TTL.
  DurationMs untimed_ttl{86'400'000};
};

class Gateway {
 public:
  Gateway(Quorum& quorum, Shell shell, GatewayOptions options);
  ~Gateway();
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  // The hooks of the engine: see RemoteHooks.
  bool take(const RemoteRequest& request);
  void take(const RemoteLock& lock);
  std::string refuse(std::string_view command, std::span<const std::string_view> argv, bool on_copy);
  void drop(ConnId conn);

  // Begins the requests that were taken since the last call. Not within the engine.
  void begin_calls();
  // Drops all requests.
  void close();

  // For calls:
  Quorum& quorum() { return quorum_; }
  OwnHolds& own() { return own_; }
  SessionHolds& sessions() { return sessions_; }
  const GatewayOptions& options() const { return options_; }
  const Shell& shell() const { return shell_; }
  // The longest TTL of a client. A longer one could not be told from a hold without a TTL.
  DurationMs longest_ttl() const { return {options_.untimed_ttl.count / 2}; }
  // The time limit of a request that does not wait: a little more than one round to the servers.
  DurationMs call_limit() const { return {quorum_.timeout().count * 9 / 8}; }
  // Answers the request and forgets the call, which may end within this function.
  void answer(ConnId conn, std::string_view reply);
  // Ends the transaction of the connection without running it.
  void discard(ConnId conn) { shell_.engine().discard_remote(conn); }
  int protocol(ConnId conn) const { return shell_.engine().protocol(conn); }
  // Runs a request on a copy of its key. `depends_on_ttl`: whether its effect may depend on the TTL.
  RemoteOutcome run(ConnId conn, std::span<const std::string_view> argv, const RemoteKey& copy,
                    bool& depends_on_ttl);
  // The recent duration of a round to the servers, in ms, rounded up.
  DurationMs recent_round() const { return {1 + round_us_ / 1000}; }
  void record_round(client::DurationUs took);

 private:
  struct Taken {
    std::shared_ptr<Call> call;
    TimeMs deadline;
  };

  void add(std::shared_ptr<Call> call);
  std::shared_ptr<Call> forget(uint64_t serial);
  void end_late_calls();

  Quorum& quorum_;
  const Shell shell_;
  const GatewayOptions options_;
  OwnHolds own_;
  SessionHolds sessions_;
  std::map<uint64_t, Taken> calls_;  // by the serial of the connection
  std::set<std::pair<TimeMs, uint64_t>> deadlines_;
  std::deque<std::shared_ptr<Call>> new_;
  bool depends_on_ttl_ = false;  // the request that runs on a copy
  int64_t round_us_ = 0;
  bool closed_ = false;
  client::LoopTimer timer_;
  ServerCheck check_;
};

}  // namespace holdfast::proxy
