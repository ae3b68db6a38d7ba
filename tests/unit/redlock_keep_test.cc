// Releases before `at_least` has passed, each step set by the test: the sends, and the results of replies
// and time.
#include <doctest/doctest.h>

#include <tuple>

#include "client/algorithm/redlock.h"
#include "unit/redlock_script.h"

namespace holdfast::client {

TEST_CASE(
    "redlock: a release before at_least has passed is a RENEW for the rest; at its end and later, UNLOCK") {
  for (const int64_t past : {-1000, -1, 0, 1}) {
    Script s(three_servers());
    s.now = 1300;
    s.take();  // at_least starts here
    s.now = 1300 + 5000 + past;
    s.lock.release(TimeMs{s.now}, {5000});
    CHECK(s.sent() == (past == -1000
                           ? "2:RENEW k A 1013|1:RENEW k A 1013|0:RENEW k A 1013"  // 1 % and 2 ms more
                       : past == -1 ? "2:RENEW k A 4|1:RENEW k A 4|0:RENEW k A 4"
                                    : "2:UNLOCK k A|1:UNLOCK k A|0:UNLOCK k A"));
    s.number(0, 1);
    CHECK_FALSE(s.over());
    s.number(1, 1);
    CHECK(s.over());
    CHECK(s.outcome() == Outcome::kOk);
    CHECK(s.unlocked() == (past < 0 ? "" : "2A 1A 0A"));
  }
}

TEST_CASE("redlock: at_least may be longer than the ttl") {
  Script s(three_servers());
  s.take();
  const TimeMs end = s.lock.valid_until();
  s.lock.release(TimeMs{s.now}, {20000});
  CHECK(s.sent().starts_with("2:RENEW k A 20205|"));
  s.at(end.count);  // end of the earlier ttl: no UNLOCK follows
  CHECK(s.unlocked().empty());
}

TEST_CASE(
    "redlock: a release before at_least has passed that no quorum confirms reports why, without an "
    "UNLOCK") {
  for (const auto& [first, second, outcome] :
       {std::tuple(0, 0, Outcome::kExpired), {-1, 0, Outcome::kExpired}, {-2, -2, Outcome::kUnreachable}}) {
    Script s(three_servers());
    s.take();
    s.lock.release(TimeMs{s.now}, {5000});
    s.sent();
    first == -2 ? s.lost(0) : s.number(0, first);
    second == -2 ? s.lost(1) : s.number(1, second);
    CHECK(s.over());
    CHECK(s.outcome() == outcome);
    CHECK(s.unlocked().empty());
  }
}

TEST_CASE("redlock: a grant that arrives while the lock is kept for at_least is kept, too") {
  Script s(three_servers());
  s.sent();
  const uint64_t late = s.asked(2);
  s.grant(0, 500);
  s.grant(1, 500);
  s.lock.release(TimeMs{s.now}, {5000});
  s.reply_to(late, {Reply::Kind::kGrant, 500, ""});
  s.number(0, 1);
  s.number(1, 1);
  CHECK(s.over());
  CHECK(s.unlocked().empty());
}

TEST_CASE("redlock: a lock that is lost before its release is not kept for at_least") {
  Script s(three_servers());
  s.take();
  s.now = s.lock.valid_until().count;
  s.lock.release(TimeMs{s.now}, {20000});
  CHECK(s.outcome() == Outcome::kExpired);
  CHECK(s.unlocked() == "2A 1A 0A");
}

}  // namespace holdfast::client
