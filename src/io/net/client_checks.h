// The work of each second beside the requests: closes connections that were idle, or in their TLS
// handshake, for too long, or that take too much memory; logs when the memory limit is reached; gives freed
// memory back to the system.
#pragma once

#include <uv.h>

#include <cstdint>
#include <deque>
#include <utility>

#include "core/base/types.h"
#include "io/net/memory_upkeep.h"

namespace holdfast {

class Server;

class ClientChecks {
 public:
  ClientChecks(Server& server, uv_loop_t* loop);
  ClientChecks(const ClientChecks&) = delete;
  ClientChecks& operator=(const ClientChecks&) = delete;

  void start();
  // A client begins with a TLS handshake.
  void begin_handshake(ConnId id, TimeMs now) { handshakes_.emplace_back(id, now); }
  void end_iteration(TimeMs now);
  void close();

 private:
  static void on_second(uv_timer_t* timer) noexcept;
  void close_idle();
  void close_slow_handshakes();
  void close_excess();
  void log_memory_limit(uint64_t used);

  Server& server_;
  uv_timer_t timer_;
  MemoryUpkeep memory_upkeep_;
  // Connections that began with a TLS handshake, with the time of the start, in ascending order.
  std::deque<std::pair<ConnId, TimeMs>> handshakes_;
  bool memory_full_ = false;          // as logged
  uint64_t rejected_for_memory_ = 0;  // -OOM replies, as of the last check
};

}  // namespace holdfast
