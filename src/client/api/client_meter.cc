#include "client/api/client_meter.h"

#include <array>
#include <utility>

namespace holdfast {
namespace {

using EventKind = ClientEvent::Kind;

uint64_t& counter_of(Losses& losses, LossReason reason) {
  switch (reason) {
    case LossReason::kUnreachable:
      return losses.unreachable;
    case LossReason::kRefused:
      return losses.refused;
    case LossReason::kExpired:
      return losses.expired;
    case LossReason::kNone:
    case LossReason::kGone:
      break;
  }
  return losses.gone;
}

}  // namespace

std::string_view name_of(LossReason reason) {
  constexpr std::array<std::string_view, 5> kNames{"none", "gone", "unreachable", "refused", "expired"};
  return kNames.at(static_cast<size_t>(reason));
}

std::string_view name_of(ClientEvent::Kind kind) {
  constexpr std::array<std::string_view, 10> kNames{
      "granted", "not granted", "renewed",   "renewal failed", "released",
      "lost",    "answer",      "no answer", "connected",      "connection lost"};
  return kNames.at(static_cast<size_t>(kind));
}

ClientMeter::ClientMeter(const std::vector<std::string>& servers, OnEvent on_event)
    : on_event_(std::move(on_event)), broken_(servers.size(), false) {
  for (const std::string& server : servers) stats_.servers.push_back({server, 0, 0, 0, 0, {}});
}

ClientStats ClientMeter::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void ClientMeter::report(const ClientEvent& event) const {
  if (!on_event_) return;
  try {
    on_event_(event);
  } catch (...) {  // the loop serves all locks of the client
  }
}

void ClientMeter::record_attempts(uint64_t n) {
  const std::lock_guard lock(mutex_);
  stats_.attempts += n;
}

void ClientMeter::end_acquisition(microseconds took, bool waited) {
  ++stats_.acquisitions;
  if (waited) stats_.waits.add(took);
}

void ClientMeter::record_grant(std::string_view key, uint64_t token, microseconds took, bool waited) {
  {
    const std::lock_guard lock(mutex_);
    end_acquisition(took, waited);
    ++stats_.grants;
  }
  report({EventKind::kGranted, key, token, took});
}

void ClientMeter::record_no_grant(std::string_view key, Outcome outcome, microseconds took, bool waited) {
  {
    const std::lock_guard lock(mutex_);
    end_acquisition(took, waited);
  }
  report({EventKind::kNotGranted, key, 0, took, {}, outcome});
}

void ClientMeter::record_renewal(std::string_view key, uint64_t token, Outcome outcome, microseconds took) {
  const bool ok = outcome == Outcome::kOk;
  {
    const std::lock_guard lock(mutex_);
    ++(ok ? stats_.renewals : stats_.failed_renewals);
  }
  report({ok ? EventKind::kRenewed : EventKind::kRenewalFailed, key, token, took, {}, outcome});
}

void ClientMeter::record_release(std::string_view key, uint64_t token, Outcome outcome, microseconds held) {
  {
    const std::lock_guard lock(mutex_);
    stats_.holds.add(held);
  }
  report({EventKind::kReleased, key, token, held, {}, outcome});
}

void ClientMeter::record_loss(std::string_view key, uint64_t token, LossReason reason, microseconds held) {
  {
    const std::lock_guard lock(mutex_);
    stats_.holds.add(held);
    ++counter_of(stats_.losses, reason);
  }
  report({EventKind::kLost, key, token, held, {}, Outcome::kExpired, reason});
}

void ClientMeter::record_request(size_t server, bool answered, bool in_queue, microseconds took) {
  ServerStats& stats = stats_.servers[server];
  {
    const std::lock_guard lock(mutex_);
    ++stats.requests;
    if (!answered) ++stats.failures;
    if (answered && !in_queue) stats.round_trips.add(took);
  }
  if (answered && in_queue) return;
  report({answered ? EventKind::kAnswer : EventKind::kNoAnswer, {}, 0, took, stats.server});
}

void ClientMeter::record_connection(size_t server, bool open) {
  ServerStats& stats = stats_.servers[server];
  if (open) {
    const std::lock_guard lock(mutex_);
    if (broken_[server] && stats.connections > 0) ++stats.reconnections;
    ++stats.connections;
  }
  broken_[server] = !open;
  report({open ? EventKind::kConnected : EventKind::kConnectionLost, {}, 0, microseconds(0), stats.server});
}

}  // namespace holdfast
