#include "client/algorithm/pulse.h"

#include <algorithm>

namespace holdfast::client {

namespace {

// Until a round-trip time is known, the silence of a server means less.
constexpr DurationUs kFirstSilence{250'000};

}  // namespace

uint64_t Pulse::open(TimeUs now) {
  opened_ = now;
  return ++newest_;
}

void Pulse::sent(TimeUs now) {
  last_sent_ = std::max(last_sent_, now);
  if (silent_since_ == kNeverUs) silent_since_ = now;
}

bool Pulse::answered(uint64_t connection, TimeUs sent, TimeUs now) {
  if (connection < answering_) return false;
  if (connection > answering_) {
    answering_ = connection;
    pair_.reset();
  }
  if (sent > sampled_sent_) {
    sampled_sent_ = sent;
    samples_.at(sampled_++ % kSamples) = now - sent;
  }
  heard_ = std::max(heard_, sent);
  // Later requests may be unanswered: the oldest of them is not known, the newest one is.
  if (silent_since_ <= heard_) silent_since_ = last_sent_ > heard_ ? last_sent_ : kNeverUs;
  return true;
}

void Pulse::record_time(TimeUs sent, TimeMs server) {
  if (!pair_ || sent >= pair_->client) pair_ = {sent, server};
  record_time(server);
}

void Pulse::record_time(TimeMs server) {
  if (!server_time_ || server > *server_time_) server_time_ = server;
}

// The machine may have restarted, too: then its clock began again.
bool Pulse::record_run(std::string_view run_id) {
  if (run_id == run_id_) return false;
  const bool restarted = !run_id_.empty();
  run_id_ = run_id;
  if (restarted) {
    pair_.reset();
    server_time_.reset();
  }
  return restarted;
}

TimeUs Pulse::open_at(DurationUs patience) const {
  if (silent_since_ == kNeverUs) return kNeverUs;
  return std::max(silent_since_, opened_) + std::max(pause(), patience);
}

// The silence after which a further connection is opened. It doubles after every 16 connections without an
// answer, up to the interval of heartbeats. Not sooner: each interruption of a second would then last
// longer.
DurationUs Pulse::pause() const {
  const std::optional<DurationUs> trip = rtt();
  const DurationUs first =
      trip ? std::max(times_.silence, *trip * 3) : std::max(times_.silence, kFirstSilence);
  const uint64_t doubled = std::min<uint64_t>((newest_ - answering_) / kQuickConnections, 16);
  return std::max(first, std::min(first * (int64_t{1} << doubled), times_.heartbeat));
}

std::optional<DurationUs> Pulse::rtt() const {
  if (sampled_ == 0) return std::nullopt;
  const auto end = samples_.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(sampled_, kSamples));
  return *std::min_element(samples_.begin(), end);
}

}  // namespace holdfast::client
