// Connections between clients and servers as TCP has them: bytes arrive in their order or not at all. A
// lost packet stops its direction until the sender has repeated it: after 200 ms, and after twice as long
// each further time. To open a connection, a packet goes there and one comes back; it is repeated after 1
// s.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dice.h"
#include "ticket_events.h"

namespace holdfast::simulation::ticket {

enum class Way : uint8_t { kThere, kBack };  // from the client to the server, and back

// What happens to packets.
struct Links {
  // Whether a packet that is sent now is lost because of a cut.
  std::function<bool(size_t client, size_t server, Way way)> is_cut;
  // The delay of a packet one way.
  std::function<int64_t(size_t client, size_t server)> delay_us;
  double loss = 0;  // the share of packets that are lost without a cut
};

using Words = std::vector<std::string>;

class Network;

// One connection. Its two ends close it independently: what one end has sent before still arrives.
struct Connection : std::enable_shared_from_this<Connection> {
  struct Packet {
    Words words;        // of a request
    std::string bytes;  // of replies
    bool end = false;   // the sender has closed
  };
  struct Direction {
    std::deque<Packet> waiting;  // behind a lost packet, which is the first one
    bool stopped = false;
    int64_t repeat_us = 0;
    int64_t last_arrival_us = 0;
  };
  size_t client = 0;
  size_t server = 0;
  uint64_t number = 0;  // by the client's count
  bool open = false;    // the handshake is complete
  bool client_closed = false;
  bool server_closed = false;
  Direction there;
  Direction back;
};

using ConnectionPtr = std::shared_ptr<Connection>;

// The ends of connections.
struct Peers {
  std::function<void(const ConnectionPtr&)> opened;   // to the client
  std::function<void(const ConnectionPtr&)> refused;  // to the client: no process listens
  std::function<bool(size_t server)> listens;
  std::function<void(const ConnectionPtr&, Connection::Packet&&)> to_server;
  std::function<void(const ConnectionPtr&, Connection::Packet&&)> to_client;
};

class Network {
 public:
  Network(Events& events, Links links, Peers peers, uint64_t seed)
      : events_(events), links_(std::move(links)), peers_(std::move(peers)), dice_(seed) {}

  ConnectionPtr connect(size_t client, size_t server, uint64_t number);
  // Before the connection is open, the packets wait for it.
  void send(const ConnectionPtr& c, Way way, Connection::Packet packet);
  void close(const ConnectionPtr& c, Way way);
  uint64_t packets() const { return packets_; }

 private:
  bool passes(const Connection& c, Way way);
  int64_t delay(const Connection& c);
  void shake_hands(const ConnectionPtr& c, int64_t repeat_us);
  void transmit(const ConnectionPtr& c, Way way, bool first_passed = false);
  void repeat(const ConnectionPtr& c, Way way);

  Events& events_;
  Links links_;
  Peers peers_;
  QuickDice dice_;
  uint64_t packets_ = 0;
};

}  // namespace holdfast::simulation::ticket
