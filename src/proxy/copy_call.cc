// A request that runs on a copy of its key: read the key from the servers, run the request in the engine,
// and make its change on the servers if the key is still the same there. If it is not, read again.
#include <algorithm>
#include <set>
#include <utility>

#include "core/command/command.h"
#include "core/state/conn.h"
#include "proxy/acquiring.h"
#include "proxy/call.h"
#include "proxy/commands.h"
#include "proxy/gateway.h"
#include "proxy/operations.h"
#include "proxy/owner_name.h"

namespace holdfast::proxy {

namespace {

constexpr std::string_view kSeveralKeys =
    "ERR holdfast-proxy runs a request on one key; send one request for each key";

class CopyCall final : public Call {
 public:
  CopyCall(Gateway& gateway, const RemoteRequest& request, std::string key)
      : Call(gateway, request.conn),
        argv_(request.argv.begin(), request.argv.end()),
        transaction_(request.command == "exec"),
        creates_(only_creates(request)) {
    copy_.name = std::move(key);
  }

  void begin() override {
    begun_ = client::Loop::time_us();
    if (transaction_) return read();  // it can run once only
    if (const OwnHold* own = gateway_.own().find(copy_.name, client::Loop::now())) return assume(*own);
    if (creates_) return run({}, true);
    read();
  }

  void drop() override {
    Call::drop();
    if (const auto acquiring = std::exchange(acquiring_, nullptr)) acquiring->cancel();
  }

 private:
  std::shared_ptr<CopyCall> self() { return std::static_pointer_cast<CopyCall>(shared_from_this()); }

  // Whether the request does something only if the key is free, so that the proxy assumes that.
  static bool only_creates(const RemoteRequest& request) {
    if (request.command == "setnx") return true;
    if (request.command != "set") return false;
    return std::ranges::any_of(request.argv.subspan(3),
                               [](std::string_view word) { return equals_ignore_case(word, "nx"); });
  }

  // Runs the request as if the hold that the proxy remembers were still there.
  void assume(const OwnHold& own) {
    const DurationMs left = own.end - client::Loop::now();
    hold_ = {own.owner, own.token, "exclusive", std::nullopt, {}};
    copy_.exists = true;
    copy_.value = own.value;
    copy_.deadline = own.ttl ? gateway_.shell().now().mono + std::min(left, *own.ttl) : kNever;
    run_copy(true);
  }

  void read() {
    read_key(gateway_, copy_.name, [call = self()](const KeyState& state, const Silence& silence) {
      if (!call->dropped()) call->run_on(state, silence);
    });
  }

  void run_on(const KeyState& state, const Silence& silence) {
    if (state.kind == KeyState::Kind::kUndecided) return fail_unavailable(silence);
    if (state.kind == KeyState::Kind::kFree)
      return was_busy_ && state.delayed ? run_delayed() : run({}, false);
    const bool other = state.kind == KeyState::Kind::kOtherType || state.holds.front().mode != "exclusive";
    if (other) return fail("WRONGTYPE Operation against a key holding the wrong kind of value");
    const QuorumHold& hold = state.holds.front();
    if (is_attempt_of(hold.owner, tried_)) return again();  // its release is under way
    run(hold, false);
  }

  // The key has no holder, and nobody can acquire it.
  void run_delayed() {
    copy_.exists = true;
    copy_.value.clear();
    copy_.deadline = kNever;
    bool depends_on_ttl = false;
    if (!creates_) return fail("UNAVAILABLE the lock-delay of the key is not over; retry");
    answer(gateway_.run(conn(), words(), copy_, depends_on_ttl).reply);
  }

  // `hold`: without an owner if the key is free.
  void run(QuorumHold hold, bool assumed) {
    hold_ = std::move(hold);
    copy_.exists = !hold_.owner.empty();
    copy_.value = value_in(hold_.owner);
    copy_.deadline = kNever;
    const bool untimed = !hold_.left || (*hold_.left > gateway_.longest_ttl() && is_of_proxy(hold_.owner));
    if (!untimed) copy_.deadline = gateway_.shell().now().mono + ttl_of(hold_);
    run_copy(assumed);
  }

  // If this proxy has set the TTL last, it is not longer than the client has asked for: the servers have a
  // longer one.
  DurationMs ttl_of(const QuorumHold& hold) {
    const DurationMs left = client_ttl(gateway_, *hold.left);
    const TimeMs now = client::Loop::now();
    const OwnHold* own = gateway_.own().find(copy_.name, hold.owner, now);
    const bool ours = own != nullptr && own->ttl && left <= own->end - now;
    return ours ? std::min(left, *own->ttl) : left;
  }

  std::vector<std::string_view> words() const { return {argv_.begin(), argv_.end()}; }

  void run_copy(bool assumed) {
    bool depends_on_ttl = false;
    outcome_ = gateway_.run(conn(), words(), copy_, depends_on_ttl);
    if (assumed && (outcome_.after == copy_ || depends_on_ttl)) return read();
    if (outcome_.after == copy_) return answer(outcome_.reply);
    if (outcome_.after.value.size() > kMostValueBytes) return fail(long_value_error());
    const std::string refused = refuse_ttl(gateway_, ttl_after());
    refused.empty() ? make_change() : fail(refused);
  }

  std::optional<DurationMs> ttl_after() const {
    if (!outcome_.after.exists || outcome_.after.deadline == kNever) return std::nullopt;
    return outcome_.after.deadline - gateway_.shell().now().mono;
  }

  void make_change() {
    const auto changed = [call = self()](Verdict verdict, const Silence& silence) {
      call->end_change(verdict, silence);
    };
    if (!copy_.exists) return acquire();
    if (!outcome_.after.exists) return release_hold(gateway_, copy_.name, hold_.owner, changed);
    const HoldName hold{copy_.name, copy_.value, hold_.owner, hold_.token};
    if (outcome_.after.value == copy_.value) return renew_hold(gateway_, hold, {ttl_after()}, changed);
    replace_hold(gateway_, hold, outcome_.after.value, ttl_after(), changed);
  }

  void acquire() {
    Acquiring::Wish wish;
    wish.key = copy_.name;
    wish.value = outcome_.after.value;
    wish.ttl = ttl_after();
    acquiring_ = std::make_shared<Acquiring>(gateway_, std::move(wish), nullptr,
                                             [call = self()](Acquiring::Result r) { call->acquired(r); });
    tried_ = acquiring_->slot();
    acquiring_->begin();
  }

  void acquired(Acquiring::Result result) {
    const auto acquiring = std::exchange(acquiring_, nullptr);
    if (dropped()) return;
    if (result == Acquiring::Result::kHeld) return answer(outcome_.reply);
    if (result == Acquiring::Result::kFailed)
      return fail_unavailable(silence_of(gateway_.quorum(), acquiring->status()));
    was_busy_ = true;
    again();
  }

  void end_change(Verdict verdict, const Silence& silence) {
    if (dropped()) return;
    if (verdict == Verdict::kYes) return answer(outcome_.reply);
    if (verdict == Verdict::kUnknown) return fail_unavailable(silence);
    again();
  }

  // The key was not as the copy.
  void again() {
    const bool late =
        client::is_due(begun_ + client::us_of(gateway_.quorum().timeout()), client::Loop::time_us());
    if (transaction_) return fail("UNAVAILABLE another client changed the key; repeat the transaction");
    if (late) return fail("UNAVAILABLE other clients change the key all the time; retry");
    read();
  }

  const std::vector<std::string> argv_;
  const bool transaction_;
  const bool creates_;
  client::TimeUs begun_;
  RemoteKey copy_;
  QuorumHold hold_;  // of the copy
  RemoteOutcome outcome_;
  std::shared_ptr<Acquiring> acquiring_;
  std::string tried_;      // the slot of the last acquisition
  bool was_busy_ = false;  // it found the key held
};

// The keys of a transaction, each once.
std::set<std::string> keys_of(const QueuedRequests& requests) {
  std::set<std::string> keys;
  requests.for_each([&](std::span<const std::string_view> argv) {
    const Command* command = find_row(argv);
    if (command == nullptr) return;
    for (const size_t at : key_positions(*command, argv).value_or(std::vector<size_t>{}))
      keys.emplace(argv[at]);
  });
  return keys;
}

}  // namespace

bool has_key(const QueuedRequests& requests) { return !keys_of(requests).empty(); }

std::shared_ptr<Call> make_copy_call(Gateway& gateway, const RemoteRequest& request) {
  std::string key;
  if (request.transaction != nullptr) {
    const std::set<std::string> keys = keys_of(*request.transaction);
    if (keys.size() > 1) return make_error_call(gateway, request.conn, std::string(kSeveralKeys));
    key = *keys.begin();
  } else {
    key = request.keys.front();
    const bool several = std::ranges::any_of(request.keys, [&](std::string_view k) { return k != key; });
    if (several) return make_error_call(gateway, request.conn, std::string(kSeveralKeys));
  }
  return std::make_shared<CopyCall>(gateway, request, std::move(key));
}

}  // namespace holdfast::proxy
