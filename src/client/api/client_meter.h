// Counts the work of one client, and passes each event to the user's hook.
#pragma once

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/stats.h"

namespace holdfast {

class ClientMeter {
 public:
  using OnEvent = std::function<void(const ClientEvent&)>;

  // `servers` are the names of the servers; the functions below name a server by its index. `on_event` may
  // be empty.
  ClientMeter(const std::vector<std::string>& servers, OnEvent on_event);

  // Any thread.
  ClientStats stats() const;

  // For the loop's thread only. They count, then call the hook; an exception of the hook has no effect.
  void record_attempts(uint64_t n);
  // `waited`: it did not end with its first attempt.
  void record_grant(std::string_view key, uint64_t token, microseconds took, bool waited);
  void record_no_grant(std::string_view key, Outcome outcome, microseconds took, bool waited);
  void record_renewal(std::string_view key, uint64_t token, Outcome outcome, microseconds took);
  void record_release(std::string_view key, uint64_t token, Outcome outcome, microseconds held);
  void record_loss(std::string_view key, uint64_t token, LossReason reason, microseconds held);
  // `in_queue`: the request could wait in the server's queue, so its duration is no round trip.
  void record_request(size_t server, bool answered, bool in_queue, microseconds took);
  // A connection to the server opened, or it broke or could not be opened.
  void record_connection(size_t server, bool open);

 private:
  void end_acquisition(microseconds took, bool waited);
  void report(const ClientEvent& event) const;

  const OnEvent on_event_;
  mutable std::mutex mutex_;  // guards stats_
  ClientStats stats_;
  std::vector<bool> broken_;  // by server: a connection broke, and none opened since
};

}  // namespace holdfast
