// A network that fails, between clients and servers: a TCP proxy in a thread of its own. By chance, and as
// often as its intensity says, it swallows what a server says, holds back bytes on their way, cuts
// connections in the middle of a message, and turns away who connects. One seed decides all choices, though
// not their timing. Bytes that it lets through stay in order: it behaves as TCP does.
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

// How often what happens; each to one of so many pieces that arrive, 0: never.
struct Intensity {
  uint64_t swallow_one_in = 0;  // this and all that follows on the connection, until it is cut
  uint64_t cut_one_in = 0;
  uint64_t delay_one_in = 0;
  uint64_t shut_one_in = 0;  // a server turns everybody away for a while: of connections that are opened
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
  // In front of so many servers, each of which has yet to be named.
  ChaosProxy(size_t servers, uint64_t seed, const Intensity& intensity);
  ~ChaosProxy();
  ChaosProxy(const ChaosProxy&) = delete;
  ChaosProxy& operator=(const ChaosProxy&) = delete;

  int port(size_t server) const { return doors_.at(server).port; }
  // Where new connections to it go from now on.
  void lead_to(size_t server, int port);
  ProxyCounts counts() const;

 private:
  // Bytes under way in one direction.
  struct Piece {
    Clock::time_point due;
    std::string bytes;
    bool last = false;  // then the connection is cut
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
  std::multimap<Clock::time_point, uint64_t> alarms_;  // when which pair has something to do
  std::vector<uint64_t> over_;                         // pairs to be forgotten after this turn
  uint64_t last_pair_ = 0;
  mutable std::mutex mutex_;  // guards counts_ and Door::leads_to
  ProxyCounts counts_;
  std::thread thread_;
};

}  // namespace holdfast::integration
