// The hand-over to the next waiter, which waits on all servers.
#include <doctest/doctest.h>

#include "unit/redlock_script.h"

namespace holdfast::client {

namespace {

RedlockConfig handing_over(size_t servers = 3) {
  RedlockConfig config = three_servers(DurationMs{60000});
  config.servers = servers;
  config.quorum = servers / 2 + 1;
  config.hands_over = true;
  return config;
}

// Waits in the queue of server 0. The ttl is 10 s: a wait is probed after 1.25 s, and too old after 2.5 s.
struct Line : Script {
  explicit Line(size_t servers = 3) : Script(handing_over(servers), {}, true) {
    CHECK(sent() == "0q:LOCK k A 10000 WAIT 60000 ASYNC QUIET NEXT BEHIND TOKEN 500");
    for (size_t server = 0; server < servers; ++server) tickets.push_back(0);
    tickets[0] = asked(0);
    REQUIRE(queueing());
  }
  void next(int64_t token = 700) {
    reply_to(tickets[0], {Reply::Kind::kNext, token, ""});
    for (size_t server = 1; server < tickets.size(); ++server) tickets[server] = asked(server);
  }
  void turn(size_t server, int64_t token = 700) {
    reply_to(tickets[server], {Reply::Kind::kGrant, token, ""});
  }
  void free(size_t server) { reply_to(tickets[server], {Reply::Kind::kText, 0, "FREE"}); }
  std::vector<uint64_t> tickets;  // the ids of the LOCKs that wait
};

struct Next : Line {
  explicit Next(size_t servers = 3) : Line(servers) {
    next();
    sent();
  }
};

void reply_old(Next& s, size_t server) {
  s.reply_to(s.tickets[server], {Reply::Kind::kError, 0, "ERR syntax error"});
}

}  // namespace

TEST_CASE("redlock next: the first waiter of the queue waits on all servers, with one hint") {
  Line s;
  s.now = 1300;
  s.next();
  CHECK(s.sent() ==
        "1q:LOCK k A 10000 WAIT 59700 ASYNC QUIET BEHIND TOKEN 700|"
        "2q:LOCK k A 10000 WAIT 59700 ASYNC QUIET BEHIND TOKEN 700");
  CHECK(s.queueing());
  s.next();  // again: nothing happens
  CHECK(s.sent().empty());
}

TEST_CASE("redlock next: the grants of a quorum are the lock, without another request") {
  Line s;
  s.now = 1300;
  s.next();
  s.sent();
  s.now = 1400;
  s.turn(2);
  CHECK(s.lock.state() == Redlock::State::kLocking);
  SUBCASE("without the first server: it counts from the LOCKs of the next one") {
    s.turn(1);
    REQUIRE(s.held());
    CHECK(s.lock.valid_until().count == 1300 + 10000 - 102);
  }
  SUBCASE("with the first server: it counts from the LOCK there") {
    s.turn(0);
    REQUIRE(s.held());
    CHECK(s.lock.valid_until().count == 1000 + 10000 - 102);
  }
  CHECK(s.lock.token() == 700);
  CHECK(s.sent().empty());
  CHECK(s.ended.empty());
}

TEST_CASE("redlock next: a grant that follows the hold belongs to it") {
  Next s;
  s.turn(0);
  s.turn(1);
  REQUIRE(s.held());
  s.turn(2);
  CHECK(s.sent().empty());
  CHECK(s.lock.result().servers[2].token == 700);
  s.lock.release(TimeMs{s.now});
  CHECK(s.sent() == "0:UNLOCK k A|1:UNLOCK k A|2:UNLOCK k A");
}

TEST_CASE("redlock next: the release reaches a server that has not granted behind the LOCK") {
  Next s;
  s.turn(0);
  s.turn(1);
  s.lock.release(TimeMs{s.now});
  CHECK(s.sent() == "0:UNLOCK k A|1:UNLOCK k A|2q:UNLOCK k A WAITS");
  s.turn(2);  // its UNLOCK follows
  CHECK(s.sent().empty());
  s.number(0, 1);
  s.number(2, 1);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kOk);
  CHECK(s.lock.settled());
}

// On another connection the end of the wait could arrive later, and free the server before its time.
TEST_CASE("redlock next: a hold that at_least keeps is kept behind the end of an open wait") {
  Next s;
  s.turn(0);
  s.turn(1);
  s.lock.release(TimeMs{s.now}, {5000});
  CHECK(s.sent() == "0:RENEW k A 5053|1:RENEW k A 5053|2q:UNLOCK k A WAITS|2q:RENEW k A 5053");
  s.turn(2);  // came before the UNLOCK, which released it
  s.number(2, 0);
  s.number(0, 1);
  s.number(1, 1);
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kOk);
  CHECK(s.sent().empty());
  CHECK(s.lock.settled());
}

TEST_CASE("redlock next: servers without quiet waits beside that of the queue: it waits in the older way") {
  Next s;
  reply_old(s, 1);
  CHECK(s.queueing());  // two servers may still grant it
  reply_old(s, 2);
  CHECK(s.lock.state() == Redlock::State::kPausing);
  CHECK(s.sent() == "2:UNLOCK k A WAITS|1:UNLOCK k A WAITS|0q:UNLOCK k A WAITS");
  s.at(s.now + 200);
  s.sent();
  for (const size_t server : {0, 1, 2}) s.null(server);
  CHECK(s.sent().find("0w:LOCK k C 10000 WAIT") != std::string::npos);
}

TEST_CASE("redlock next: a wait whose connection broke may have been granted, and is released") {
  Line s;
  s.reply_to(s.tickets[0], {Reply::Kind::kLost, 0, "gone"});
  CHECK(s.sent() == "0:UNLOCK k A WAITS");
}

TEST_CASE("redlock next: the timeout of a wait does not release the hold") {
  Next s;
  s.at(40000);
  s.sent();
  for (const size_t server : {0, 1, 2}) s.text(server, "PONG");
  s.turn(0);
  s.turn(1);
  REQUIRE(s.held());
  s.lock.renew(TimeMs{s.now}, DurationMs{100000});
  s.sent();
  s.number(0, 1);
  s.number(1, 1);
  s.at(61999);
  CHECK(s.ended.empty());
  s.at(62000);
  CHECK(s.ended == std::vector<uint64_t>{s.tickets[2]});
  CHECK(s.sent().empty());
  CHECK(s.held());
}

TEST_CASE("redlock next: different tokens are raised by FENCE") {
  Next s;
  s.turn(0, 700);
  CHECK(s.sent().empty());
  s.turn(1, 702);  // at once: the third grant may wait for the release of another client
  CHECK(s.sent() == "0:FENCE k A 702|1:FENCE k A 702");
  SUBCASE("the two confirm it") {}
  SUBCASE("the third grant comes meanwhile") {
    s.turn(2, 701);
    CHECK(s.sent() == "2:FENCE k A 702");
  }
  s.number(0, 702);
  s.number(1, 702);
  REQUIRE(s.held());
  CHECK(s.lock.token() == 702);
}

TEST_CASE("redlock next: a PING keeps a wait young") {
  Next s;
  s.at(2000);
  CHECK(s.sent().empty());
  s.at(2001);  // 10 times max_wait, which is less than an eighth of the ttl
  CHECK(s.sent() == "0q:PING|1q:PING|2q:PING");
  s.text(0, "PONG");
  s.text(1, "PONG");
  s.now = 4500;
  s.turn(0);
  s.turn(1);
  REQUIRE(s.held());
  CHECK(s.lock.valid_until().count == 2001 + 10000 - 102);
}

TEST_CASE("redlock next: a grant before the reply to PING is as old as its LOCK") {
  Next s;
  s.at(2250);
  s.sent();
  s.now = 2300;
  s.turn(0);
  s.text(0, "PONG");
  s.text(1, "PONG");
  s.turn(1);
  REQUIRE(s.held());
  CHECK(s.lock.valid_until().count == 1000 + 10000 - 102);
}

TEST_CASE("redlock next: a grant that is too old is repeated, and counts from there") {
  Next s;
  SUBCASE("before") { s.now = 3499; }
  SUBCASE("at") { s.now = 3500; }
  SUBCASE("after") { s.now = 3501; }
  const bool old = s.now >= 3500;
  s.lock.on_time(TimeMs{s.now}, 500);
  s.sent();
  s.turn(1);
  s.turn(2);
  if (old) {
    CHECK(s.sent() == "1:LOCK k A 10000 TOKEN 700|2:LOCK k A 10000 TOKEN 700");
    s.grant(1, 700);
    s.grant(2, 700);
  }
  REQUIRE(s.held());
  CHECK(s.lock.valid_until().count == (old ? s.now : 1000) + 10000 - 102);
}

TEST_CASE("redlock next: a waiter that was long in the queue probes its place at once") {
  Line s;
  s.now = 2250;
  s.next();
  s.sent();
  s.at(2250);
  CHECK(s.sent() == "0q:PING|1q:PING|2q:PING");
}

TEST_CASE("redlock next: from its first grant on it waits for a limited time") {
  Next s(5);
  s.dice = [](uint64_t n) { return n - 1; };  // max_wait + 1
  s.now = 1010;
  s.turn(0);
  s.turn(1);
  s.at(1110);
  CHECK(s.lock.state() == Redlock::State::kLocking);
  CHECK(s.sent().empty());
  s.at(1111);
  CHECK(s.pausing());
  CHECK(s.sent() ==
        "1:UNLOCK k A|0:UNLOCK k A|2q:UNLOCK k A WAITS|3q:UNLOCK k A WAITS|4q:UNLOCK k A WAITS");
}

TEST_CASE("redlock next: a wait that broke is replaced") {
  Next s;
  s.reply_to(s.tickets[2], {Reply::Kind::kLost, 0, "gone"});
  CHECK(s.queueing());
  CHECK(s.sent().empty());
  s.at(2250);
  CHECK(s.sent() == "0q:PING|1q:PING|2q:LOCK k A 10000 WAIT 58750 ASYNC QUIET BEHIND TOKEN 700");
  SUBCASE("the place in the queue may break, too") {
    s.reply_to(s.tickets[0], {Reply::Kind::kLost, 0, "gone"});
    s.turn(1);
    s.grant(2, 700);
    CHECK(s.held());
  }
  SUBCASE("too few are left") {
    s.reply_to(s.tickets[0], {Reply::Kind::kLost, 0, "gone"});
    s.reply_to(s.tickets[1], {Reply::Kind::kLost, 0, "gone"});
    CHECK(s.pausing());
    CHECK(s.sent() == "1:UNLOCK k A WAITS|0:UNLOCK k A WAITS|2q:UNLOCK k A WAITS");
  }
}

TEST_CASE("redlock next: a cancelled wait leaves nothing behind") {
  Next s;
  s.lock.release(TimeMs{s.now});
  CHECK(s.over());
  CHECK(s.sent() == "0q:UNLOCK k A WAITS|1q:UNLOCK k A WAITS|2q:UNLOCK k A WAITS");
  CHECK_FALSE(s.lock.settled());
  SUBCASE("the servers answer") {
    for (const uint64_t ticket : s.tickets) s.reply_to(ticket, {Reply::Kind::kNull, 0, ""});
    CHECK(s.sent().empty());
  }
  SUBCASE("a grant came before") {
    for (const uint64_t ticket : s.tickets) s.reply_to(ticket, {Reply::Kind::kGrant, 700, ""});
    CHECK(s.sent().empty());
  }
  SUBCASE("the connections broke: a grant may have been lost") {
    for (const uint64_t ticket : s.tickets) s.reply_to(ticket, {Reply::Kind::kLost, 0, "gone"});
    CHECK(s.sent() == "0:UNLOCK k A WAITS|1:UNLOCK k A WAITS|2:UNLOCK k A WAITS");
  }
  SUBCASE("the servers are silent") {
    s.at(1999);
    CHECK(s.ended.empty());
    s.at(2000);
    CHECK(s.ended == s.tickets);
  }
  CHECK(s.lock.settled());
}

TEST_CASE("redlock next: a waiter that is not the next one cancels its place") {
  Line s;
  s.lock.release(TimeMs{s.now});
  CHECK(s.sent() == "0q:UNLOCK k A WAITS");
  s.reply_to(s.tickets[0], {Reply::Kind::kNull, 0, ""});
  CHECK(s.lock.settled());
}

TEST_CASE("redlock next: the end of the wait by the servers' clocks") {
  Next s;
  s.at(61000);
  s.sent();
  s.reply_to(s.tickets[0], {Reply::Kind::kNull, 0, ""});
  s.reply_to(s.tickets[1], {Reply::Kind::kNull, 0, ""});
  CHECK(s.over());
  CHECK(s.outcome() == Outcome::kTimeout);
  CHECK(s.sent() == "1:UNLOCK k A|0:UNLOCK k A|2q:UNLOCK k A WAITS");
}

TEST_CASE("redlock next: it may become the next one while it asks the other servers") {
  Line s;
  s.at(3001);  // the longest time until then
  CHECK(s.sent() == "1:LOCK k B 10000 TOKEN 500|2:LOCK k B 10000 TOKEN 500");
  s.next();
  CHECK(s.sent().starts_with("2:UNLOCK k B|1:UNLOCK k B|0:UNLOCK k B|1q:LOCK k A 10000 WAIT 57999"));
  CHECK(s.queueing());
}

TEST_CASE("redlock next: a grant without a notice asks the other servers, as on older servers") {
  Line s;
  s.turn(0);
  CHECK(s.sent() == "0:LOCK k A 10000 TOKEN 700|1:LOCK k A 10000 TOKEN 700|2:LOCK k A 10000 TOKEN 700");
}

TEST_CASE("redlock next: a queue without a holder: the lock has become free") {
  Line s;
  s.free(0);
  CHECK(s.sent() == "0:LOCK k B 10000 TOKEN 500|1:LOCK k B 10000 TOKEN 500|2:LOCK k B 10000 TOKEN 500");
  s.grant(0, 500);
  s.grant(1, 500);
  CHECK(s.held());
}

TEST_CASE("redlock next: a queue without a holder: if others have one, the wait moves to them") {
  Script s(handing_over());
  s.grant(0, 500);
  s.null(1);
  s.null(2);
  CHECK(s.sent().ends_with("|0q:LOCK k B 10000 WAIT 60000 ASYNC QUIET NEXT BEHIND TOKEN 501"));
  s.text(0, "FREE");
  CHECK(s.sent() == "1q:LOCK k C 10000 WAIT 60000 ASYNC QUIET NEXT BEHIND TOKEN 501");
  SUBCASE("another server has lost the hold, too") {
    s.text(1, "FREE");
    CHECK(s.sent().starts_with("0:LOCK k D"));
  }
  CHECK_FALSE(s.over());
}

TEST_CASE("redlock next: a server that does not know QUIET gets the other kind of wait") {
  Line s;
  s.error(0, "ERR syntax error");
  CHECK(s.sent() == "0w:LOCK k B 10000 WAIT 60000 SESSION TOKEN 500");
  CHECK(s.queueing());
}

TEST_CASE("redlock next: where another server does not know QUIET, the others suffice") {
  Next s;
  s.reply_to(s.tickets[1], {Reply::Kind::kError, 0, "ERR syntax error"});
  s.turn(0);
  s.turn(2);
  CHECK(s.held());
}

TEST_CASE("redlock next: a hint that is too far ahead is left out") {
  Next s;
  s.reply_to(s.tickets[1],
             {Reply::Kind::kError, 0, "ERR token is further ahead than max-token-lead allows"});
  CHECK(s.sent() == "1q:LOCK k A 10000 WAIT 60000 ASYNC QUIET BEHIND");
}

TEST_CASE("redlock next: a server without a holder gets no LOCK while the others have one") {
  Next s;
  s.free(1);
  CHECK(s.queueing());
  CHECK(s.sent().empty());
  s.at(2001);  // the holder may have repaired it
  CHECK(s.sent() == "0q:PING|1q:LOCK k A 10000 WAIT 58999 ASYNC QUIET BEHIND TOKEN 700|2q:PING");
  s.turn(0);
  s.turn(2);
  REQUIRE(s.held());
  s.lock.release(TimeMs{s.now});
  CHECK(s.sent() == "0:UNLOCK k A|1q:UNLOCK k A WAITS|2:UNLOCK k A");
}

TEST_CASE("redlock next: a server that was released before the wait arrived gets LOCK at the turn") {
  Next s;
  SUBCASE("it answers first") {
    s.free(1);
    s.turn(0);
  }
  SUBCASE("it answers last") {
    s.turn(0);
    s.free(1);
  }
  CHECK(s.sent() == "1q:LOCK k A 10000 WAIT 60000 ASYNC QUIET TOKEN 700");
  s.grant(1, 700);
  REQUIRE(s.held());
  CHECK(s.lock.valid_until().count == 1000 + 10000 - 102);
}

TEST_CASE("redlock next: a quorum of servers without a holder is enough, whatever the queue's server has") {
  Next s;
  s.free(1);
  CHECK(s.sent().empty());
  s.free(2);
  CHECK(s.sent() ==
        "1q:LOCK k A 10000 WAIT 60000 ASYNC QUIET TOKEN 700|"
        "2q:LOCK k A 10000 WAIT 60000 ASYNC QUIET TOKEN 700");
  s.grant(1, 700);
  s.grant(2, 700);
  REQUIRE(s.held());
  s.lock.release(TimeMs{s.now});
  CHECK(s.sent() == "0q:UNLOCK k A WAITS|1:UNLOCK k A|2:UNLOCK k A");
}

TEST_CASE("redlock next: a grant without those of the others is given back, and the wait goes on") {
  Next s;
  s.dice = [](uint64_t n) { return n - 1; };  // max_wait + 1
  s.now = 1010;
  s.turn(2);
  s.at(1110);
  CHECK(s.sent().empty());
  s.at(1111);
  CHECK(s.queueing());
  CHECK(s.sent() == "2:UNLOCK k A");
  s.at(2111);
  CHECK(s.sent() == "0q:PING|1q:PING");  // server 2 has seen this owner's UNLOCK
  SUBCASE("the others grant later") {
    s.turn(0);
    s.turn(1);
    REQUIRE(s.held());
    CHECK(s.lock.valid_until().count == 1000 + 10000 - 102);
  }
  SUBCASE("with another grant like this too few servers are left") {
    s.turn(1);
    s.at(s.now + 101);
    CHECK(s.pausing());
    CHECK(s.sent() == "1:UNLOCK k A|2:UNLOCK k A|1:UNLOCK k A|0q:UNLOCK k A WAITS");
  }
}

TEST_CASE("redlock next: the wait goes on if a grant was given back and another server is down") {
  Next s;
  s.dice = [](uint64_t n) { return n - 1; };
  s.reply_to(s.tickets[1], {});
  s.turn(2);
  s.at(1101);
  CHECK(s.queueing());  // behind the holder, and not with a new owner on server 2
  CHECK(s.sent() == "2:UNLOCK k A");
  s.at(2201);
  CHECK(s.sent() == "0q:PING|1q:LOCK k A 10000 WAIT 58799 ASYNC QUIET BEHIND TOKEN 700");
  SUBCASE("the server comes back") {
    s.text(1, "FREE");
    s.turn(0);
    CHECK(s.sent() == "1q:LOCK k A 10000 WAIT 58799 ASYNC QUIET TOKEN 700");
    s.grant(1, 700);
    CHECK(s.held());
  }
  SUBCASE("it does not: the release of the holder ends this attempt") {
    s.lost(1);
    s.turn(0);
    CHECK(s.pausing());
  }
}

TEST_CASE("redlock next: a free server that has got another holder is waited for") {
  Next s;
  s.dice = [](uint64_t n) { return n - 1; };
  s.free(1);
  s.turn(2);
  CHECK(s.sent() == "1q:LOCK k A 10000 WAIT 60000 ASYNC QUIET TOKEN 700");
  const uint64_t ticket = s.asked(1);
  s.at(1101);  // the holder has repaired it, and keeps the lock
  CHECK(s.queueing());
  CHECK(s.sent() == "2:UNLOCK k A");
  s.turn(0);
  s.reply_to(ticket, {Reply::Kind::kGrant, 700, ""});
  CHECK(s.held());
}

TEST_CASE("redlock next: a hint that is too far ahead for a free server is left out") {
  Next s;
  s.free(1);
  s.turn(0);
  s.sent();
  s.error(1, "ERR token is further ahead than max-token-lead allows");
  CHECK(s.sent() == "1q:LOCK k A 10000 WAIT 60000 ASYNC QUIET");
}

TEST_CASE("redlock next: a LOCK that repeats a grant and has no answer is released with the grant") {
  Next s(5);
  s.dice = [](uint64_t n) { return n - 1; };
  s.at(3500);  // the grants are too old
  for (const size_t server : {1, 2, 3}) s.turn(server);
  s.sent();
  s.at(3601);
  CHECK(s.pausing());  // too few servers are left
  CHECK(s.unlocked() == "1A 2A 3A 3A 2A 1A 0A 4A");
  s.grant(1, 700);
  CHECK(s.unlocked() == "1A");
}

TEST_CASE("redlock next: a repeated LOCK that is granted after its timeout ends the new wait there, too") {
  RedlockConfig config = handing_over();
  config.server_timeout = {50};
  Script s(config, {}, true);
  s.dice = [](uint64_t n) { return n - 1; };  // max_wait + 1
  s.reply_to(s.asked(0), {Reply::Kind::kNext, 700, ""});
  const uint64_t ticket = s.asked(1);
  s.at(3500);  // the grant is too old
  s.reply_to(ticket, {Reply::Kind::kGrant, 700, ""});
  CHECK(s.sent().ends_with("|1:LOCK k A 10000 TOKEN 700"));
  const uint64_t late = s.asked(1);
  s.at(3550);
  s.at(3601);
  s.at(4502);
  CHECK(s.sent() == "0q:PING|1q:LOCK k A 10000 WAIT 56498 ASYNC QUIET BEHIND TOKEN 700|2q:PING");
  const uint64_t wait = s.asked(1);
  s.reply_to(late, {Reply::Kind::kGrant, 700, ""});
  CHECK(s.sent() == "1q:UNLOCK k A WAITS|1:UNLOCK k A");
  s.reply_to(wait, {Reply::Kind::kGrant, 700, ""});
  CHECK(s.queueing());
  CHECK(s.sent().empty());
}

TEST_CASE("redlock next: a wait without an answer does not undo the grant of a LOCK to the same server") {
  RedlockConfig config = handing_over();
  config.server_timeout = {50};
  Script s(config, {}, true);
  s.reply_to(s.asked(0), {Reply::Kind::kNext, 700, ""});
  const uint64_t first = s.asked(1);
  const uint64_t second = s.asked(2);
  s.at(3500);  // the grant is too old
  s.reply_to(first, {Reply::Kind::kGrant, 700, ""});
  const uint64_t late = s.asked(1);
  s.at(3550);
  s.at(3700);
  s.at(4900);
  const uint64_t wait = s.asked(1);
  REQUIRE(wait != late);
  s.reply_to(second, {Reply::Kind::kGrant, 700, ""});
  s.reply_to(s.asked(2), {Reply::Kind::kGrant, 700, ""});
  s.reply_to(late, {Reply::Kind::kGrant, 700, ""});
  REQUIRE(s.held());
  s.reply_to(wait, {Reply::Kind::kLost, 0, "gone"});
  CHECK(s.held());
}

}  // namespace holdfast::client
