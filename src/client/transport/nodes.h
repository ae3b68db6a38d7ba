// One Redis, or the nodes of a Redis Cluster: a request goes to the node that has its slot, and follows the
// slot if it moves. Knows nothing about locks.
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
  // The connection and the node of an answer.
  struct Spot {
    Pipeline* pipeline = nullptr;
    uint64_t connection = 0;
    const Address* node = nullptr;  // lives as long as this RedisNodes
  };
  using Done = std::function<void(const Value&, Spot)>;

  RedisNodes(Loop& loop, const Address& address);

  // Sends a request as Link::ask() does; without a slot, to any node. A lost request is not repeated,
  // because the node may have executed it. A request that a node refuses with MOVED, ASK or TRYAGAIN
  // continues until its timeout. Requests with `apart` use a separate connection and have no order with the
  // others: a request that waits for replicas delays all later requests on its connection.
  void ask(std::optional<int> slot, Argv argv, DurationMs timeout, Done done, bool apart = false);
  // Sends a request over exactly this connection; `done` gets kLost if it broke meanwhile.
  static void ask_at(Spot spot, const Argv& argv, DurationMs timeout, const Link::Answered& done);
  // Returns a node for subscriptions, another one each time: messages reach all nodes of a cluster.
  Address listener();
  // Returns the node that has the slot, as Address::text(); empty if it is not known yet.
  std::string owner_of(int slot) const;
  // Iterates over the nodes that have slots, by the lowest slot of each node. Returns the next of these
  // slots above `after`; null if there is none. If a slot moves or a node fails over meanwhile, the order
  // of few nodes changes.
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
    Pipeline apart;  // connects when it is first needed
  };
  using CallPtr = std::shared_ptr<Call>;
  struct Parked {
    CallPtr call;
    TimeMs at;  // when to continue; kNever: when the map of slots is known
  };

  Node& node(const std::string& host, int port);
  Node* node_in(const std::string& redirection, const Node& from);
  void route(const CallPtr& call);
  void send(const CallPtr& call, Node& node, bool asking = false);
  void receive(const CallPtr& call, Node& node, const Value& value);
  bool follow(const CallPtr& call, Node& node, const std::string& error);
  void park(const CallPtr& call, TimeMs at);
  void refresh();
  void ask_slots();
  void on_slots(Node& node, const Value& value);
  bool read_slots(Node& node, const Value& value);
  void settle_parked();
  void on_time();
  void arm();

  Loop& loop_;
  const Address address_;
  std::map<std::string, std::unique_ptr<Node>> nodes_;  // all nodes ever seen
  std::vector<Node*> known_;                            // nodes of the map, and those of the address
  size_t home_ = 0;                                     // index into known_: the node that answered last
  size_t listener_ = 0;                                 // index into known_
  std::array<Node*, kHashSlots> owners_{};
  std::vector<Parked> parked_;
  bool refreshing_ = false;
  size_t tried_ = 0;  // nodes asked in this refresh
  TimeMs next_refresh_{};
  Value failure_;  // the failure of the last refresh; kNull: none
  Backoff backoff_;
  LoopTimer timer_;
  std::shared_ptr<const bool> life_ = std::make_shared<bool>(true);  // expires with this object
};

}  // namespace holdfast::client
