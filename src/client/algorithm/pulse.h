// What a client knows about its link to one server: when the server has answered, how long an answer takes,
// and so whether the server is live, and when to send a heartbeat or to open a further connection (rule
// C8). One Pulse for each server, for all waits of the client. It owns no connection: its driver opens
// them, sends the requests, and reports both here.
//
// TCP repeats a lost packet after 200 ms and more, and the packet that opens a connection after 1 s. Most
// interruptions are shorter. So a server that is silent for a while gets a second connection beside the
// first one, then a third. Requests go over the newest connection. As soon as a connection has answered,
// the older ones are closed, and what they still deliver is ignored. If none answers, the pauses grow: the
// server may be overloaded, or so far away now that no connection has had the time to answer.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/base/time_us.h"

namespace holdfast::client {

// The timers of the algorithm. The longer ones of a link with long delays follow from its round-trip time.
struct TicketTimes {
  DurationUs vote{1'000'000};       // V: the life of a vote, at most half of the TTL
  DurationUs live{80'000};          // X: a server is live if it has answered a request sent at most X ago
  DurationUs silence{50'000};       // P: after this silence a further connection is opened
  DurationUs heartbeat{300'000};    // R
  DurationUs confirm{10'000};       // from the acquisition to the confirmation of its votes
  DurationUs return_first{50'000};  // pause before the return from parking: doubles with each parking,
  DurationUs return_most{400'000};  // up to this
};

class Pulse {
 public:
  explicit Pulse(const TicketTimes& times = {}) : times_(times) {}

  // --- reports of the driver ---

  // A new connection is being opened. Requests go over it from now on. Returns its number, from 1.
  uint64_t open(TimeUs now);
  // The connection took a request that will be answered.
  void sent(TimeUs now);
  // The connection has answered a request that was sent at that time. Returns false if the answer must be
  // ignored, because a newer connection has answered before.
  bool answered(uint64_t connection, TimeUs sent, TimeUs now);
  // Whether a push of that connection counts; the same rule.
  bool accepts(uint64_t connection) const { return connection >= answering_; }
  // The answer to a request that was sent at `sent` had the server's time. Call it after answered().
  void record_time(TimeUs sent, TimeMs server);
  // A push had the server's time.
  void record_time(TimeMs server);
  // The answer to a heartbeat had the server's run id. Returns true if the server has restarted since the
  // last one: its queues are empty.
  bool record_run(std::string_view run_id);
  // A heartbeat, or a wait that serves as one, was sent.
  void record_heartbeat(TimeUs now) { beat_ = now; }

  // --- what the driver has to do ---

  // The connection for requests; 0: none was opened.
  uint64_t newest() const { return newest_; }
  // All connections before this one must be closed.
  uint64_t answering() const { return answering_; }
  // When to open a further connection; kNeverUs while nothing is unanswered. `patience`: at least so long
  // after the last one.
  TimeUs open_at(DurationUs patience = {0}) const;
  // When to send a heartbeat, if one is needed so often.
  TimeUs heartbeat_at(DurationUs every) const { return every >= kForeverUs ? kNeverUs : beat_ + every; }

  // --- for the waits ---

  // The time at which the newest of the answered requests was sent; kLongAgoUs: nothing was answered.
  TimeUs heard() const { return heard_; }
  // The shortest time of the last 8 answers; nullopt before the first one.
  std::optional<DurationUs> rtt() const;
  // Whether the oldest unanswered request is older than this.
  bool is_silent(TimeUs now, DurationUs span) const {
    return silent_since_ != kNeverUs && now - silent_since_ > span;
  }
  // The newest time that the server has told, to be told back.
  std::optional<TimeMs> server_time() const { return server_time_; }
  // A time of the client, and the server's time at or after it: the newest such pair of this connection.
  struct Pair {
    TimeUs client;
    TimeMs server;
  };
  const std::optional<Pair>& pair() const { return pair_; }

 private:
  static constexpr size_t kSamples = 8;
  static constexpr uint64_t kQuickConnections = 16;  // without an answer; then the pause doubles

  DurationUs pause() const;

  TicketTimes times_;
  uint64_t newest_ = 0;
  uint64_t answering_ = 0;
  TimeUs opened_ = kLongAgoUs;  // the newest connection
  TimeUs last_sent_ = kLongAgoUs;
  TimeUs heard_ = kLongAgoUs;
  TimeUs silent_since_ = kNeverUs;  // the oldest unanswered request was sent then, as far as known
  TimeUs beat_ = kLongAgoUs;
  std::array<DurationUs, kSamples> samples_{};
  uint64_t sampled_ = 0;              // number of samples ever
  TimeUs sampled_sent_ = kLongAgoUs;  // one sample for each moment of sending
  std::optional<TimeMs> server_time_;
  std::optional<Pair> pair_;
  std::string run_id_;
};

// The pulses of a lock's servers, in the order of the servers. They must outlive this object.
class Pulses {
 public:
  Pulses(std::span<const Pulse> all) {
    for (const Pulse& pulse : all) all_.push_back(&pulse);
  }
  explicit Pulses(std::vector<const Pulse*> all) : all_(std::move(all)) {}

  size_t size() const { return all_.size(); }
  const Pulse& operator[](size_t server) const { return *all_[server]; }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<const Pulse*> all_;
};

}  // namespace holdfast::client
