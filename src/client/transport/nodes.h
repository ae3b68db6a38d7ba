// One Redis, or the nodes of a Redis Cluster: a request goes to the node that has its slot, and follows
// that where it moves. Knows nothing of locks.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/transport/backoff.h"
#include "client/transport/pipeline.h"
#include "client/transport/redis_script.h"
#include "client/transport/transport.h"
#include "core/base/hash_slot.h"

namespace holdfast::client {

class RedisNodes {
 public:
  // Where an answer came from.
  struct Spot {
    Pipeline* pipeline = nullptr;
    uint64_t connection = 0;
    const Address* node = nullptr;  // lives as long as this RedisNodes
  };
  using Done = std::function<void(const Value&, Spot)>;

  RedisNodes(Loop& loop, const Address& address);

  // As Link::ask(). Without a slot any node is asked. A request that a node has lost is not repeated, as it
  // may have been done; one that a node has refused with MOVED, ASK or TRYAGAIN goes on until its time is
  // over. Those that are sent `apart` have a connection of their own, and keep no order with the others:
  // what waits for replicas holds up all behind it.
  void ask(std::optional<int> slot, Argv argv, DurationMs timeout, Done done, bool apart = false);
  // Over that very connection; lost where it has broken meanwhile.
  static void ask_at(Spot spot, const Argv& argv, DurationMs timeout, const Link::Answered& done);
  // A node to subscribe at, another one each time: what is published reaches all nodes of a cluster.
  Address listener();
  // As Address::text() has it; empty: not known yet.
  std::string owner_of(int slot) const;
  // To go to each node with slots once: by the lowest slot of each, the next above this one. What a slot's
  // move or a failover changes meanwhile, changes the order of few.
  std::optional<int> next_owner(int after) const;

 private:
  struct Call {
    std::optional<int> slot;
    Argv argv;
    DurationMs timeout;
    TimeMs deadline;
    Done done;
    bool apart;
    int redirects = 0;
  };
  struct Node {
    Node(Loop& loop, Address at) : address(std::move(at)), pipeline(loop, address), apart(loop, address) {}
    Pipeline& pipeline_of(const Call& call) { return call.apart ? apart : pipeline; }
    const Address address;
    Pipeline pipeline;
    Pipeline apart;  // opened when it is needed first
  };
  using CallPtr = std::shared_ptr<Call>;
  struct Parked {
    CallPtr call;
    TimeMs at;  // kNever: when the map of slots is known
  };

  Node& node(const std::string& host, int port);
  Node* node_in(const std::string& redirection, const Node& from);
  void route(const CallPtr& call);
  void send(const CallPtr& call, Node& node, bool asking = false);
  void hear(const CallPtr& call, Node& node, const Value& value);
  bool follow(const CallPtr& call, Node& node, const std::string& error);
  void park(const CallPtr& call, TimeMs at);
  void refresh();
  void ask_slots();
  void hear_slots(Node& node, const Value& value);
  bool read_slots(Node& node, const Value& value);
  void settle_parked();
  void on_time();
  void arm();

  Loop& loop_;
  const Address address_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // all that were ever heard of
  std::vector<Node*> known_;                            // those to ask: of the map, and those we began with
  size_t home_ = 0;                                     // of known_, who has answered last
  size_t listener_ = 0;                                 // of known_
  std::array<Node*, kHashSlots> owners_{};
  std::vector<Parked> parked_;
  bool refreshing_ = false;
  size_t tried_ = 0;  // nodes, in this refresh
  TimeMs next_refresh_{};
  Value failure_;  // of the last refresh; kNull: none
  Backoff backoff_;
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // ends with this
};

}  // namespace holdfast::client
