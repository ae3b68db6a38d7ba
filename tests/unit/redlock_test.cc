// Promises of the lock on several servers, each step set by the test: the sends, and the results of
// replies and time.
#include "client/algorithm/redlock.h"

#include <doctest/doctest.h>

#include "unit/redlock_script.h"

namespace holdfast::client {

TEST_CASE("redlock: LOCK goes to all servers with one owner, the mode and the clock as hint") {
  Script s(three_servers(), {"LIMIT", "3"});
  CHECK(s.sent() ==
        "0:LOCK k A 10000 LIMIT 3 TOKEN 500|1:LOCK k A 10000 LIMIT 3 TOKEN 500|"
        "2:LOCK k A 10000 LIMIT 3 TOKEN 500");
  s.grant(0, 500);
  s.grant(1, 500);
  REQUIRE(s.held());
  CHECK(s.lock.owner().size() == 32);
}

TEST_CASE("redlock: a quorum of equal tokens holds after one round trip, without the other replies") {
  Script s(three_servers());
  s.sent();
  s.grant(2, 500);
  CHECK_FALSE(s.held());
  s.grant(0, 500);
  REQUIRE(s.held());
  CHECK(s.lock.token() == 500);
  CHECK(s.lock.result().ok());
  CHECK(s.sent().empty());
}

TEST_CASE("redlock: the validity counts from the sending of LOCK, less drift and 2 ms") {
  Script s(three_servers());
  s.now = 1300;
  s.take();
  CHECK(s.lock.valid_until().count == 1000 + 10000 - 100 - 2);
  CHECK(s.lock.next_deadline() == s.lock.valid_until());
}

TEST_CASE("redlock: held before the validity's end, lost at it and after it, and released everywhere") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers());
    s.take();
    s.at(s.lock.valid_until().count + past);
    CHECK(s.held() == (past < 0));
    if (past < 0) continue;
    CHECK(s.over());
    CHECK(s.outcome() == Outcome::kExpired);
    CHECK(s.unlocked() == "2A 1A 0A");
  }
}

TEST_CASE("redlock: a quorum that arrives at the end of the validity or later is no lock") {
  for (const int64_t past : {-1, 0, 1}) {
    RedlockConfig config = three_servers();
    config.ttl = {100};  // valid until 1097
    Script s(config);
    s.grant(0, 500);
    s.now = 1097 + past;
    s.grant(1, 500);
    CHECK(s.held() == (past < 0));
    if (past >= 0) CHECK(s.over());
  }
}

TEST_CASE(
    "redlock: a server that has not replied by its timeout counts as a rejection, at it and not before") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers());
    s.null(0);
    s.grant(1, 500);
    s.at(2000 + past);
    CHECK(s.over() == (past >= 0));
  }
}

TEST_CASE("redlock: FENCE raises different tokens to the largest, at the servers that granted") {
  for (const auto& [token, second] : {std::pair{500, 700}, std::pair{700, 500}}) {
    const int first = token;  // clang 14 cannot capture `token`
    CAPTURE(first);
    Script s(three_servers());
    s.sent();
    s.grant(0, first);
    s.grant(1, second);
    s.null(2);
    CHECK(s.sent() == "0:FENCE k A 700|1:FENCE k A 700");
    s.number(0, 700);
    CHECK_FALSE(s.held());
    s.number(1, 700);
    REQUIRE(s.held());
    CHECK(s.lock.token() == 700);
  }
}

TEST_CASE("redlock: FENCE starts only when no quorum of equal tokens is possible any more") {
  Script s(three_servers());
  s.sent();
  s.grant(0, 500);
  s.grant(1, 700);
  CHECK(s.sent().empty());
  s.grant(2, 700);
  CHECK(s.held());
  CHECK(s.lock.token() == 700);
}

TEST_CASE("redlock: a larger FENCE reply is no confirmation: fencing starts again with it") {
  Script s(three_servers());
  s.grant(0, 500);
  s.grant(1, 700);
  s.null(2);
  s.sent();
  s.number(0, 900);
  CHECK(s.sent() == "0:FENCE k A 900|1:FENCE k A 900");
  s.number(0, 900);
  s.number(1, 900);
  REQUIRE(s.held());
  CHECK(s.lock.token() == 900);
}

TEST_CASE("redlock: a hold that FENCE reports as missing does not count any more") {
  Script s(three_servers());
  s.grant(0, 500);
  s.grant(1, 700);
  s.null(2);
  s.number(0, -1);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kBusy);
  CHECK(s.lock.result().servers[0].outcome == Outcome::kNotOwner);
}

TEST_CASE("redlock: a FENCE reply that is smaller than the requested token is a rejection") {
  Script s(three_servers());
  s.grant(0, 500);
  s.grant(1, 700);
  s.null(2);
  s.number(0, 699);
  CHECK(s.over());
  CHECK(s.lock.result().servers[0].outcome == Outcome::kRefused);
  CHECK(s.lock.result().servers[0].text == "an answer of an unknown form");
}

TEST_CASE("redlock: a number is no grant, and a grant is no confirmation") {
  Script locking(three_servers());
  locking.number(0, 500);
  CHECK_FALSE(locking.over());
  locking.number(1, 500);
  CHECK(locking.over());
  CHECK(locking.outcome() == Outcome::kRefused);
  Script fencing(three_servers());
  fencing.grant(0, 500);
  fencing.grant(1, 700);
  fencing.null(2);
  fencing.grant(0, 700);
  CHECK(fencing.over());
  Script waiting(one_server(DurationMs{0}));
  waiting.number(0, 500);
  CHECK_FALSE(waiting.held());
}

TEST_CASE("redlock: FENCE without a reply by the server's timeout is lost, at it and not before") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers());
    s.grant(0, 500);
    s.grant(1, 700);
    s.now = 1500;
    s.null(2);
    s.number(0, 700);
    s.at(2500 + past);
    CHECK(s.over() == (past >= 0));
  }
}

TEST_CASE("redlock: a grant that arrives during the fencing of other servers is fenced too") {
  Script s(three_servers());
  s.grant(0, 500);
  s.grant(1, 700);
  s.at(2000);  // server 2 counts as lost
  REQUIRE(s.lock.state() == Redlock::State::kFencing);
  const uint64_t late = s.asked(1) - 2;
  s.sent();
  s.reply_to(late, {Reply::Kind::kGrant, 600, ""});
  CHECK(s.sent() == "2:FENCE k A 700");
  s.lost(0);
  s.number(1, 700);
  s.number(2, 700);
  CHECK(s.held());
}

TEST_CASE("redlock: an attempt fails as soon as a quorum is impossible, and is released everywhere") {
  Script s(three_servers());
  s.null(0);
  CHECK_FALSE(s.over());
  s.null(1);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kBusy);
  CHECK(s.unlocked() == "2A 1A 0A");
}

TEST_CASE("redlock: a grant that arrives after the end of its attempt is released") {
  Script s(three_servers());
  s.null(0);
  s.null(1);
  s.unlocked();
  CHECK_FALSE(s.lock.settled());
  s.grant(2, 500);
  CHECK(s.unlocked() == "2A");
  CHECK(s.over());
  CHECK(s.lock.settled());
}

TEST_CASE("redlock: a late grant belongs to the hold, and is released with it") {
  Script s(three_servers());
  s.grant(0, 500);
  s.grant(1, 500);
  s.grant(2, 501);
  CHECK(s.lock.result().servers[2].token == 501);
  CHECK(s.unlocked().empty());
  s.lock.release(TimeMs{s.now});
  CHECK(s.unlocked() == "2A 1A 0A");
}

TEST_CASE(
    "redlock: after a pause another attempt follows, with another owner and a hint above all tokens") {
  Script s(three_servers(DurationMs{5000}));
  s.grant(0, 800);
  s.lost(1);
  s.lost(2);
  REQUIRE(s.pausing());
  s.sent();
  const int64_t next = s.lock.next_deadline()->count;
  CHECK(next >= 1010);
  CHECK(next <= 1100);
  s.at(next - 1);
  CHECK(s.sent().empty());
  s.at(next);
  CHECK(s.sent() == "0:LOCK k B 10000 TOKEN 801|1:LOCK k B 10000 TOKEN 801|2:LOCK k B 10000 TOKEN 801");
}

TEST_CASE("redlock: a released lock ends the pause") {
  RedlockConfig config = three_servers(DurationMs{5000});
  config.min_wait = {20};
  config.max_wait = {2000};
  Script s(config);
  s.lost(0);
  s.lost(1);
  REQUIRE(s.pausing());
  REQUIRE(s.lock.next_deadline()->count > s.now + 20);
  s.lock.on_freed(TimeMs{s.now}, 500);
  CHECK((!s.pausing() || s.lock.next_deadline()->count <= s.now + 20));
}

TEST_CASE("redlock: a release that all servers report shortens the pause once") {
  RedlockConfig config = three_servers(DurationMs{10000});
  config.min_wait = {50};
  config.max_wait = {2000};
  Script s(config);
  s.lost(0);
  s.lost(1);
  REQUIRE(s.pausing());
  s.lock.on_freed(TimeMs{s.now}, 500);
  const std::optional<TimeMs> next = s.lock.next_deadline();
  REQUIRE(s.pausing());
  for (int i = 0; i < 20; ++i) s.lock.on_freed(TimeMs{s.now}, 500);
  CHECK(s.pausing());
  CHECK(s.lock.next_deadline() == next);
}

TEST_CASE("redlock: attempts start before the deadline, not at it and not after it") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers(DurationMs{60}));
    s.now = 1001;
    s.lost(0);
    s.lost(1);
    REQUIRE(s.pausing());
    s.at(1060 + past);
    CHECK(s.over() == (past >= 0));
    if (past >= 0) CHECK(s.outcome() == Outcome::kUnreachable);
  }
}

TEST_CASE("redlock: an attempt that runs at the deadline is finished") {
  Script s(three_servers(DurationMs{60}));
  s.at(1500);
  s.take();
}

TEST_CASE("redlock: too few replies are kUnreachable, all errors kRefused with the text, otherwise kBusy") {
  Script unreachable(three_servers());
  unreachable.lost(0);
  unreachable.lost(1);
  CHECK(unreachable.outcome() == Outcome::kUnreachable);
  Script refused(three_servers());
  refused.error(0, "RECOVERING wait");
  refused.error(1, "RECOVERING wait");
  CHECK(refused.outcome() == Outcome::kRefused);
  CHECK(refused.lock.result().message == "RECOVERING wait");
  Script busy(three_servers());
  busy.error(0, "RECOVERING wait");
  busy.null(1);
  CHECK(busy.outcome() == Outcome::kBusy);
  CHECK(busy.lock.result().servers.size() == 3);
}

TEST_CASE("redlock: permanent errors end a wait at once, other errors do not") {
  Script permanent(three_servers(DurationMs{0}));
  permanent.error(0, "ERR unknown command 'LOCK'");
  CHECK_FALSE(permanent.over());
  permanent.error(1, "ERR unknown command 'LOCK'");
  CHECK(permanent.over());
  CHECK(permanent.outcome() == Outcome::kRefused);
  Script loading(three_servers(DurationMs{0}));
  loading.error(0, "LOADING");
  loading.error(1, "LOADING");
  CHECK(loading.pausing());
}

TEST_CASE("redlock: a deadlock reported by one server ends the wait at once") {
  Script s(three_servers(DurationMs{0}));
  s.error(1, "DEADLOCK deadlock detected: the owner would wait for itself; release its locks and retry");
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kDeadlock);
  CHECK(s.unlocked() == "2A 1A 0A");
}

TEST_CASE("redlock: a hint too far ahead for a server is omitted there") {
  Script s(three_servers());
  s.sent();
  s.error(1, "ERR token is further ahead than max-token-lead allows");
  CHECK(s.sent() == "1:LOCK k A 10000");
  s.grant(1, 5);
  s.grant(0, 5);
  CHECK(s.held());
}

TEST_CASE("redlock: a renewal by a quorum counts from its sending") {
  Script s(three_servers());
  s.take();
  s.at(3000);
  s.lock.renew(TimeMs{3000}, {20000});
  CHECK_FALSE(s.lock.renewal());
  CHECK(s.sent() == "2:RENEW k A 20000|1:RENEW k A 20000|0:RENEW k A 20000");
  s.now = 3500;
  s.number(0, 1);
  CHECK(s.lock.valid_until().count == 10898);
  s.number(2, 1);
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->ok());
  CHECK(s.lock.valid_until().count == 3000 + 20000 - 200 - 2);
}

TEST_CASE("redlock: a renewal succeeds before the validity's end, not at it and not after it") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers());
    s.take();
    s.at(10800);
    s.lock.renew(TimeMs{10800}, {10000});
    s.sent();
    s.number(0, 1);
    s.now = 10898 + past;
    s.number(1, 1);
    CHECK(s.held() == (past < 0));
  }
}

TEST_CASE("redlock: a failed renewal reports why, and the hold continues until its validity ends") {
  Script s(three_servers());
  s.take();
  s.lock.renew(TimeMs{1000}, {10000});
  s.sent();
  s.number(0, 0);
  s.number(1, -1);
  REQUIRE(s.lock.renewal());
  CHECK(s.lock.renewal()->outcome == Outcome::kExpired);
  CHECK(s.held());
  s.lock.renew(TimeMs{1000}, {10000});
  s.sent();
  s.at(1999);
  CHECK_FALSE(s.lock.renewal());
  s.at(2000);
  CHECK(s.lock.renewal()->outcome == Outcome::kUnreachable);
  s.at(10898);
  CHECK(s.outcome() == Outcome::kExpired);
}

TEST_CASE("redlock: a renewal with a shorter time counts from its sending") {
  Script s(three_servers());
  s.take();
  s.lock.renew(TimeMs{1000}, {500});
  CHECK(s.lock.valid_until().count == 1493);
}

TEST_CASE("redlock: a release is kOk by a quorum, kExpired or kUnreachable without one") {
  const auto released = [](int64_t a, int64_t b, int64_t c) {  // -2: lost
    Script s(three_servers());
    s.take();
    s.lock.release(TimeMs{s.now});
    CHECK(s.sent() == "2:UNLOCK k A|1:UNLOCK k A|0:UNLOCK k A");
    size_t server = 0;
    for (const int64_t n : {a, b, c}) n == -2 ? s.lost(server++) : s.number(server++, n);
    REQUIRE(s.over());
    return s.outcome();
  };
  CHECK(released(1, 1, 0) == Outcome::kOk);
  CHECK(released(-2, 1, 1) == Outcome::kOk);
  CHECK(released(1, 0, -1) == Outcome::kExpired);
  CHECK(released(1, -2, 0) == Outcome::kUnreachable);
  CHECK(released(-2, -2, 1) == Outcome::kUnreachable);
}

TEST_CASE("redlock: a release that a server rejects does not mean that the lock was lost") {
  const auto released = [](const std::vector<int64_t>& answers) {  // -2: lost; -3: rejected
    RedlockConfig config = three_servers();
    config.servers = answers.size();
    config.quorum = answers.size() / 2 + 1;
    Script s(config);
    for (size_t server = 0; server < config.quorum; ++server) s.grant(server, 500);
    REQUIRE(s.held());
    s.lock.release(TimeMs{s.now});
    s.sent();
    for (size_t server = 0; server < answers.size() && !s.over(); ++server) {
      const int64_t n = answers[server];
      n == -3 ? s.error(server, "LOADING") : n == -2 ? s.lost(server) : s.number(server, n);
    }
    REQUIRE(s.over());
    return s.outcome();
  };
  CHECK(released({1, 1, 0, 0, -3}) == Outcome::kRefused);
  CHECK(released({1, 1, -1, 0, -3}) == Outcome::kRefused);
  CHECK(released({-3, 1, 1, 0, 0}) == Outcome::kRefused);
  CHECK(released({1, 0, -3}) == Outcome::kRefused);
  CHECK(released({-3, -3, 1}) == Outcome::kRefused);
  CHECK(released({-3}) == Outcome::kRefused);
  CHECK(released({1, 1, 0, 0, 0}) == Outcome::kExpired);
  CHECK(released({1, -3, 0, 0, 0}) == Outcome::kExpired);
  CHECK(released({-3, 0, 0}) == Outcome::kExpired);
  CHECK(released({-2, 0, 0}) == Outcome::kExpired);
  CHECK(released({1, -2, 0, 0, -3}) == Outcome::kUnreachable);
  CHECK(released({1, 1, 1, 0, -3}) == Outcome::kOk);
}

TEST_CASE("redlock: a release waits for each server until its timeout, and no longer") {
  for (const int64_t past : {-1, 0, 1}) {
    Script s(three_servers());
    s.take();
    s.lock.release(TimeMs{s.now});
    s.sent();
    s.number(0, 1);
    s.at(2000 + past);
    CHECK(s.over() == (past >= 0));
  }
}

TEST_CASE("redlock: cancelling an attempt releases it, cancelling a pause has nothing to release") {
  Script attempt(three_servers(DurationMs{0}));
  attempt.lock.release(TimeMs{1000});
  CHECK(attempt.unlocked() == "2A 1A 0A");
  CHECK(attempt.outcome() == Outcome::kCancelled);
  Script pause(three_servers(DurationMs{0}));
  pause.lost(0);
  pause.lost(1);
  REQUIRE(pause.pausing());
  pause.unlocked();
  pause.lock.release(TimeMs{1000});
  CHECK(pause.unlocked().empty());
  CHECK(pause.over());
}

TEST_CASE("redlock: the longest ttl is accepted, and one that the drift uses up is rejected") {
  RedlockConfig config = three_servers();
  config.ttl = {kMaxTtlMs};
  Script longest(config);
  longest.grant(0, 5);
  longest.grant(1, 5);
  CHECK(longest.held());
  CHECK(longest.lock.valid_until().count > kMaxTtlMs / 100 * 98);
  for (const int64_t ttl : {2, 3, 4}) {  // the drift takes 3 ms of it
    config.ttl = {ttl};
    Script s(config);
    CHECK(s.over() == (ttl <= 3));
    if (ttl <= 3) CHECK(s.outcome() == Outcome::kRefused);
  }
}

// --- one server ---

TEST_CASE("redlock: a rejection by the only server takes one request, and is kBusy") {
  Script s(one_server());
  CHECK(s.sent() == "0:LOCK k A 10000 TOKEN 500");
  s.null(0);
  CHECK(s.outcome() == Outcome::kBusy);
  CHECK(s.sent().empty());
}

TEST_CASE("redlock: with one server it waits in the server's queue, and takes its grant over") {
  Script s(one_server(DurationMs{5000}));
  s.now = 1010;
  s.sent();
  s.null(0);
  CHECK(s.sent() == "0w:LOCK k B 10000 WAIT 4990 SESSION TOKEN 500");
  const uint64_t wait = s.asked(0);
  s.now = 3000;
  s.grant(0, 600);
  CHECK_FALSE(s.held());
  CHECK(s.sent() == "0:LOCK k B 10000 TOKEN 600");
  CHECK(s.ended.empty());
  s.now = 3100;
  s.grant(0, 600);
  REQUIRE(s.held());
  CHECK(s.lock.valid_until().count == 3000 + 9898);
  CHECK(s.ended == std::vector<uint64_t>{wait});
}

TEST_CASE("redlock: a rejected take-over waits on for the rest of the time") {
  Script s(one_server(DurationMs{5000}));
  s.null(0);
  const uint64_t wait = s.asked(0);
  s.grant(0, 600);
  s.sent();
  s.now = 1900;
  s.null(0);
  CHECK(s.sent() == "0w:LOCK k C 10000 WAIT 4100 SESSION TOKEN 601");
  CHECK(s.ended == std::vector<uint64_t>{wait});
}

TEST_CASE("redlock: the server's wait ends by its reply, or by the server's timeout after it") {
  Script answered(one_server(DurationMs{500}));
  answered.null(0);
  answered.now = 1500;
  answered.null(0);
  CHECK(answered.outcome() == Outcome::kTimeout);
  for (const int64_t past : {-1, 0, 1}) {
    Script s(one_server(DurationMs{500}));
    s.null(0);
    s.at(2500 + past);
    CHECK(s.over() == (past >= 0));
    CHECK(s.ended.size() == (past >= 0 ? 1 : 0));
    if (past >= 0) CHECK(s.outcome() == Outcome::kUnreachable);
  }
}

TEST_CASE("redlock: a wait without end has no deadline, and ends by release()") {
  Script s(one_server(DurationMs{0}));
  s.sent();
  s.null(0);
  CHECK(s.sent() == "0w:LOCK k B 10000 WAIT 0 SESSION TOKEN 500");
  CHECK_FALSE(s.lock.next_deadline());
  s.lock.release(TimeMs{1000});
  CHECK(s.unlocked().empty());  // the disconnect also releases a grant that may be under way
  CHECK(s.ended.size() == 1);
  CHECK(s.outcome() == Outcome::kCancelled);
}

TEST_CASE("redlock: a wait that lost its connection is tried again after a pause") {
  Script s(one_server(DurationMs{0}));
  s.null(0);
  s.lost(0);
  REQUIRE(s.pausing());
  CHECK(s.ended.size() == 1);
  s.sent();
  s.at(s.lock.next_deadline()->count);
  CHECK(s.sent() == "0:LOCK k C 10000 TOKEN 500");
}

}  // namespace holdfast::client
