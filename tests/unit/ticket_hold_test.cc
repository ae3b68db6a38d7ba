// A lock that was acquired by ticket: confirming, renewing, repairing and releasing it (rule C7).
#include <doctest/doctest.h>

#include "unit/ticket_script.h"

namespace holdfast::client {

namespace {

using State = TicketWait::State;

// Holds the lock by the votes of the servers 0 and 1; server 2 has queued it.
struct Held : TicketScript {
  explicit Held(TicketConfig with = ticket_config()) : TicketScript(std::move(with)) {
    queued(2);
    vote(0, 700);
    vote(1, 700);
    REQUIRE(holding());
    skip();
  }
  // Confirmed at 10 ms, with server 2 asked to repair.
  void confirm() {
    at(10'000);
    number(0, "RENEW", 700);
    number(1, "RENEW", 700);
    REQUIRE(wait->confirmed());
    skip();
  }
  // Server 2 votes then, and confirms.
  void confirm_everywhere() {
    confirm();
    push_vote(2, 700);
    number(2, "RENEW", 700);
  }
  int64_t valid_until() const { return wait->valid_until().count - 1'000'000; }
};

}  // namespace

TEST_CASE("ticket hold: the votes are confirmed 10 ms after the acquisition, from the round's begin on") {
  Held s;
  CHECK(s.valid_until() == 493'000);
  s.at(9'999);
  CHECK(s.sent().empty());
  s.at(10'000);
  CHECK(s.sent() == "0:RENEW k s.1 1000 TOKEN 700|1:RENEW k s.1 1000 TOKEN 700");
  s.number(0, "RENEW", 700);
  CHECK(!s.wait->confirmed());
  CHECK(s.valid_until() == 493'000);
  s.now = {1'015'000};
  s.number(1, "RENEW", 700);
  CHECK(s.wait->confirmed());
  CHECK(s.valid_until() == 10'000 + 990'000 - 2'000);
}

TEST_CASE("ticket hold: after the confirmation the other servers get the wait with the hold's token") {
  Held s;
  s.at(10'000);
  s.skip();
  s.number(0, "RENEW", 700);
  CHECK(s.sent().empty());
  s.number(1, "RENEW", 700);
  CHECK(s.sent() == "2:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000");
  CHECK(s.wait->heartbeat_every() == DurationUs{300'000});
  s.push_vote(2, 710);
  CHECK(s.sent() == "2:RENEW k s.1 1000 TOKEN 710");
  s.number(2, "RENEW", 710);
  CHECK(s.wait->heartbeat_every() == kForeverUs);
  CHECK(s.wait->token() == 700);
}

TEST_CASE("ticket hold: a vote that comes before the confirmation is confirmed with the others") {
  Held s;
  s.push_vote(2, 700);
  CHECK(s.sent().empty());
  s.at(10'000);
  CHECK(s.sent().ends_with("|2:RENEW k s.1 1000 TOKEN 700"));
}

TEST_CASE("ticket hold: a round without a quorum of answers is repeated, not after a third of the TTL") {
  Held s;
  s.at(10'000);
  s.skip();
  s.number(0, "RENEW", 700);
  s.at(59'999);
  CHECK(s.sent().empty());
  s.at(60'000);
  CHECK(s.sent() == "1:RENEW k s.1 1000 TOKEN 700");
  s.number(1, "RENEW", 700);
  CHECK(s.valid_until() == 10'000 + 988'000);
}

TEST_CASE("ticket hold: answers to an earlier round do not count") {
  Held s;
  s.at(10'000);
  const Asked early = s.asked(1, "RENEW");
  for (int64_t us = 60'000; us <= 260'000; us += 50'000) s.at(us);  // after a quarter of the TTL
  s.number(0, "RENEW", 700);
  s.answer_to(early, Count{700});
  CHECK(!s.wait->confirmed());
}

TEST_CASE("ticket hold: the lock is lost when its validity ends, and the servers are told") {
  Held s;
  s.at(10'000);
  s.at(492'999);
  CHECK(s.holding());
  s.skip();
  s.at(493'000);
  CHECK(s.wait->outcome() == Outcome::kExpired);
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
}

TEST_CASE("ticket hold: a renewal begins a validity of its TTL, and never ends the present one early") {
  Held s;
  s.confirm();
  s.at(300'000);
  s.wait->renew(s.now, {2000});
  CHECK(!s.wait->renewal());
  s.number(0, "RENEW", 700);
  s.number(1, "RENEW", 700);
  CHECK(s.wait->renewal() == Outcome::kOk);
  CHECK(s.valid_until() == 300'000 + 1'978'000);
  s.wait->renew(s.now, {100});
  s.number(0, "RENEW", 700);
  s.number(1, "RENEW", 700);
  CHECK(s.valid_until() == 300'000 + 1'978'000);
}

TEST_CASE(
    "ticket hold: a renewal without answers fails at the server's timeout, and is repeated all the same") {
  TicketConfig config = ticket_config();
  config.server_timeout = {200'000};
  Held s(config);
  s.confirm();
  s.wait->renew(s.now, {1000});
  s.at(209'999);
  CHECK(!s.wait->renewal());
  s.at(210'000);
  CHECK(s.wait->renewal() == Outcome::kUnreachable);
  s.number(0, "RENEW", 700);
  s.number(1, "RENEW", 700);
  CHECK(s.wait->renewal() == Outcome::kOk);
}

TEST_CASE("ticket hold: a renewal fails as soon as too few servers can confirm it, and goes on") {
  Held s;
  s.confirm_everywhere();
  s.wait->renew(s.now, {1000});
  s.skip();
  const Refusal lost{Refusal::Code::kLost, "connection refused"};
  s.answer_to(s.asked(0, "RENEW"), lost);
  CHECK(!s.wait->renewal());
  s.answer_to(s.asked(1, "RENEW"), lost);
  CHECK(s.wait->renewal() == Outcome::kUnreachable);
  s.wait->on_connection(0, s.now);
  CHECK(s.sent() == "0:RENEW k s.1 1000 TOKEN 700");
  s.number(0, "RENEW", 700);
  s.number(2, "RENEW", 700);
  CHECK(s.wait->renewal() == Outcome::kOk);
}

TEST_CASE("ticket hold: a renewal without repair fails when a server without the hold would be needed") {
  Held s;
  s.confirm();
  s.wait->renew(s.now, {1000}, false);
  s.skip();
  s.number(0, "RENEW", 700);
  CHECK(!s.wait->renewal());
  s.answer_to(s.asked(1, "RENEW"), Refusal{Refusal::Code::kLost, "connection refused"});
  CHECK(s.wait->renewal() == Outcome::kUnreachable);
  s.at(20'000);
  s.wait->renew(s.now, {1000});
  s.skip();
  s.number(0, "RENEW", 700);
  CHECK(s.sent() == "2:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000");
}

TEST_CASE("ticket hold: a lock that too many servers are without is lost at once, but is kept to its end") {
  Held s;
  s.confirm();
  s.wait->renew(s.now, {1000});
  s.skip();
  s.number(0, "RENEW", 0);  // and server 2 has not got it yet
  CHECK(s.wait->renewal() == Outcome::kExpired);
  CHECK(s.holding());
  s.number(1, "RENEW", 700);
  s.wait->renew(s.now, {1000});
  s.push_vote(2, 701);
  s.inquire(1, 700);
  s.wait->on_connection(0, s.now);
  s.wait->on_restart(1, s.now);
  CHECK(s.wait->renewal() == Outcome::kExpired);
  CHECK(s.deadline() == s.valid_until());
  s.at(s.valid_until() - 1);
  CHECK(s.sent().empty());
  s.at(s.valid_until());
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
  CHECK(s.wait->outcome() == Outcome::kExpired);
}

TEST_CASE("ticket hold: a lost lock is released when its user says so") {
  Held s;
  s.at(10'000);
  s.skip();
  s.number(0, "RENEW", -1);
  CHECK(s.wait->renewal() == Outcome::kExpired);
  s.wait->release(s.now);
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
  CHECK(s.wait->outcome() == Outcome::kExpired);
}

TEST_CASE("ticket hold: a server that has lost the hold gets it again when a quorum still has it") {
  Held s;
  s.confirm_everywhere();
  s.wait->renew(s.now, {1000});
  s.skip();
  s.number(0, "RENEW", -1);  // the last round says that server 1 and 2 have it, also while they are down
  CHECK(s.sent() == "0:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000");
  CHECK(s.holding());
}

TEST_CASE("ticket hold: a lock whose votes were ended by force is lost at once, also if there are others") {
  for (const bool confirming : {false, true}) {
    Held s;
    if (confirming) s.at(10'000);
    s.push_vote(0, 701);  // in place of 700
    s.push_vote(1, 701);
    s.at(10'000);
    CHECK(s.wait->renewal() == Outcome::kExpired);
    s.skip();
    s.wait->renew(s.now, {1000});
    s.push_vote(0, 702);
    s.inquire(0, 702);
    CHECK(s.sent().empty());
  }
}

TEST_CASE("ticket hold: a vote in place of another one is no hold until a quorum has the hold") {
  Held s;
  s.push_vote(2, 700);
  s.push_vote(2, 701);
  s.at(10'000);
  CHECK(s.sent() == "0:RENEW k s.1 1000 TOKEN 700|1:RENEW k s.1 1000 TOKEN 700");
  s.number(0, "RENEW", 700);
  CHECK(s.sent().empty());
  s.number(1, "RENEW", 700);
  CHECK(s.sent() == "2:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000");
  s.vote(2, 701);
  CHECK(s.sent() == "2:RENEW k s.1 1000 TOKEN 701");
}

TEST_CASE("ticket hold: a RENEW that finds a larger token has found another vote") {
  Held s;
  s.at(10'000);
  s.number(0, "RENEW", 705);
  CHECK(s.wait->renewal() == Outcome::kExpired);  // server 2 has queued it
}

TEST_CASE("ticket hold: a late answer from before a repair does not end it") {
  Held s;
  s.confirm_everywhere();
  s.wait->renew(s.now, {1000});
  const Asked first = s.asked(0, "RENEW");
  s.at(500'000);  // the renewal is repeated
  s.number(0, "RENEW", 0);
  s.skip();
  s.number(1, "RENEW", 700);
  s.vote(0, 710);
  s.answer_to(first, Count{0});
  CHECK(s.sent() == "0:RENEW k s.1 1000 TOKEN 710");
  s.number(0, "RENEW", 710);
  CHECK(s.wait->heartbeat_every() == kForeverUs);
}

TEST_CASE("ticket hold: a new connection gets the renewal that was not answered, or the repair") {
  Held s;
  s.at(10'000);
  s.number(0, "RENEW", 700);
  s.skip();
  s.wait->on_connection(0, s.now);
  CHECK(s.sent().empty());
  s.wait->on_connection(1, s.now);
  CHECK(s.sent() == "1:RENEW k s.1 1000 TOKEN 700");
  s.number(1, "RENEW", 700);
  s.skip();
  s.wait->on_connection(2, s.now);
  CHECK(s.sent() == "2:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000");
}

TEST_CASE("ticket hold: a release is complete when a quorum has ended the hold") {
  Held s;
  s.wait->release(s.now);
  CHECK(s.state() == State::kReleasing);
  s.number(0, "UNLOCK", 1);
  CHECK(!s.wait->outcome());
  s.number(1, "UNLOCK", 1);
  CHECK(s.wait->outcome() == Outcome::kOk);
  CHECK(!s.wait->settled());
  s.number(2, "UNLOCK", 0);
  CHECK(s.wait->settled());
}

TEST_CASE("ticket hold: a release that finds no quorum of holds tells that the lock had expired") {
  Held s;
  s.wait->release(s.now);
  s.number(0, "UNLOCK", 0);
  s.number(1, "UNLOCK", 1);
  s.number(2, "UNLOCK", 0);
  CHECK(s.wait->outcome() == Outcome::kExpired);
}

TEST_CASE("ticket hold: a repeated UNLOCK that finds no hold does not mean that the lock had expired") {
  Held s;
  s.wait->release(s.now);
  s.skip();
  const Asked first = s.asked(0, "UNLOCK");
  s.wait->on_connection(0, s.now);
  s.number(0, "UNLOCK", 0);
  s.number(2, "UNLOCK", 0);  // queued there
  CHECK(!s.wait->outcome());
  s.number(1, "UNLOCK", 1);
  CHECK(s.wait->outcome() == Outcome::kOk);
  s.answer_to(first, Count{1});
  CHECK(s.wait->outcome() == Outcome::kOk);
}

TEST_CASE(
    "ticket hold: a release without answers ends with the server's timeout, its requests with the TTL") {
  Held s;
  s.wait->release(s.now);
  s.at(999'999);
  CHECK(!s.wait->outcome());
  s.at(1'000'000);
  CHECK(s.wait->outcome() == Outcome::kUnreachable);
  s.at(1'099'999);
  CHECK(!s.wait->settled());
  s.at(1'100'000);
  CHECK(s.wait->settled());
}

TEST_CASE("ticket hold: a lock that is kept for a while is shortened to that, and ended then") {
  Held s;
  s.at(5'000);
  s.wait->release(s.now, {100'000});
  CHECK(s.state() == State::kKeeping);
  CHECK(s.sent() ==
        "0:RENEW k s.1 95 TOKEN 700|0:RENEW k s.1 95|1:RENEW k s.1 95 TOKEN 700|1:RENEW k s.1 95");
  s.number(0, "RENEW", 1);
  CHECK(!s.wait->outcome());
  s.number(1, "RENEW", 1);
  CHECK(s.wait->outcome() == Outcome::kOk);
  s.at(60'000);
  s.push_vote(2, 701);
  CHECK(s.sent() == "2:RENEW k s.1 40 TOKEN 701|2:RENEW k s.1 40");
  s.at(99'999);
  CHECK(s.sent().empty());
  s.at(100'000);
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
  CHECK(s.wait->outcome() == Outcome::kOk);
}

TEST_CASE("ticket hold: a lock is not kept when it was held for long enough") {
  Held s;
  s.at(100'000);
  s.skip();
  s.wait->release(s.now, {100'000});
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
}

TEST_CASE("ticket hold: the next acquisition of the slot tells that the last one is over") {
  Held s;
  s.wait->release(s.now);
  s.skip();
  TicketWait next(s.config, s.slot, std::span<const Pulse>(s.pulses));
  next.acquire(s.now, 800);
  const auto requests = next.take_requests();
  CHECK(std::get<WaitRequest>(requests[0].request).owner == "s.2");
  CHECK(std::get<WaitRequest>(requests[0].request).ticket == 800);
  s.number(0, "UNLOCK", 1);
  s.wait->on_connection(1, s.now);
  CHECK(s.sent().empty());
}

}  // namespace holdfast::client
