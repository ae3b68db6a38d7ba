// The holders of a lock, timers, tokens and lease outcomes: small structures, each with its own promises.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/base/timers.h"
#include "core/keyspace/lock_body.h"
#include "core/state/lease_table.h"
#include "core/state/tokens.h"

namespace holdfast {
namespace {

Holder holder(const std::string& owner, uint64_t token, Capacity capacity, int64_t deadline) {
  Holder h;
  h.owner = owner;
  h.token = {token};
  h.capacity = capacity;
  h.deadline = {deadline};
  return h;
}

struct TestTimer : Timer {
  TestTimer(TimerKind kind, int n) : Timer(kind), name(n) {}
  int name;
};

void end(LeaseTable& leases, const std::string& id, LeaseState state) {
  auto lease = std::make_unique<LiveLease>();
  lease->id = id;
  leases.end(leases.add(std::move(lease)), state);
}

}  // namespace

TEST_CASE("lock body: the tightest capacity is found with and without any one holder") {
  OwnerCounts counts;
  LockBody body(counts);
  const Holder* shared = body.add(holder("shared", 1, kShared, 30));
  const Holder* five = body.add(holder("five", 2, {5}, 20));
  CHECK(body.tightest() == Capacity{5});
  CHECK(body.tightest(five) == kShared);
  CHECK(body.tightest(shared) == Capacity{5});
  const Holder* again = body.add(holder("again", 3, {5}, 10));
  CHECK(body.tightest(five) == Capacity{5});
  CHECK(body.first_to_expire() == again);
  CHECK(body.last_deadline().count == 30);
  body.check_invariants();
}

TEST_CASE("lock body: FENCE may make tokens equal, and no holder is lost") {
  OwnerCounts counts;
  LockBody body(counts);
  const Holder* a = body.add(holder("a", 1, kShared, 10));
  const Holder* b = body.add(holder("b", 2, kShared, 10));
  body.set_token(a, {2});
  body.check_invariants();
  CHECK(body.has_token({2}));
  CHECK_FALSE(body.has_token({1}));
  body.remove(b);
  CHECK(body.has_token({2}));
  body.remove(a);
  CHECK(body.size() == 0);
}

TEST_CASE("lock body: listeners are counted as attachments are added and removed") {
  OwnerCounts counts;
  LockBody body(counts);
  const Holder* h = body.add(holder("a", 1, kShared, 10));
  CHECK(body.listeners() == 0);
  Attachment a;
  a.async = true;
  body.set_attachment(h, a, {});
  CHECK(body.listeners() == 1);
  body.set_attachment(h, {}, {});
  CHECK(body.listeners() == 0);
  body.set_attachment(h, a, {});
  body.remove(h);
  CHECK(body.listeners() == 0);
}

TEST_CASE("lock body: an owner counts as holder until its last hold ends, alone or with its lock") {
  OwnerCounts counts;
  LockBody one(counts);
  const Holder* a = one.add(holder("a", 1, kShared, 10));
  {
    LockBody two(counts);
    two.add(holder("a", 2, kShared, 10));
    two.add(holder("b", 3, kShared, 10));
    one.remove(a);
    CHECK(counts.any("a"));
    CHECK(counts.any("b"));
  }
  CHECK_FALSE(counts.any("a"));
  CHECK_FALSE(counts.any("b"));
}

TEST_CASE("timers: they fire by time, then kind, then order of arming; changed or cancelled ones do not") {
  Timers timers;
  TestTimer late(TimerKind::kKeyChange, 5);
  TestTimer wait(TimerKind::kWaitEnd, 3);
  TestTimer wait2(TimerKind::kWaitEnd, 4);
  TestTimer key(TimerKind::kKeyChange, 2);
  TestTimer gone(TimerKind::kKeyChange, 9);
  timers.set(&late, {1});
  timers.set(&wait, {10});
  timers.set(&wait2, {10});
  timers.set(&key, {10});
  timers.set(&gone, {10});
  timers.set(&late, {11});
  timers.set(&gone, kNever);
  CHECK_FALSE(timers.any_due({9}));
  std::vector<int> fired;
  while (Timer* t = timers.take_due({11})) fired.push_back(static_cast<TestTimer*>(t)->name);
  CHECK(fired == std::vector<int>{2, 3, 4, 5});
  CHECK(timers.size() == 0);
}

TEST_CASE("tokens: each stripe grows independently, above the floor, and to a larger hint") {
  Tokens tokens(100);
  const Key a{"a", 1};
  CHECK(tokens.next(a, 0, 600).value == 101);
  CHECK(tokens.next(a, 0, 600).value == 102);
  CHECK(tokens.next({"b", 2}, 0, 600).value == 101);
  CHECK(tokens.next(a, 102, 600).value == 103);
  CHECK(tokens.next(a, 500, 600).value == 500);
  CHECK(tokens.next(a, 7, 600).value == 501);
  tokens.raise(a, {600}, 600);
  tokens.raise(a, {300}, 600);
  CHECK(tokens.next({"c", 1 + Tokens::kStripes}, 0, 600).value == 601);
  CHECK(tokens.largest() == 601);
  CHECK(tokens.ahead_keys() == 0);
}

TEST_CASE("tokens: raise_all raises the stripes below it, with and without a grant, and no other") {
  Tokens tokens(100);
  const Key used{"a", 1};
  const Key ahead{"b", 2};
  const Key fresh{"c", 3};
  CHECK(tokens.next(used, 0, 600).value == 101);
  CHECK(tokens.next(ahead, 301, 600).value == 301);
  CHECK(tokens.last(fresh) == 100);
  tokens.raise_all({99});
  CHECK(tokens.last(fresh) == 100);
  CHECK(tokens.next(used, 0, 600).value == 102);
  tokens.raise_all({300});
  CHECK(tokens.last(used) == 300);
  CHECK(tokens.last(ahead) == 301);
  CHECK(tokens.next(ahead, 0, 600).value == 302);
  CHECK(tokens.next(fresh, 300, 600).value == 301);
  CHECK(tokens.next(used, 0, 600).value == 301);
  CHECK(tokens.largest() == 302);
}

TEST_CASE("tokens: above the limit a token is counted for its key alone: below, at and above the limit") {
  Tokens tokens(100);
  const Key a{"a", 1};
  const Key b{"b", 1};
  CHECK(tokens.next(a, 999, 1000).value == 999);
  CHECK(tokens.next(a, 1000, 1000).value == 1000);
  CHECK(tokens.ahead_keys() == 0);
  CHECK(tokens.next(a, 1001, 1000).value == 1001);  // as without a hint
  CHECK(tokens.ahead_keys() == 0);
  CHECK(tokens.next(a, 2000, 1000).value == 2000);
  CHECK(tokens.ahead_keys() == 1);
  CHECK(tokens.last(a) == 2000);
  CHECK(tokens.next(a, 0, 1000).value == 2001);
  CHECK(tokens.next(b, 0, 1000).value == 1002);
  CHECK(tokens.largest() == 1002);
  tokens.raise(b, {5000}, 1000);
  CHECK(tokens.next(b, 0, 1000).value == 5001);
  CHECK(tokens.next(a, 0, 1000).value == 2002);
  CHECK(tokens.issued(true).ahead == std::vector<AheadToken>{{"a", 2002}, {"b", 5001}});
}

TEST_CASE("tokens: a key's own counter ends when the clock reaches it, and no token decreases") {
  Tokens tokens(100);
  const Key a{"a", 1};
  CHECK(tokens.next(a, 2000, 1000).value == 2000);
  CHECK(tokens.next(a, 0, 2000).value == 2001);
  CHECK(tokens.ahead_keys() == 1);
  CHECK(tokens.next(a, 0, 2002).value == 2002);
  CHECK(tokens.ahead_keys() == 0);
  CHECK(tokens.largest() == 2002);
}

TEST_CASE("tokens: with too many keys ahead a hint is ignored, and a raise is still accepted") {
  Tokens tokens(100);
  std::vector<std::string> names;
  for (size_t i = 0; i < Tokens::kMaxAhead + 2; ++i) names.push_back("key " + std::to_string(i));
  const auto key = [&](size_t i) { return Key{names[i], i}; };
  for (size_t i = 0; i + 1 < Tokens::kMaxAhead; ++i) tokens.raise(key(i), {5000 + i}, 1000);
  CHECK(tokens.ahead_keys() == Tokens::kMaxAhead - 1);
  const size_t last = Tokens::kMaxAhead - 1;
  CHECK(tokens.fits(key(last), 9000, 1000));
  CHECK(tokens.next(key(last), 9000, 1000).value == 9000);
  CHECK_FALSE(tokens.fits(key(last + 1), 9000, 1000));
  CHECK(tokens.next(key(last + 1), 9000, 1000).value == 101);
  tokens.raise(key(last + 1), {9000}, 1000);
  CHECK(tokens.next(key(last + 1), 0, 1000).value == 9001);
  CHECK(tokens.largest() == 9001);
  // The clock reaches the counters of all keys but one.
  CHECK(tokens.fits(key(last + 2), 20000, 8999));
  CHECK(tokens.ahead_keys() == 1);
  CHECK(tokens.next(key(0), 0, 8999).value > 5000);
}

TEST_CASE("tokens: the persisted counters of single keys change once per minute of tokens") {
  Tokens tokens(100);
  const Key a{"a", 1};
  tokens.next(a, 2000, 1000);
  CHECK(tokens.ahead_serial() == 1);
  const uint64_t reserve = tokens.issued().ahead[0].token;
  CHECK(reserve == 2000 + 60'000'000);
  tokens.raise(a, {reserve}, 1000);
  CHECK(tokens.ahead_serial() == 1);
  tokens.next(a, 0, 1000);
  CHECK(tokens.ahead_serial() == 2);
  Tokens again(100);
  again.restore({"a", reserve});
  CHECK(again.ahead_serial() == 0);
  CHECK(again.next(a, 0, 1000).value == reserve + 1);
  CHECK(again.ahead_serial() == 1);
}

TEST_CASE("tokens: a long key has no counter of its own: below, at and above the limit") {
  Tokens tokens(100);
  for (const size_t size :
       {Tokens::kMaxAheadKeyBytes - 1, Tokens::kMaxAheadKeyBytes, Tokens::kMaxAheadKeyBytes + 1}) {
    const std::string name(size, 'k');
    CHECK(tokens.fits({name, size}, 9000, 1000) == (size <= Tokens::kMaxAheadKeyBytes));
  }
}

TEST_CASE("lease table: keeps the outcomes of the newest leases, one below, at and above the limit") {
  LeaseTable leases(3);
  for (const char* id : {"a", "b", "c"}) end(leases, id, LeaseState::kConfirmed);
  CHECK(leases.outcome("a") != nullptr);
  end(leases, "d", LeaseState::kCancelled);
  CHECK(leases.outcome("a") == nullptr);
  CHECK(leases.outcome("b")->state == LeaseState::kConfirmed);
  CHECK(leases.outcome("d")->state == LeaseState::kCancelled);
}

TEST_CASE("lease table: a reused id has no outcome until its new lease ends") {
  LeaseTable leases(2);
  end(leases, "a", LeaseState::kConfirmed);
  auto again = std::make_unique<LiveLease>();
  again->id = "a";
  LiveLease* lease = leases.add(std::move(again));
  CHECK(leases.outcome("a") == nullptr);
  leases.end(lease, LeaseState::kExpired);
  CHECK(leases.outcome("a")->state == LeaseState::kExpired);
  end(leases, "b", LeaseState::kExpired);
  CHECK(leases.outcome("a") != nullptr);
}

}  // namespace holdfast
