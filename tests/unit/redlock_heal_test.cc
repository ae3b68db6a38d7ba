// Renewal rounds that find servers without the hold: which servers get LOCK, which count, and when the
// hold is lost.
#include <doctest/doctest.h>

#include "unit/redlock_script.h"

namespace holdfast::client {

namespace {

// Servers 0 and 1 grant the hold with token 500; server 2 rejects. It is renewed at 3000 ms.
struct Renewing : Script {
  explicit Renewing(RedlockConfig config = three_servers(), const std::vector<std::string>& mode = {})
      : Script(config, mode) {
    take();
    renew(3000);
  }
  void renew(int64_t at_ms, bool heal = true) {
    at(at_ms);
    lock.renew(TimeMs{now}, {10000}, heal);
    look_sent = sent();
  }
  bool confirmed() const { return lock.renewal() && lock.renewal()->ok(); }
  Outcome renewal() const {
    REQUIRE(lock.renewal());
    return lock.renewal()->outcome;
  }
  std::string look_sent;
};

constexpr const char* kRecovering =
    "RECOVERING locks held before the restart may still be in use; retry in 50 ms";

}  // namespace

TEST_CASE("redlock healing: a renewal that all servers confirm sends only RENEW") {
  Renewing s;
  CHECK(s.look_sent == "2:RENEW k A 10000|1:RENEW k A 10000|0:RENEW k A 10000");
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 1);
  CHECK(s.confirmed());
  CHECK(s.sent().empty());
}

TEST_CASE("redlock healing: a server without the hold gets LOCK with the owner, ttl, mode and token") {
  for (const int64_t answer : {0, -1}) {
    Renewing s(three_servers(), {"SHARED"});
    s.number(0, 1);
    s.number(2, answer);
    CHECK(s.sent().empty());  // server 1 may lack the hold, too
    s.number(1, 1);
    CHECK(s.confirmed());
    CHECK(s.sent() == "2:LOCK k A 10000 SHARED TOKEN 500");
    s.grant(2, 501);
    CHECK(s.held());
    CHECK(s.lock.token() == 500);
    CHECK(s.sent().empty());
  }
}

TEST_CASE("redlock healing: a server that replies after the round was confirmed is healed as well") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  REQUIRE(s.confirmed());
  s.number(2, 0);
  CHECK(s.sent() == "2:LOCK k A 10000 TOKEN 500");
}

TEST_CASE("redlock healing: a healed server counts for the round in which it granted") {
  Renewing s;
  s.number(0, 1);
  s.lost(1);
  s.number(2, 0);
  CHECK_FALSE(s.lock.renewal());
  CHECK(s.sent() == "2:LOCK k A 10000 TOKEN 500");
  s.now = 3500;
  s.grant(2, 900);
  REQUIRE(s.confirmed());
  CHECK(s.lock.token() == 500);
  CHECK(s.lock.valid_until().count == 3000 + 9898);
}

TEST_CASE("redlock healing: a rejection leaves the server out until the next renewal") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  s.sent();
  s.null(2);
  CHECK(s.sent().empty());
  s.renew(6000);
  CHECK(s.look_sent == "2:RENEW k A 10000|1:RENEW k A 10000|0:RENEW k A 10000");
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  CHECK(s.sent() == "2:LOCK k A 10000 TOKEN 500");
  s.grant(2, 700);
  CHECK(s.held());
}

TEST_CASE("redlock healing: a rejected LOCK leaves the round unconfirmed, and the hold continues") {
  Renewing s;
  s.number(0, 1);
  s.lost(1);
  s.number(2, 0);
  s.null(2);
  CHECK(s.renewal() == Outcome::kUnreachable);
  CHECK(s.held());
  CHECK(s.lock.valid_until().count == 10898);
}

TEST_CASE("redlock healing: a server that is RECOVERING counts as silent") {
  Renewing s;
  s.number(0, 1);
  s.lost(1);
  s.number(2, 0);
  s.error(2, kRecovering);
  CHECK(s.renewal() == Outcome::kUnreachable);
  CHECK(s.held());
  s.renew(6000);
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  s.error(2, kRecovering);
  CHECK(s.confirmed());
}

TEST_CASE("redlock healing: where a majority replies that it lacks the hold, nothing is healed") {
  for (const int64_t answer : {0, -1}) {
    Renewing s;
    s.number(0, 1);
    s.number(1, 0);
    s.number(2, answer);
    CHECK(s.renewal() == Outcome::kExpired);
    CHECK(s.sent().empty());
  }
}

TEST_CASE("redlock healing: a late reply without the hold can complete a majority that lacks it") {
  Renewing s;
  s.number(0, 1);
  s.number(2, 0);
  s.at(4000);  // server 1 has not replied in time
  CHECK(s.sent() == "2:LOCK k A 10000 TOKEN 500");
  s.grant(2, 501);
  CHECK(s.confirmed());
  s.renew(6000);
  s.number(2, 1);
  s.number(0, 0);
  s.number(1, 0);
  CHECK(s.renewal() == Outcome::kExpired);
}

TEST_CASE("redlock healing: two of five servers that lost the hold are both healed") {
  RedlockConfig config = three_servers();
  config.servers = 5;
  config.quorum = 3;
  Script s(config);
  for (size_t i = 0; i < 5; ++i) s.grant(i, 500);
  s.sent();
  s.at(3000);
  s.lock.renew(TimeMs{3000}, {10000});
  s.sent();
  s.number(0, 0);
  s.number(1, 0);
  s.number(2, 1);
  s.number(3, 1);
  CHECK(s.sent().empty());
  s.lost(4);
  CHECK(s.sent() == "0:LOCK k A 10000 TOKEN 500|1:LOCK k A 10000 TOKEN 500");
  s.null(1);
  CHECK_FALSE(s.lock.renewal());
  s.grant(0, 501);
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->ok());
}

TEST_CASE("redlock healing: a counted hold needs all servers, and the server with room is healed") {
  RedlockConfig config = three_servers();
  config.quorum = 3;
  config.breach = 2;
  Script s(config, {"LIMIT", "3"});
  for (size_t i = 0; i < 3; ++i) s.grant(i, 500);
  s.sent();
  REQUIRE(s.held());
  s.at(3000);
  s.lock.renew(TimeMs{3000}, {10000});
  s.sent();
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  CHECK_FALSE(s.lock.renewal());
  CHECK(s.sent() == "2:LOCK k A 10000 LIMIT 3 TOKEN 500");
  SUBCASE("it has room") {
    s.grant(2, 501);
    REQUIRE(s.lock.renewal());
    CHECK(s.lock.renewal()->ok());
  }
  SUBCASE("it is full: the hold lasts until its validity ends") {
    s.null(2);
    REQUIRE(s.lock.renewal());
    CHECK(s.lock.renewal()->outcome == Outcome::kBusy);
    CHECK(s.held());
    s.at(10898);
    CHECK(s.over());
  }
}

TEST_CASE("redlock healing: with one server that lacks the hold it is lost, and not acquired again") {
  Script s(one_server());
  s.grant(0, 500);
  s.sent();
  s.lock.renew(TimeMs{1000}, {10000});
  s.sent();
  s.number(0, 0);
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->outcome == Outcome::kExpired);
  CHECK(s.sent().empty());
}

TEST_CASE("redlock healing: a renewal that only queries heals nothing") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  s.sent();
  s.renew(4000, false);
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  CHECK(s.confirmed());
  CHECK(s.sent().empty());
}

TEST_CASE("redlock healing: nothing is healed after the release, and a healed server is released") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  const uint64_t late = s.asked(2);
  s.lock.release(TimeMs{s.now});
  CHECK(s.unlocked() == "2A 1A 0A");
  s.reply_to(late, {Reply::Kind::kInteger, 0, ""});
  CHECK(s.sent().find("LOCK k A 10000") == std::string::npos);
}

TEST_CASE("redlock healing: nothing is healed once renewal has stopped") {
  Renewing s;
  s.number(0, 1);
  s.number(2, 0);
  s.lock.stop_renewing();
  s.number(1, 1);
  CHECK(s.sent().empty());
  CHECK(s.held());
}

TEST_CASE("redlock healing: a grant that arrives after the release is released") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  const uint64_t heal = s.asked(2);
  s.lock.release(TimeMs{s.now});
  s.sent();
  s.number(0, 1);
  s.number(1, 1);
  REQUIRE(s.over());
  CHECK_FALSE(s.lock.settled());
  s.unlocked();
  s.reply_to(heal, {Reply::Kind::kGrant, 501, ""});
  CHECK(s.unlocked() == "2A");
  CHECK(s.lock.settled());
}

TEST_CASE("redlock healing: a grant that arrives in a later round does not count there") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  const uint64_t heal = s.asked(2);
  s.renew(6000);
  s.reply_to(heal, {Reply::Kind::kGrant, 501, ""});
  s.number(0, 1);
  CHECK_FALSE(s.lock.renewal());
  s.number(1, 1);
  CHECK(s.confirmed());
}

TEST_CASE(
    "redlock healing: a LOCK for a shorter time that is still under way keeps its server from counting") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  const uint64_t heal = s.asked(2);
  s.at(6000);
  s.lock.renew(TimeMs{s.now}, {60000});
  s.sent();
  s.number(2, 1);
  s.number(1, 1);
  CHECK_FALSE(s.lock.renewal());
  s.lost(0);
  CHECK_FALSE(s.confirmed());
  s.reply_to(heal, {Reply::Kind::kGrant, 501, ""});
  s.lock.renew(TimeMs{s.now}, {60000});
  s.sent();
  s.number(2, 1);
  s.number(1, 1);
  CHECK(s.confirmed());
}

TEST_CASE("redlock healing: a token too far ahead for a server is omitted there") {
  Renewing s;
  s.number(0, 1);
  s.number(1, 1);
  s.number(2, 0);
  s.sent();
  s.error(2, "ERR token is further ahead than max-token-lead allows");
  CHECK(s.sent() == "2:LOCK k A 10000");
  s.grant(2, 5);
  CHECK(s.held());
  CHECK(s.lock.token() == 500);
}

}  // namespace holdfast::client
