// A network with faults between clients and servers: a TCP proxy in its own thread. At random, as often as
// its Intensity says, it swallows replies, delays bytes, cuts connections in the middle of a message, and
// rejects new connections. One seed determines all choices, but not their timing. Bytes that it passes on
// stay in order, as in TCP.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

#include "process.h"
#include "simulation/dice.h"

namespace holdfast::integration {

// How often each fault happens: to one of this many pieces that arrive; 0 means never.
struct Intensity {
  uint64_t swallow_one_in = 0;  // this piece and all later bytes, until the connection is cut
  uint64_t cut_one_in = 0;
  uint64_t delay_one_in = 0;
  uint64_t shut_one_in = 0;  // per new connection: a server rejects all connections for a while
  int64_t longest_delay_ms = 20;
};

struct ProxyCounts {
  uint64_t swallowed = 0;  // replies
  uint64_t cut_requests = 0;
  uint64_t cut_replies = 0;
  uint64_t delayed = 0;
  uint64_t turned_away = 0;
};

class ChaosProxy {
 public:
  // A proxy for this many servers. lead_to() sets the port of each.
  ChaosProxy(size_t servers, uint64_t seed, const Intensity& intensity);
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  int port(size_t server) const { return doors_.at(server).port; }
  // Sets the port for all later connections to this server.
  void lead_to(size_t server, int port);
  ProxyCounts counts() const;

 private:
  // Bytes in flight in one direction.
  struct Piece {
    Clock::time_point due;
    std::string bytes;
    bool last = false;  // the connection is cut after it
  };
  struct Pair;
  struct Door {
    Fd listener;
    int port = 0;
    int leads_to = 0;
    Clock::time_point shut_until;
  };

  void run();
  void accept_at(Door& door);
  bool is_shut(Door& door);
  void serve(Pair& pair);
  void read(Pair& pair, bool from_server);
  void take(Pair& pair, bool from_server, std::string_view bytes);
  bool write(Pair& pair, bool to_server);
  void close(Pair& pair, bool abruptly);
  bool chance(uint64_t one_in) { return one_in != 0 && dice_.one_in(one_in); }

  const Intensity intensity_;
  simulation::Dice dice_;
  Fd poll_;
  Fd stop_;
  std::vector<Door> doors_;
  std::map<uint64_t, std::unique_ptr<Pair>> pairs_;
  std::multimap<Clock::time_point, uint64_t> alarms_;  // the times at which pairs have work
  std::vector<uint64_t> over_;                         // pairs to delete after this iteration
  uint64_t last_pair_ = 0;
  mutable std::mutex mutex_;  // guards counts_ and Door::leads_to
  ProxyCounts counts_;
  std::thread thread_;
};

}  // namespace holdfast::integration
