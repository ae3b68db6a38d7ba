// A wait by ticket: how an attempt gets the votes of a quorum, and gives them back. docs/safety.md has the
// rules.
#include <doctest/doctest.h>

#include "unit/ticket_script.h"

namespace holdfast::client {

namespace {

using State = TicketWait::State;

}  // namespace

TEST_CASE("ticket wait: an uncontended lock takes one request to each server") {
  TicketScript s;
  CHECK(s.sent() ==
        "0:LOCK k s.1 500 TICKET 700 TOKEN 700|1:LOCK k s.1 500 TICKET 700 TOKEN 700|"
        "2:LOCK k s.1 500 TICKET 700 TOKEN 700");
  s.vote(0, 700);
  CHECK(s.waiting());
  s.vote(1, 700);
  REQUIRE(s.holding());
  CHECK(s.wait->token() == 700);
  CHECK(s.wait->valid_until() == TimeUs{1'000'000 + 493'000});
  CHECK(!s.wait->confirmed());
  CHECK(s.sent().empty());
  s.wait->release(s.now);
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
}

TEST_CASE("ticket wait: the life of a vote is half of the TTL, and long enough for the link") {
  TicketConfig config = ticket_config();
  config.ttl = {30'000};
  CHECK(TicketScript(config).sent().starts_with("0:LOCK k s.1 1000 TICKET"));
  TicketSlot slot("s", 3);
  std::vector<Pulse> pulses(3);
  for (Pulse& pulse : pulses) {
    pulse.open({0});
    pulse.sent({0});
    pulse.answered(1, {0}, {400'000});
  }
  TicketWait wait(config, slot, std::span<const Pulse>(pulses));
  wait.acquire({1'000'000}, 700);
  CHECK(std::get<WaitRequest>(wait.take_requests()[0].request).life == DurationMs{2400});
}

TEST_CASE("ticket wait: C1: a ticket below the floor of a majority is raised above it, once") {
  TicketScript s;
  s.skip();
  s.queued(0, 699);
  CHECK(s.sent().empty());
  s.queued(1, 700);
  CHECK(s.sent() ==
        "0:LOCK k s.1 500 TICKET 701 TOKEN 700 SEEN 6000|1:LOCK k s.1 500 TICKET 701 TOKEN 700 SEEN 6000|"
        "2:LOCK k s.1 500 TICKET 701 TOKEN 700");
  s.queued(2, 5000);
  CHECK(s.sent().empty());
  CHECK(s.slot.clock_is_late);
  CHECK(s.slot.floor == 5000);
}

TEST_CASE("ticket wait: C1: a ticket above the floors is not sent again") {
  TicketScript s;
  s.skip();
  s.queued(0, 699);
  s.queued(1, 699);
  CHECK(s.sent().empty());
  CHECK(!s.slot.clock_is_late);
}

TEST_CASE("ticket wait: a provisional ticket is sent again when it is final") {
  TicketScript s(ticket_config(), 700, true);
  CHECK(s.sent().starts_with("0:LOCK k s.1 500 TICKET 700 TOKEN 700 PROVISIONAL|"));
  s.queued(0, 1);
  s.queued(1, 1);
  CHECK(s.sent().starts_with("0:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000|"));
}

TEST_CASE("ticket wait: the next ticket of a slot is above the largest floor that it has seen") {
  TicketSlot slot("s", 1);
  slot.floor = 900;
  slot.token = 950;
  std::vector<Pulse> pulses(1);
  TicketWait wait(ticket_config(1), slot, std::span<const Pulse>(pulses));
  wait.acquire({1'000'000}, 700);
  const auto request = std::get<WaitRequest>(wait.take_requests()[0].request);
  CHECK(request.ticket == 901);
  CHECK(request.hint == 951);
}

TEST_CASE("ticket wait: C2: a vote too old to count is extended first") {
  TicketScript s;
  s.queued(0);
  s.queued(1);
  s.skip();
  s.at(400'000);
  s.wait->on_push(0, VotePush{"s.1", 700, s.server_now() - DurationMs{300}, s.server_now(), 0, {}}, s.now);
  CHECK(s.sent().empty());
  s.at(402'000);
  CHECK(s.sent() ==
        "1:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000|"
        "2:LOCK k s.1 500 TICKET 700 TOKEN 700|"
        "0:LOCK k s.1 500 TICKET 700 TOKEN 700 HAS 700 SEEN 6000");
  s.vote(0, 700);
  s.vote(1, 700);
  CHECK(s.holding());
}

TEST_CASE(
    "ticket wait: C3: RENEW raises the votes with smaller tokens to the smallest that a quorum can have") {
  TicketScript s(ticket_config(5));
  s.vote(0, 702);
  s.vote(1, 700);
  s.skip();
  s.vote(2, 705);
  CHECK(s.sent() == "0:RENEW k s.1 500 TOKEN 705|1:RENEW k s.1 500 TOKEN 705");
  s.vote(3, 703);  // a quorum can have 703
  CHECK(s.sent() == "0:RENEW k s.1 500 TOKEN 703|1:RENEW k s.1 500 TOKEN 703");
  s.number(0, "RENEW", 705);
  CHECK(s.waiting());
  s.number(1, "RENEW", 705);
  REQUIRE(s.holding());
  CHECK(s.wait->token() == 705);
}

TEST_CASE("ticket wait: C3: a larger answer is the new token") {
  TicketScript s;
  s.vote(0, 700);
  s.skip();
  s.vote(1, 701);
  CHECK(s.sent() == "0:RENEW k s.1 500 TOKEN 701");
  s.number(0, "RENEW", 702);
  CHECK(s.sent() == "1:RENEW k s.1 500 TOKEN 702");
  s.number(1, "RENEW", 702);
  CHECK(s.holding());
}

TEST_CASE("ticket wait: C3: RENEW is repeated after 50 ms without an answer, and over a new connection") {
  TicketScript s;
  s.vote(0, 700);
  s.vote(1, 701);
  CHECK(s.sent().ends_with("|0:RENEW k s.1 500 TOKEN 701"));
  s.at(49'999);
  CHECK(s.sent().find("RENEW") == std::string::npos);
  s.at(50'000);
  CHECK(s.sent() == "0:RENEW k s.1 500 TOKEN 701");
  s.wait->on_connection(0, s.now);
  s.wait->on_connection(1, s.now);
  CHECK(s.sent() ==
        "0:LOCK k s.1 500 TICKET 700 TOKEN 700 HAS 700 SEEN 6000|0:RENEW k s.1 500 TOKEN 701|"
        "1:LOCK k s.1 500 TICKET 700 TOKEN 700 HAS 701 SEEN 6000");
}

TEST_CASE("ticket wait: C3: a larger answer does not make the vote younger") {
  TicketScript s;
  s.vote(0, 700);
  s.vote(1, 701);
  s.at(100'000);
  s.beat(0);
  s.beat(1);
  s.at(200'000);  // RENEW again
  s.number(0, "RENEW", 702);
  s.number(1, "RENEW", 702);
  CHECK(s.holding());
  CHECK(s.wait->valid_until() == TimeUs{1'000'000 + 495'000 - 2'000});
}

TEST_CASE("ticket wait: C3: confirmed votes without a quorum are given back, and the ticket is kept") {
  TicketScript s;
  s.vote(0, 700);
  s.vote(1, 701);
  s.skip();
  s.number(0, "RENEW", 0);
  CHECK(s.sent() ==
        "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1|0:LOCK k s.2 500 TICKET 700 TOKEN 700 SEEN 6000|"
        "1:LOCK k s.2 500 TICKET 700 TOKEN 700 SEEN 6000|2:LOCK k s.2 500 TICKET 700 TOKEN 700");
}

TEST_CASE("ticket wait: C4: without a quorum a vote is given back when the server asks for it") {
  TicketScript s;
  s.vote(0, 700);
  s.skip();
  s.inquire(0, 700);
  CHECK(s.sent() == "0:LOCKS YIELD k s.1 700");
  s.push_vote(0, 700);  // the YIELD did not arrive
  CHECK(s.sent() == "0:LOCKS YIELD k s.1 700");
  s.vote(1, 700);
  CHECK(s.waiting());
  s.push_vote(0, 701);
  CHECK(s.sent() == "1:RENEW k s.1 500 TOKEN 701");
}

TEST_CASE("ticket wait: C4: with a quorum an asked vote is confirmed") {
  TicketScript s;
  s.vote(0, 700);
  s.vote(1, 700);
  s.skip();
  s.inquire(1, 700);
  CHECK(s.sent() == "1:RENEW k s.1 1000 TOKEN 700");
}

TEST_CASE("ticket wait: C4: an attempt that is over is ended where a server still asks for it") {
  TicketScript s;
  s.skip();
  s.wait->on_push(1, InquirePush{"s.0", 5}, s.now);
  CHECK(s.sent() == "1:UNLOCK k s.0");
}

TEST_CASE("ticket wait: C5: after the first vote the other servers are asked, and told who is over") {
  TicketScript s;
  s.queued(0);
  s.queued(1);
  s.queued(2);
  s.skip();
  s.at(500);
  s.push_vote(0, 700, {"a.4"});
  s.at(2499);
  CHECK(s.sent().empty());
  s.at(2500);
  CHECK(s.sent() ==
        "1:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000 OVER a.4|"
        "2:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000 OVER a.4");
  s.at(32'499);
  CHECK(s.sent().empty());
  s.at(32'500);
  CHECK(s.sent() == "0:LOCK k s.1 500 TICKET 700 TOKEN 700 HAS 700 SEEN 6000");
}

TEST_CASE("ticket wait: C6: with votes a client parks when no quorum is live for 1.5 X") {
  TicketScript s;
  s.queued(0);
  s.queued(1);
  s.at(10'000);
  s.push_vote(0, 700);
  s.at(129'999);
  CHECK(s.waiting());
  s.skip();
  s.at(130'000);
  CHECK(s.parked());
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
  CHECK(s.wait->heartbeat_every() == DurationUs{40'000});
}

TEST_CASE("ticket wait: C6: without votes it parks when no quorum is live for two heartbeats and X") {
  TicketScript s;
  CHECK(s.wait->heartbeat_every() == DurationUs{300'000});
  s.queued(0);
  s.queued(1);
  s.at(300'000);
  s.beat(0);
  s.beat(1);
  s.at(979'999);
  CHECK(s.waiting());
  s.at(980'000);
  CHECK(s.parked());
}

TEST_CASE("ticket wait: C6: it returns with the old ticket when a quorum has been live for a while") {
  TicketScript s;
  s.at(680'000);
  REQUIRE(s.parked());
  s.skip();
  s.at(700'000);
  s.beat(0);
  s.at(720'000);
  s.beat(1);
  s.at(740'000);
  for (int64_t ms = 760; ms < 840; ms += 20) {
    s.at(ms * 1000);
    s.beat(0);
    s.beat(1);
    CHECK(s.sent().empty());
  }
  s.at(840'000);  // live since 740 ms; 100 ms after the first parking
  CHECK(s.sent().starts_with("0:LOCK k s.2 500 TICKET 700 "));
}

TEST_CASE(
    "ticket wait: C6: the pause before a return doubles, up to 400 ms; each acquisition ends an eighth") {
  TicketScript s;
  s.slot.parkings = 6;
  s.at(680'000);
  REQUIRE(s.parked());
  CHECK(s.slot.parkings == 7);
  s.skip();
  for (int64_t ms = 680; ms < 1080; ms += 20) {
    s.beat(0);
    s.beat(1);
    s.at(ms * 1000);
    CHECK(s.sent().empty());
  }
  s.beat(0);
  s.beat(1);
  s.at(1'080'000);
  CHECK(s.waiting());
  s.vote(0, 700);
  s.vote(1, 700);
  CHECK(s.slot.parkings == 7 * 7.0 / 8);
}

TEST_CASE("ticket wait: a new connection gets the wait again, and the attempts that are over") {
  TicketScript s;
  s.queued(0, 0, {"a.1"});
  s.queued(1);
  s.skip();
  s.wait->on_connection(0, s.now);
  CHECK(s.sent() == "0:LOCK k s.1 500 TICKET 700 TOKEN 700 SEEN 6000 OVER a.1");
  s.wait->on_restart(2, s.now);
  CHECK(s.sent() == "2:LOCK k s.1 500 TICKET 700 TOKEN 700 OVER a.1");
}

TEST_CASE("ticket wait: a parked or released client repeats UNLOCK to a server that did not answer it") {
  TicketScript s;
  s.wait->release(s.now);
  s.number(0, "UNLOCK", 0);
  s.skip();
  s.wait->on_connection(0, s.now);
  s.wait->on_connection(1, s.now);
  CHECK(s.sent() == "1:UNLOCK k s.1");
  CHECK(!s.wait->settled());
  s.number(1, "UNLOCK", 0);
  s.number(2, "UNLOCK", 1);
  CHECK(s.wait->settled());
  CHECK(s.wait->outcome() == Outcome::kCancelled);
}

// --- refusals ---

TEST_CASE("ticket wait: a hint too far ahead of a server is left out there") {
  TicketScript s;
  s.skip();
  s.refuse(1, Refusal::Code::kAhead);
  CHECK(s.sent() == "1:LOCK k s.1 500 TICKET 700");
}

TEST_CASE("ticket wait: a ticket too far ahead of a quorum follows the floors alone") {
  TicketScript s;
  s.queued(2, 40);
  s.skip();
  s.refuse(0, Refusal::Code::kAhead);
  s.refuse(0, Refusal::Code::kAhead);
  s.refuse(1, Refusal::Code::kAhead);
  CHECK(s.sent() == "0:LOCK k s.1 500 TICKET 700|1:LOCK k s.1 500 TICKET 700");
  s.refuse(1, Refusal::Code::kAhead);
  CHECK(s.sent() ==
        "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1|0:LOCK k s.2 500 TICKET 41 PROVISIONAL|"
        "1:LOCK k s.2 500 TICKET 41 PROVISIONAL|2:LOCK k s.2 500 TICKET 41 PROVISIONAL SEEN 6000");
}

TEST_CASE("ticket wait: a full server is asked again after a heartbeat") {
  TicketScript s;
  s.skip();
  s.refuse(0, Refusal::Code::kFull);
  s.queued(1);
  s.queued(2);
  s.at(299'999);
  CHECK(s.sent().empty());
  s.at(300'000);
  CHECK(s.sent() == "0:LOCK k s.1 500 TICKET 700 TOKEN 700");
}

TEST_CASE("ticket wait: an attempt that a server calls over is followed by the next one") {
  TicketScript s;
  s.skip();
  s.refuse(0, Refusal::Code::kOver);
  CHECK(s.sent().starts_with("0:LOCK k s.2 500 TICKET 700"));
}

TEST_CASE("ticket wait: a deadlock ends the wait") {
  TicketScript s;
  s.refuse(0, Refusal::Code::kDeadlock);
  CHECK(s.wait->outcome() == Outcome::kDeadlock);
}

// --- limits ---

TEST_CASE("ticket wait: a limited wait ends at its limit") {
  TicketConfig config = ticket_config();
  config.limit = DurationUs{50'000};
  TicketScript s(config);
  s.skip();
  s.at(49'999);
  CHECK(s.waiting());
  s.at(50'000);
  CHECK(s.wait->outcome() == Outcome::kTimeout);
  CHECK(s.sent() == "0:UNLOCK k s.1|1:UNLOCK k s.1|2:UNLOCK k s.1");
}

TEST_CASE("ticket wait: a single try asks no holder, and ends when a quorum cannot be had") {
  TicketConfig config = ticket_config();
  config.limit = DurationUs{0};
  TicketScript s(config);
  CHECK(s.sent().starts_with("0:LOCK k s.1 500 TICKET 700 TOKEN 700 PROVISIONAL|"));
  s.queued(0, 900);
  CHECK(s.waiting());
  s.queued(1, 900);
  CHECK(s.wait->outcome() == Outcome::kBusy);
}

TEST_CASE("ticket wait: a single try succeeds with a quorum of votes") {
  TicketConfig config = ticket_config();
  config.limit = DurationUs{0};
  TicketScript s(config);
  s.queued(0, 900);
  s.vote(1, 700);
  s.vote(2, 700);
  CHECK(s.holding());
}

TEST_CASE("ticket wait: a single try without answers ends at the server's timeout") {
  TicketConfig config = ticket_config();
  config.limit = DurationUs{0};
  TicketScript s(config);
  s.vote(0, 700);
  s.at(999'999);
  CHECK(s.waiting());
  s.at(1'000'000);
  CHECK(s.wait->outcome() == Outcome::kUnreachable);
}

TEST_CASE("ticket wait: a counted lock needs the votes of all servers") {
  TicketConfig config = ticket_config();
  config.quorum = 3;
  config.terms.mode = LockMode::kCounted;
  config.terms.limit = 2;
  TicketScript s(config);
  CHECK(s.sent().starts_with("0:LOCK k s.1 500 TICKET 700 LIMIT 2 TOKEN 700"));
  s.vote(0, 700);
  s.vote(1, 700);
  CHECK(s.waiting());
  s.vote(2, 700);
  CHECK(s.holding());
}

}  // namespace holdfast::client
