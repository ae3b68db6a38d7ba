// Leases of the C++ library on a user's own store, which is not atomic and can fail at every step.
#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/algorithm/lease_core.h"
#include "holdfast/lease.h"
#include "memory_store.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Failure = MemoryStore::Failure;
using State = Lease::State;
using Verdict = LeaseStore::Verdict;
using Keys = std::vector<std::string>;

constexpr Failure kFailures[] = {Failure::kReportsBefore, Failure::kReportsAfter, Failure::kThrowsBefore,
                                 Failure::kThrowsAfter};
const std::vector<Document> kThree{{"a", "1"}, {"b", "2"}, {"c", "3"}};

bool all_for_ever(const MemoryStore& store) {
  for (const auto& [key, stored] : store.stored()) {
    if (stored.ttl) return false;
  }
  return store.of_leases() == 3;
}

std::string text_of(const std::exception_ptr& cause) {
  REQUIRE(cause);
  try {
    std::rethrow_exception(cause);
  } catch (const std::exception& e) {
    return e.what();
  }
}

Lease granted(const LeaseBackend& place) {
  auto core = std::make_unique<LeaseCore>(place, kThree, 1000ms);
  REQUIRE(core->grant().ok());
  return Lease(std::move(core));
}

// A lease with a clock that the test sets.
struct Timed {
  MemoryStore store;
  TimeMs now{1000};
  Lease lease = granted(LeaseBackend{std::shared_ptr<LeaseStore>(std::shared_ptr<LeaseStore>(), &store),
                                     nullptr, [this] { return now; }});
  static constexpr TimeMs kEnd{1988};  // 1 % and 2 ms before
};

// A store with a fixed answer, like one that keeps lease outcomes.
class FixedAnswers final : public LeaseStore {
 public:
  Answer inserts{Verdict::kDone, 7, {}};
  Answer touches{Verdict::kDone, 0, {}};
  Answer removes{Verdict::kDone, 0, {}};
  bool is_short = false;
  std::function<void()> on_touch = [] {};

 private:
  std::vector<Answer> repeated(size_t n, const Answer& answer) const {
    return std::vector<Answer>(is_short ? n - 1 : n, answer);
  }
  std::vector<Answer> insert(const std::string&, const std::vector<Document>& d, milliseconds) override {
    return repeated(d.size(), inserts);
  }
  std::vector<Answer> touch(const std::string&, const std::vector<Document>& d,
                            std::optional<milliseconds>) override {
    on_touch();
    return repeated(d.size(), touches);
  }
  std::vector<Answer> remove(const std::string&, const std::vector<Document>& d) override {
    return repeated(d.size(), removes);
  }
};

}  // namespace

TEST_CASE("lease: confirmed documents have no expiry, and the returned etags are theirs") {
  MemoryStore store;
  {
    Lease lease = Leases(store).lease(kThree).value();
    CHECK(lease.is_granted());
    CHECK(lease.validity() > 4s);
    CHECK(lease.validity() <= Leases::kDefaultTtl);
    CHECK(store.stored().at("a").ttl == 5000ms);
    CHECK(lease.confirm().value() == std::vector<uint64_t>{1, 2, 3});
    CHECK(lease.is_confirmed());
    CHECK_FALSE(lease.is_granted());
    CHECK(lease.validity() == 0ms);
    CHECK(lease.documents().at(1).etag == 2);
    CHECK(lease.confirm().outcome == Outcome::kLeaseConfirmed);
    CHECK(lease.renew().outcome == Outcome::kLeaseConfirmed);
    CHECK(lease.cancel().outcome == Outcome::kLeaseConfirmed);
  }
  CHECK(all_for_ever(store));
}

TEST_CASE("lease: a cancel removes the documents and ends the lease") {
  MemoryStore store;
  Lease lease = Leases(store).lease(kThree).value();
  CHECK(lease.cancel().ok());
  CHECK(lease.is_cancelled());
  CHECK(store.stored().empty());
  CHECK(lease.cancel().outcome == Outcome::kLeaseCancelled);
  CHECK(lease.confirm().outcome == Outcome::kLeaseCancelled);
  CHECK(lease.renew().outcome == Outcome::kLeaseCancelled);
}

TEST_CASE("lease: a lease destroyed or replaced before its confirm is cancelled") {
  MemoryStore store;
  Lease lease = Leases(store).lease(kThree).value();
  lease = Leases(store).lease({{"d", ""}}).value();
  CHECK(store.of_leases() == 1);
  const Lease moved = std::move(lease);
  CHECK(moved.is_granted());
  CHECK_THROWS_AS(static_cast<void>(lease.state()), std::logic_error);  // NOLINT(bugprone-use-after-move)
  CHECK(Leases(store).lease({{"d", ""}}).outcome == Outcome::kBusy);
}

TEST_CASE("lease: a collision returns all keys in its way, and leaves no document of its own") {
  MemoryStore store;
  store.put("a");
  store.put("c");
  const Result<Lease> lease = Leases(store).lease(kThree);
  CHECK(lease.outcome == Outcome::kBusy);
  CHECK(lease.keys == Keys{"a", "c"});
  CHECK(lease.message == "2 keys are not free, first a");
  CHECK_FALSE(lease.cause);
  CHECK(store.stored().size() == 2);
  CHECK(store.stored().at("a").value == "foreign");
}

TEST_CASE("lease: documents that a collision could not remove expire, and are reported") {
  MemoryStore store;
  store.put("c");
  store.fail_at(3, Failure::kThrowsBefore, 100);
  const Result<Lease> lease = Leases(store).lease(kThree);
  CHECK(lease.outcome == Outcome::kBusy);
  CHECK(lease.keys == Keys{"c"});
  CHECK(text_of(lease.cause) == "no disk");
  CHECK(store.of_leases() == 2);
  CHECK(store.stored().at("a").ttl.has_value());
}

TEST_CASE("lease: a store that fails at any step of a grant keeps no document") {
  for (const Failure how : kFailures) {
    for (int64_t step = 0; step < 3; ++step) {
      CAPTURE(step);
      CAPTURE(static_cast<int>(how));
      MemoryStore store;
      store.fail_at(step, how);
      const Result<Lease> lease = Leases(store).lease(kThree);
      CHECK(lease.outcome == Outcome::kUnreachable);
      CHECK(text_of(lease.cause) == "no disk");
      CHECK(lease.message == "the store failed: no disk; no document is leased");
      CHECK(store.stored().empty());
    }
  }
}

TEST_CASE("lease: where a remove throws, the other documents are removed as well") {
  for (int64_t step = 0; step < 3; ++step) {
    MemoryStore store;
    Lease lease = Leases(store).lease(kThree).value();
    store.fail_at(step, Failure::kThrowsBefore);
    CHECK(lease.cancel().ok());
    CHECK(lease.is_cancelled());
    CHECK(store.stored().empty());
  }
}

TEST_CASE("lease: a cancel that fails is in doubt, and may be retried") {
  MemoryStore store;
  Lease lease = Leases(store).lease(kThree).value();
  store.fail_at(1, Failure::kReportsBefore);
  CHECK(lease.cancel().outcome == Outcome::kUnreachable);
  CHECK(lease.state() == State::kInDoubt);
  CHECK(store.of_leases() == 1);
  CHECK(lease.confirm().outcome == Outcome::kLeaseCancelled);
  CHECK(lease.renew().outcome == Outcome::kLeaseCancelled);
  CHECK(lease.cancel().ok());
  CHECK(lease.is_cancelled());
  CHECK(store.stored().empty());
}

TEST_CASE("lease: a confirm that fails at any step is in doubt; a retry succeeds, or it is cancelled") {
  for (const Failure how : kFailures) {
    for (int64_t step = 0; step < 3; ++step) {
      for (const bool again : {true, false}) {
        MemoryStore store;
        Lease lease = Leases(store).lease(kThree).value();
        store.fail_at(step, how);
        CHECK(lease.confirm().outcome == Outcome::kUnreachable);
        CHECK(lease.state() == State::kInDoubt);
        CHECK(lease.renew().outcome == Outcome::kUnreachable);
        if (again) {
          CHECK(lease.confirm()->size() == 3);
          CHECK(all_for_ever(store));
        } else {
          CHECK(lease.cancel().ok());
          CHECK(store.stored().empty());
        }
      }
    }
  }
}

TEST_CASE("lease: destroyed while a confirm is in doubt, it leaves no document without expiry") {
  MemoryStore store;
  {
    Lease lease = Leases(store).lease(kThree).value();
    store.fail_at(2, Failure::kThrowsAfter);
    CHECK(lease.confirm().outcome == Outcome::kUnreachable);
    CHECK(all_for_ever(store));
  }
  CHECK(store.stored().empty());
}

TEST_CASE("lease: a document that is missing or another's ends the lease, and the others are removed") {
  for (const bool renewing : {true, false}) {
    for (const bool overwritten : {true, false}) {
      MemoryStore store;
      Lease lease = Leases(store).lease(kThree).value();
      overwritten ? store.put("b") : store.lose("b");
      if (renewing) {
        CHECK(lease.renew().outcome == Outcome::kExpired);
      } else {
        CHECK(lease.confirm().outcome == Outcome::kExpired);
      }
      CHECK(lease.is_expired());
      CHECK(store.of_leases() == 0);
      CHECK(store.stored().contains("b") == overwritten);
      CHECK(lease.confirm().outcome == Outcome::kExpired);
      CHECK(lease.renew().outcome == Outcome::kExpired);
      CHECK(lease.cancel().ok());
      CHECK(lease.is_expired());
    }
  }
}

TEST_CASE("lease: a confirm that loses one document and cannot remove another reports it") {
  MemoryStore store;
  Lease lease = Leases(store).lease(kThree).value();
  store.lose("b");
  store.fail_at(3, Failure::kReportsBefore);
  CHECK(lease.confirm().outcome == Outcome::kUnreachable);
  CHECK(lease.state() == State::kInDoubt);
  CHECK_FALSE(store.stored().at("a").ttl.has_value());
  CHECK(lease.confirm().outcome == Outcome::kLeaseCancelled);
  CHECK(lease.cancel().ok());
  CHECK(lease.is_cancelled());
  CHECK(store.stored().empty());
}

TEST_CASE("lease: it expires by its clock before the store's ttl, and then for good") {
  Timed timed;
  Lease& lease = timed.lease;
  timed.now = {TimeMs{Timed::kEnd.count - 1}};
  CHECK(lease.is_granted());
  CHECK(lease.validity() == 1ms);
  timed.now = Timed::kEnd;
  CHECK(lease.is_expired());
  CHECK(lease.validity() == 0ms);
  SUBCASE("confirm") { CHECK(lease.confirm().outcome == Outcome::kExpired); }
  SUBCASE("renew") { CHECK(lease.renew().outcome == Outcome::kExpired); }
  SUBCASE("cancel") { CHECK(lease.cancel().ok()); }
  CHECK(lease.is_expired());
  CHECK(timed.store.stored().empty());
}

TEST_CASE("lease: a renewal starts the time again, with the ttl last given") {
  Timed timed;
  timed.now = {1500};
  CHECK(timed.lease.renew().ok());
  CHECK(timed.lease.validity() == 988ms);
  CHECK(timed.lease.renew(3000ms).ok());
  CHECK(timed.lease.validity() == 2968ms);
  CHECK(timed.store.stored().at("c").ttl == 3000ms);
  timed.now = {2000};
  CHECK(timed.lease.renew().ok());
  CHECK(timed.lease.validity() == 2968ms);
}

TEST_CASE("lease: a renewal that fails leaves the shorter of both times") {
  Timed timed;
  timed.store.fail_at(0, Failure::kThrowsBefore);
  CHECK(timed.lease.renew(5000ms).outcome == Outcome::kUnreachable);
  CHECK(timed.lease.validity() == 988ms);
  timed.store.fail_at(2, Failure::kReportsAfter);
  CHECK(timed.lease.renew(500ms).outcome == Outcome::kUnreachable);
  CHECK(timed.lease.validity() == 493ms);
  CHECK(timed.lease.is_granted());
  CHECK(timed.lease.renew().ok());
  CHECK(timed.lease.validity() == 988ms);
}

TEST_CASE("lease: a confirm in doubt does not expire by time alone, a cancel does") {
  Timed timed;
  timed.store.fail_at(0, Failure::kThrowsBefore);
  SUBCASE("confirm") {
    CHECK(timed.lease.confirm().outcome == Outcome::kUnreachable);
    timed.now = {100000};
    CHECK(timed.lease.state() == State::kInDoubt);
    timed.store.lose("a");
    timed.store.lose("b");
    CHECK(timed.lease.confirm().outcome == Outcome::kExpired);
    CHECK(timed.store.stored().empty());
  }
  SUBCASE("cancel") {
    timed.store.fail_at(0, Failure::kThrowsBefore, 100);
    CHECK(timed.lease.cancel().outcome == Outcome::kUnreachable);
    timed.now = {100000};
    CHECK(timed.lease.is_expired());
  }
}

TEST_CASE("lease: a late reply to a renewal does not revive a lease that was reported as over") {
  FixedAnswers store;
  TimeMs now{1000};
  const std::shared_ptr<LeaseStore> place(std::shared_ptr<LeaseStore>(), &store);
  Lease lease = granted(LeaseBackend{place, nullptr, [&] { return now; }});
  store.on_touch = [&] { now = {1988}; };
  CHECK(lease.renew(60s).outcome == Outcome::kExpired);
  CHECK(lease.is_expired());
}

TEST_CASE("lease: a grant with a late reply is no grant") {
  MemoryStore store;
  TimeMs now{1000};
  const std::shared_ptr<LeaseStore> place(std::shared_ptr<LeaseStore>(), &store);
  const LeaseBackend late{place, nullptr, [&] {
                            now = now + DurationMs{988};
                            return now;
                          }};
  CHECK(LeaseCore(late, kThree, 1000ms).grant().outcome == Outcome::kExpired);
  CHECK(store.stored().empty());
}

TEST_CASE("lease: stores that keep outcomes return how another client ended a lease") {
  FixedAnswers store;
  Lease lease = Leases(store).lease(kThree).value();
  SUBCASE("confirmed") {
    store.touches.verdict = store.removes.verdict = Verdict::kConfirmed;
    SUBCASE("confirm") { CHECK(lease.confirm().outcome == Outcome::kLeaseConfirmed); }
    SUBCASE("renew") { CHECK(lease.renew().outcome == Outcome::kLeaseConfirmed); }
    SUBCASE("cancel") { CHECK(lease.cancel().outcome == Outcome::kLeaseConfirmed); }
    CHECK(lease.is_confirmed());
  }
  SUBCASE("cancelled") {
    store.touches.verdict = store.removes.verdict = Verdict::kCancelled;
    SUBCASE("confirm") { CHECK(lease.confirm().outcome == Outcome::kLeaseCancelled); }
    SUBCASE("renew") { CHECK(lease.renew().outcome == Outcome::kLeaseCancelled); }
    SUBCASE("cancel") { CHECK(lease.cancel().outcome == Outcome::kLeaseCancelled); }
    CHECK(lease.is_cancelled());
  }
  SUBCASE("forgotten") {
    store.touches.verdict = store.removes.verdict = Verdict::kForgotten;
    SUBCASE("confirm") { CHECK(lease.confirm().outcome == Outcome::kExpired); }
    SUBCASE("renew") { CHECK(lease.renew().outcome == Outcome::kExpired); }
    CHECK((lease.is_expired() || lease.is_granted()));
  }
}

TEST_CASE(
    "lease: 'confirmed' and 'cancelled' are success for a repeated request, 'forgotten' is no reply") {
  FixedAnswers store;
  Lease lease = Leases(store).lease(kThree).value();
  SUBCASE("confirm") {
    store.touches.verdict = Verdict::kFailed;
    CHECK(lease.confirm().outcome == Outcome::kUnreachable);
    store.touches.verdict = store.removes.verdict = Verdict::kForgotten;
    CHECK(lease.confirm().outcome == Outcome::kUnreachable);
    CHECK(lease.state() == State::kInDoubt);
    store.touches.verdict = Verdict::kConfirmed;
    CHECK(lease.confirm().value() == std::vector<uint64_t>{7, 7, 7});
    CHECK(lease.is_confirmed());
  }
  SUBCASE("cancel") {
    store.removes.verdict = Verdict::kFailed;
    CHECK(lease.cancel().outcome == Outcome::kUnreachable);
    store.removes.verdict = Verdict::kCancelled;
    CHECK(lease.cancel().ok());
    CHECK(lease.is_cancelled());
  }
}

TEST_CASE("lease: impossible replies are a failure of the store") {
  FixedAnswers store;
  const auto refused = [&] { CHECK(Leases(store).lease(kThree).outcome == Outcome::kUnreachable); };
  SUBCASE("no etag") { store.inserts.etag = 0; }
  SUBCASE("missing") { store.inserts.verdict = Verdict::kMissing; }
  SUBCASE("all are skipped") { store.inserts.verdict = Verdict::kSkipped; }
  SUBCASE("too few") { store.is_short = true; }
  refused();
  store.inserts = {Verdict::kDone, 7, {}};
  store.is_short = false;
  store.touches.verdict = Verdict::kExists;
  CHECK(Leases(store).lease(kThree)->confirm().outcome == Outcome::kUnreachable);
}

TEST_CASE("lease: a store that throws Error decides the outcome") {
  FixedAnswers store;
  Lease lease = Leases(store).lease(kThree).value();
  store.on_touch = [] { throw Error({Outcome::kRefused, "read only"}); };
  const auto status = lease.confirm();
  CHECK(status.outcome == Outcome::kRefused);
  CHECK(status.message ==
        "the store failed: read only; whether the lease is confirmed is in doubt: call confirm() again");
  CHECK(status.cause);
}

TEST_CASE("lease: a touch may change etags") {
  FixedAnswers store;
  store.touches.etag = 9;
  Lease lease = Leases(store).lease(kThree).value();
  CHECK(lease.renew().ok());
  CHECK(lease.documents().at(2).etag == 9);
}

TEST_CASE("lease: wrong arguments are rejected before any request to the store") {
  MemoryStore store;
  Leases leases(store);
  CHECK_THROWS_AS(static_cast<void>(leases.lease({})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(leases.lease({{"a", ""}, {"a", ""}})), std::invalid_argument);
  CHECK_THROWS_AS(static_cast<void>(leases.lease(kThree, 9ms)), std::invalid_argument);
  CHECK(store.steps() == 0);
  Lease lease = leases.lease(kThree, 10ms).value();
  CHECK_THROWS_AS(static_cast<void>(lease.renew(9ms)), std::invalid_argument);
}

}  // namespace holdfast
