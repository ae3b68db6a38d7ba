// The wait for a lock on several servers, in the queue of one of them.
#include <doctest/doctest.h>

#include "unit/redlock_script.h"

namespace holdfast::client {

namespace {

// The first two of three servers reject, so the lock waits at the first.
struct Waiting : Script {
  explicit Waiting(DurationMs wait = {5000}) : Script(three_servers(wait)) {
    null(0);
    null(1);
    null(2);
    sent();
    unlocked();
    ticket = asked(0);
    REQUIRE(queueing());
  }
  // Grants its turn at the first server.
  void lead(int64_t token = 700) {
    reply_to(ticket, {Reply::Kind::kGrant, token, ""});
    REQUIRE(lock.state() == Redlock::State::kLocking);
  }
  uint64_t ticket = 0;
};

}  // namespace

TEST_CASE("redlock queue: a rejected client waits at the first server that replied, whichever that is") {
  Script first(three_servers(DurationMs{5000}));
  first.sent();
  first.null(0);
  first.now = 1010;
  first.null(1);
  CHECK(first.sent() ==
        "2:UNLOCK k A|1:UNLOCK k A|0:UNLOCK k A|0w:LOCK k B 10000 WAIT 4990 SESSION TOKEN 500");
  Script second(three_servers(DurationMs{0}));
  second.sent();
  second.lost(0);
  second.grant(1, 500);
  second.null(2);
  CHECK(second.sent() ==
        "2:UNLOCK k A|1:UNLOCK k A|0:UNLOCK k A|1w:LOCK k B 10000 WAIT 0 SESSION TOKEN 501");
  CHECK(second.queueing());
}

TEST_CASE("redlock queue: a silent first server gets a short time to reply, and no longer") {
  Script s(three_servers(DurationMs{5000}));
  s.sent();
  s.null(2);
  s.null(1);
  CHECK(s.sent().empty());
  CHECK(s.lock.next_deadline()->count == 1010);
  SUBCASE("it answers") {
    s.null(0);
    CHECK(s.sent().ends_with("0w:LOCK k B 10000 WAIT 5000 SESSION TOKEN 500"));
  }
  SUBCASE("it is lost") {
    s.lost(0);
    CHECK(s.sent().ends_with("1w:LOCK k B 10000 WAIT 5000 SESSION TOKEN 500"));
  }
  SUBCASE("it is silent") {
    s.at(1009);
    CHECK(s.sent().empty());
    s.at(1010);
    CHECK(s.sent().ends_with("1w:LOCK k B 10000 WAIT 4990 SESSION TOKEN 500"));
  }
}

// Server 0 rejects the hint and gets a second LOCK. Server 1 refuses. Server 2 grants after its timeout.
TEST_CASE("redlock queue: a late grant that makes a quorum possible again ends the short time") {
  Script s(three_servers(DurationMs{5000}));
  const uint64_t late = s.asked(2);
  s.null(1);
  s.now = 1500;
  s.error(0, "ERR token is further ahead than max-token-lead allows");
  s.sent();
  s.at(2000);  // server 2 is lost: no quorum is possible, and server 0 has not replied
  CHECK(s.lock.next_deadline()->count == 2010);
  s.now = 2005;
  s.reply_to(late, {Reply::Kind::kGrant, 500, ""});
  CHECK(s.lock.next_deadline()->count == 2500);
  s.at(2010);
  CHECK(s.lock.next_deadline()->count == 2500);
  CHECK(s.sent().empty());
  SUBCASE("the first server grants") {
    s.grant(0, 500);
    CHECK(s.held());
  }
  SUBCASE("it refuses") {
    s.null(0);
    CHECK(s.sent().ends_with("0w:LOCK k B 10000 WAIT 3990 SESSION TOKEN 501"));
  }
  SUBCASE("it is silent") {
    s.at(2500);
    CHECK(s.sent().ends_with("1w:LOCK k B 10000 WAIT 3500 SESSION TOKEN 501"));
  }
}

TEST_CASE(
    "redlock queue: at its turn a waiter sends LOCK with its token to all, and takes over its own grant") {
  Waiting s;
  s.now = 1900;
  s.lead();
  CHECK(s.sent() == "0:LOCK k B 10000 TOKEN 700|1:LOCK k B 10000 TOKEN 700|2:LOCK k B 10000 TOKEN 700");
  s.grant(0, 700);
  CHECK(s.ended.empty());
  s.grant(2, 700);
  REQUIRE(s.held());
  CHECK(s.lock.token() == 700);
  CHECK(s.lock.valid_until().count == 1900 + 9898);
  CHECK(s.ended == std::vector<uint64_t>{s.ticket});
}

TEST_CASE("redlock queue: at its turn a waiter retries the servers that were not free, and then stops") {
  Waiting s;
  s.lead();
  s.sent();
  s.grant(0, 700);
  s.null(1);
  for (int repeats = 0; repeats < 5; ++repeats) {
    s.null(2);
    CHECK(s.sent().empty());
    const int64_t next = s.lock.next_deadline()->count;
    CHECK(next > s.now);
    CHECK(next <= s.now + 11);
    s.at(next - 1);
    CHECK(s.sent().empty());
    s.at(next);
    CHECK(s.sent() == "1:LOCK k B 10000 TOKEN 700|2:LOCK k B 10000 TOKEN 700");
    s.null(1);
  }
  s.null(2);
  CHECK(s.pausing());
  CHECK(s.unlocked() == "2B 1B 0B");
  CHECK(s.ended == std::vector<uint64_t>{s.ticket});
}

TEST_CASE(
    "redlock queue: after a turn without the lock it waits at a server that has a holder, not there") {
  Waiting s;
  s.lead();
  s.grant(0, 700);
  s.null(1);
  s.null(2);
  for (int repeats = 0; repeats < 5; ++repeats) {
    s.at(s.lock.next_deadline()->count);
    s.null(1);
    s.null(2);
  }
  REQUIRE(s.pausing());
  s.at(s.lock.next_deadline()->count);
  s.sent();
  SUBCASE("the other servers reject: server 0 stays free for the holder") {
    s.grant(0, 701);
    s.null(1);
    s.null(2);
    CHECK(s.sent().find("1w:LOCK k D 10000 WAIT") != std::string::npos);
  }
  SUBCASE("no other server rejects: it waits at the first one, as usual") {
    s.null(0);
    s.grant(1, 702);
    s.lost(2);
    CHECK(s.sent().find("0w:LOCK k D 10000 WAIT") != std::string::npos);
  }
}

TEST_CASE("redlock queue: a server that is asked again may grant") {
  Waiting s;
  s.lead();
  s.grant(0, 700);
  s.null(1);
  s.null(2);
  s.at(s.lock.next_deadline()->count);
  s.grant(2, 700);
  CHECK(s.held());
  CHECK(s.unlocked().empty());
}

TEST_CASE("redlock queue: a waiter sometimes tries the other servers, which may suffice") {
  Waiting s(DurationMs{0});
  const int64_t look = s.lock.next_deadline()->count;
  CHECK(look > 1000 + 10 * 100);
  CHECK(look <= 1000 + 20 * 100 + 1);
  s.at(look - 1);
  CHECK(s.sent().empty());
  s.at(look);
  CHECK(s.sent() == "1:LOCK k C 10000 TOKEN 500|2:LOCK k C 10000 TOKEN 500");
  SUBCASE("they suffice") {
    s.grant(1, 500);
    s.grant(2, 500);
    REQUIRE(s.held());
    CHECK(s.ended == std::vector<uint64_t>{s.ticket});
  }
  SUBCASE("they do not suffice: its place is kept") {
    s.grant(1, 500);
    s.null(2);
    CHECK(s.queueing());
    CHECK(s.unlocked() == "2C 1C 0C");
    CHECK(s.ended.empty());
    CHECK(s.lock.next_deadline()->count > look + 1000);
  }
  SUBCASE("its turn comes in the meantime") {
    s.grant(1, 500);
    s.lead();
    CHECK(s.unlocked() == "2C 1C 0C");
    s.grant(0, 700);
    s.grant(1, 700);
    CHECK(s.held());
  }
  SUBCASE("the queue is lost in the meantime: the attempt is like any other") {
    s.reply_to(s.ticket, {Reply::Kind::kLost, 0, "gone"});
    s.null(1);
    CHECK_FALSE(s.pausing());
    s.null(2);
    CHECK(s.queueing());
    CHECK(s.sent().ends_with("1w:LOCK k D 10000 WAIT 0 SESSION TOKEN 500"));
  }
}

TEST_CASE("redlock queue: where the other servers are too few for a quorum, a waiter does not try them") {
  RedlockConfig config = three_servers(DurationMs{0});
  config.quorum = 3;
  Script s(config);
  s.null(1);
  s.null(0);
  REQUIRE(s.queueing());
  s.at(100000);
  CHECK(s.queueing());
}

TEST_CASE("redlock queue: after a lost queue it waits at the next server, after the last one in a pause") {
  Waiting s;
  s.reply_to(s.ticket, {Reply::Kind::kLost, 0, "gone"});
  CHECK(s.queueing());
  CHECK(s.sent().ends_with("1w:LOCK k C 10000 WAIT 5000 SESSION TOKEN 500"));
  s.reply_to(s.asked(1), {Reply::Kind::kError, 0, "ERR too many waiters, see max-waiters"});
  CHECK(s.pausing());
  CHECK(s.ended.size() == 2);
  CHECK(s.unlocked().empty());
}

TEST_CASE("redlock queue: the wait ends with the error of the server") {
  Waiting s(DurationMs{500});
  s.now = 1500;
  s.reply_to(s.ticket, {Reply::Kind::kNull, 0, ""});
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kTimeout);
  CHECK(s.lock.settled());
}

TEST_CASE("redlock queue: a new client that may wait does not overtake the queue, one that may not tries") {
  for (const bool waits : {true, false}) {
    Script s(three_servers(waits ? std::optional(DurationMs{0}) : std::nullopt));
    s.null(0);
    s.grant(1, 500);
    s.grant(2, 500);
    CHECK(s.held() != waits);
    CHECK(s.queueing() == waits);
  }
}

TEST_CASE("redlock queue: with known waiters it waits in the queue at once") {
  Script s(three_servers(DurationMs{0}), {}, true);
  CHECK(s.sent() == "0w:LOCK k A 10000 WAIT 0 SESSION TOKEN 500");
  s.lost(0);
  CHECK(s.pausing());  // no other server got a request
  Script once(three_servers(), {}, true);
  CHECK(once.sent().starts_with("0:LOCK k A 10000 TOKEN 500"));
}

TEST_CASE("redlock queue: cancelling leaves the queue") {
  Waiting s;
  s.lock.release(TimeMs{1000});
  CHECK(s.unlocked().empty());  // the disconnect also releases a grant that may be under way
  CHECK(s.ended == std::vector<uint64_t>{s.ticket});
  CHECK(s.outcome() == Outcome::kCancelled);
}

TEST_CASE("redlock queue: a SESSION hold that no LOCK has taken over does not count, and gets LOCK") {
  Waiting s;
  s.lead();
  s.sent();
  s.grant(1, 700);
  s.grant(2, 700);
  REQUIRE(s.held());
  s.lock.renew(TimeMs{s.now}, {10000});
  s.sent();
  s.number(1, 1);
  s.number(0, 1);  // the server ends this hold with the connection of the wait
  CHECK_FALSE(s.lock.renewal());
  CHECK(s.sent() == "0:LOCK k B 10000 TOKEN 700");
  s.grant(0, 700);
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->ok());
  s.lock.renew(TimeMs{s.now}, {10000});
  s.sent();
  s.number(1, 1);
  s.number(0, 1);  // now it is a hold as others
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->ok());
}

}  // namespace holdfast::client
