#include "proxy/gateway.h"

#include <algorithm>
#include <utility>

#include "client/base/validity.h"
#include "proxy/call.h"
#include "proxy/commands.h"
#include "proxy/operations.h"

namespace holdfast::proxy {

using client::Loop;

namespace {

constexpr std::string_view kOneDatabase = "ERR holdfast-proxy serves database 0 only";

// Whether the request selects another database than the first one.
bool selects_another(const RemoteRequest& request) {
  return request.command == "select" && request.argv[1] != "0";
}

}  // namespace

Gateway::Gateway(Quorum& quorum, Shell shell, GatewayOptions options)
    : quorum_(quorum),
      shell_(std::move(shell)),
      options_(options),
      timer_(quorum.loop(), [this] { end_late_calls(); }),
      check_(quorum, shell_.log, [this] { begin_calls(); }) {}

Gateway::~Gateway() = default;

void Gateway::take(const RemoteLock& lock) {
  if (lock.db != 0) return add(make_error_call(*this, lock.conn, std::string(kOneDatabase)));
  add(make_lock_call(*this, lock));
}

std::string Gateway::refuse(std::string_view command, std::span<const std::string_view> argv,
                            bool on_copy) {
  depends_on_ttl_ = depends_on_ttl_ || depends_on_ttl(command, argv);
  return refuse_in_script(command, on_copy);
}

bool Gateway::take(const RemoteRequest& request) {
  const bool has_keys =
      request.transaction != nullptr ? has_key(*request.transaction) : !request.keys.empty();
  const How how = how_to_run(request.command, has_keys);
  if (selects_another(request) || (how != How::kHere && request.db != 0))
    return add(make_error_call(*this, request.conn, std::string(kOneDatabase))), true;
  switch (how) {
    case How::kHere:
      return false;
    case How::kOnCopy:
      return add(make_copy_call(*this, request)), true;
    case How::kRenew:
      return add(make_renew_call(*this, request)), true;
    case How::kUnlock:
      return add(make_unlock_call(*this, request)), true;
    case How::kRefused:
      break;
  }
  return add(make_error_call(*this, request.conn, refusal(request.command))), true;
}

void Gateway::add(std::shared_ptr<Call> call) {
  const uint64_t serial = call->conn().serial;
  const std::optional<DurationMs> limit = call->limit();
  const TimeMs deadline = limit ? client::saturating_add(Loop::now(), *limit) : kNever;
  if (deadline != kNever) deadlines_.emplace(deadline, serial);
  new_.push_back(call);
  calls_[serial] = {std::move(call), deadline};
  timer_.set(deadlines_.empty() ? kNever : deadlines_.begin()->first);
}

// Requests wait until the servers are known: a server that is named twice must not be two votes.
void Gateway::begin_calls() {
  if (closed_ || !check_.is_known()) return;
  while (!new_.empty()) {
    const std::shared_ptr<Call> call = std::move(new_.front());
    new_.pop_front();
    const auto known = calls_.find(call->conn().serial);
    if (known == calls_.end() || known->second.call != call) continue;  // it is over
    check_.refusal().empty() ? call->begin() : call->fail(check_.refusal());
  }
}

std::shared_ptr<Call> Gateway::forget(uint64_t serial) {
  const auto found = calls_.find(serial);
  if (found == calls_.end()) return nullptr;
  deadlines_.erase({found->second.deadline, serial});
  std::shared_ptr<Call> call = std::move(found->second.call);
  calls_.erase(found);
  return call;
}

void Gateway::answer(ConnId conn, std::string_view reply) {
  const std::shared_ptr<Call> call = forget(conn.serial);
  if (closed_ || call == nullptr) return;
  shell_.engine().answer_remote(conn, reply, shell_.now(), shell_.effects());
}

// A round to the servers has a shorter limit. This one ends requests that need several rounds, one after
// the other.
void Gateway::end_late_calls() {
  while (!deadlines_.empty() && is_due(deadlines_.begin()->first, Loop::now())) {
    const std::shared_ptr<Call> call = calls_.at(deadlines_.begin()->second).call;
    call->fail("UNAVAILABLE no majority of " + std::to_string(quorum_.size()) + " servers decided within " +
               std::to_string(call_limit().count) + " ms");
    call->drop();
  }
  timer_.set(deadlines_.empty() ? kNever : deadlines_.begin()->first);
}

RemoteOutcome Gateway::run(ConnId conn, std::span<const std::string_view> argv, const RemoteKey& copy,
                           bool& depends_on_ttl) {
  depends_on_ttl_ = false;
  RemoteOutcome outcome = shell_.engine().run_remote(conn, argv, copy, shell_.now(), shell_.effects());
  depends_on_ttl = depends_on_ttl_;
  return outcome;
}

void Gateway::drop(ConnId conn) {
  for (const auto& [key, owner] : sessions_.take(conn.serial))
    release_hold(*this, key, owner, [](Verdict, const Silence&) {});
  if (const std::shared_ptr<Call> call = forget(conn.serial)) call->drop();
}

// As TCP's smoothed round-trip time, but a longer one counts at once: too short a time costs a client
// another round.
void Gateway::record_round(client::DurationUs took) {
  constexpr int64_t kShare = 8;
  const int64_t us = std::min(took, client::us_of(quorum_.timeout())).count;
  round_us_ = std::max(us, round_us_ + (us - round_us_) / kShare);
}

void Gateway::close() {
  closed_ = true;
  const auto calls = std::exchange(calls_, {});
  deadlines_.clear();
  new_.clear();
  for (const auto& [serial, taken] : calls) taken.call->drop();
}

}  // namespace holdfast::proxy
