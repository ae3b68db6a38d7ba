// The parts of a wait by ticket: the requests on the wire, the votes of an attempt, the state of a link,
// and the attempts that are over.
#include <doctest/doctest.h>

#include "client/algorithm/ballot.h"
#include "client/algorithm/pulse.h"
#include "client/algorithm/ticket_requests.h"
#include "client/algorithm/ticket_slot.h"

namespace holdfast::client {

namespace {

std::string line(const TicketRequest& request, const LockTerms& terms) {
  std::string text;
  for (const std::string& word : encode(request, terms)) text += (text.empty() ? "" : " ") + word;
  return text;
}

Value number(int64_t n) { return {Value::Kind::kInteger, n, {}, {}}; }
Value bulk(std::string text) { return {Value::Kind::kBulk, 0, std::move(text), {}}; }
Value array(std::vector<Value> of) { return {Value::Kind::kArray, 0, {}, std::move(of)}; }
Value push(std::vector<Value> of) { return {Value::Kind::kPush, 0, {}, std::move(of)}; }
Value error(std::string text) { return {Value::Kind::kError, 0, std::move(text), {}}; }

TimeUs ms(int64_t n) { return {n * 1000}; }

}  // namespace

TEST_CASE("ticket requests: each request has its words") {
  LockTerms terms;
  terms.key = "k";
  CHECK(line(UnlockRequest{"s.1"}, terms) == "UNLOCK k s.1");
  CHECK(line(YieldRequest{"s.1", 7}, terms) == "LOCKS YIELD k s.1 7");
  CHECK(line(RenewRequest{"s.1", {500}, 7}, terms) == "RENEW k s.1 500 TOKEN 7");
  CHECK(line(RenewRequest{"s.1", {500}, 0}, terms) == "RENEW k s.1 500");
  CHECK(line(HeartbeatRequest{}, terms) == "LOCKS HEARTBEAT");
  CHECK(line(HeartbeatRequest{TimeMs{9}}, terms) == "LOCKS HEARTBEAT 9");
  WaitRequest wait;
  wait.owner = "s.1";
  wait.life = {500};
  wait.ticket = 12;
  CHECK(line(wait, terms) == "LOCK k s.1 500 TICKET 12");
  wait.hint = 13;
  wait.has = 14;
  wait.seen = TimeMs{15};
  wait.provisional = true;
  wait.over = {"a.1", "b.2"};
  terms.mode = LockMode::kCounted;
  terms.limit = 3;
  terms.note = "a b";
  terms.delay = {40};
  CHECK(line(wait, terms) ==
        "LOCK k s.1 500 TICKET 12 LIMIT 3 TOKEN 13 NOTE a b DELAY 40 PROVISIONAL HAS 14 SEEN 15 OVER a.1 "
        "OVER b.2");
  terms.mode = LockMode::kShared;
  CHECK(line(wait, terms).starts_with("LOCK k s.1 500 TICKET 12 SHARED TOKEN 13"));
}

TEST_CASE("ticket requests: an owner is a slot and the number of an attempt") {
  CHECK(owner_of("a.b", 12) == "a.b.12");
  CHECK(slot_of("a.b.12") == "a.b");
  CHECK(attempt_of("a.b.12") == 12);
  CHECK(slot_of("ab").empty());
  CHECK(attempt_of("ab") == 0);
  CHECK(attempt_of("a.1x") == 0);
  CHECK(attempt_of("a.") == 0);
}

TEST_CASE("ticket requests: the answer to a wait has six elements") {
  const WaitRequest wait;
  const Answer vote = read_answer(
      wait, array({bulk("vote"), number(7), number(100), number(101), number(5), array({bulk("a.1")})}));
  const auto& read = std::get<WaitAnswer>(vote);
  CHECK(read.state == WaitAnswer::State::kVote);
  CHECK(read.token == 7);
  CHECK(read.since == TimeMs{100});
  CHECK(read.now == TimeMs{101});
  CHECK(read.floor == 5);
  CHECK(read.over == std::vector<std::string>{"a.1"});
  const auto refused = [&](const Value& value) {
    const Answer answer = read_answer(wait, value);
    return std::holds_alternative<Refusal>(answer) &&
           std::get<Refusal>(answer).code == Refusal::Code::kOther;
  };
  CHECK(refused(array({bulk("vote"), number(0), number(1), number(1), number(5), array({})})));
  CHECK(refused(array({bulk("other"), number(1), number(1), number(1), number(5), array({})})));
  CHECK(refused(array({bulk("vote"), number(-1), number(1), number(1), number(5), array({})})));
  CHECK(refused(array({bulk("vote"), number(1), number(1), number(1), number(5)})));
  CHECK(refused(number(1)));
}

TEST_CASE("ticket requests: a refusal is known by its code") {
  using Code = Refusal::Code;
  const auto code = [](const char* text) {
    return std::get<Refusal>(read_answer(WaitRequest{}, error(text))).code;
  };
  CHECK(code("FULL max-waiters") == Code::kFull);
  CHECK(code("AHEAD") == Code::kAhead);
  CHECK(code("OVER it is") == Code::kOver);
  CHECK(code("RECOVERING x") == Code::kRecovering);
  CHECK(code("DEADLOCK x") == Code::kDeadlock);
  CHECK(code("ERR unknown subcommand") == Code::kUnknown);
  CHECK(code("NOPERM no") == Code::kOther);
  CHECK(code("FULLER") == Code::kOther);
}

TEST_CASE("ticket requests: pushes of other kinds are not read") {
  CHECK(!read_push(push({bulk("message"), bulk("a"), bulk("b"), bulk("c"), number(1)})));
  CHECK(!read_push(push({bulk("lock"), bulk("granted"), bulk("k"), bulk("s.1"), number(1)})));
  CHECK(!read_push(array({bulk("lock"), bulk("inquire"), bulk("k"), bulk("s.1"), number(7)})));
  const auto inquire = read_push(push({bulk("lock"), bulk("inquire"), bulk("k"), bulk("s.1"), number(7)}));
  REQUIRE(inquire);
  CHECK(inquire->key == "k");
  CHECK(std::get<InquirePush>(inquire->push).token == 7);
  const auto vote = read_push(push({bulk("lock"), bulk("vote"), bulk("k"), bulk("s.1"), number(7),
                                    number(1), number(2), number(3), array({bulk("a.1")})}));
  REQUIRE(vote);
  CHECK(std::get<VotePush>(vote->push).token == 7);
  CHECK(std::get<VotePush>(vote->push).over.size() == 1);
}

// --- pulse ---

TEST_CASE("pulse: a server without an answer gets a further connection after 50 ms") {
  Pulse pulse;
  CHECK(pulse.open_at() == kNeverUs);
  CHECK(pulse.open(ms(0)) == 1);
  CHECK(pulse.open_at() == kNeverUs);
  pulse.sent(ms(1000));
  CHECK(pulse.open_at() == ms(1250));  // its round-trip time is not known yet
  CHECK(pulse.answered(1, ms(1000), ms(1001)));
  CHECK(pulse.open_at() == kNeverUs);
  pulse.sent(ms(2000));
  pulse.sent(ms(2040));
  CHECK(pulse.open_at() == ms(2050));
  pulse.open(ms(2050));
  CHECK(pulse.open_at() == ms(2100));
  CHECK(pulse.open_at({300'000}) == ms(2350));
}

TEST_CASE("pulse: the pause between connections doubles after each sixteen, up to that of heartbeats") {
  Pulse pulse;
  pulse.open(ms(0));
  pulse.sent(ms(0));
  CHECK(pulse.answered(1, ms(0), ms(1)));
  pulse.sent(ms(1000));
  int64_t at = 1000;
  for (const int64_t pause : {50, 100, 200, 300, 300}) {
    for (int n = 0; n < 16; ++n) {
      at += pause;
      CHECK(pulse.open_at() == ms(at));
      pulse.open(ms(at));
    }
  }
  CHECK(pulse.answered(pulse.newest(), ms(at), ms(at + 1)));
  pulse.sent(ms(at + 10));
  CHECK(pulse.open_at() == ms(at + 60));
}

TEST_CASE("pulse: a link with a long round-trip time may be silent for longer") {
  Pulse pulse;
  pulse.open(ms(0));
  pulse.sent(ms(0));
  CHECK(pulse.answered(1, ms(0), ms(60)));
  pulse.sent(ms(100));
  CHECK(pulse.open_at() == ms(280));
}

TEST_CASE("pulse: the round-trip time is the shortest of the last 8") {
  Pulse pulse;
  pulse.open(ms(0));
  CHECK(!pulse.rtt());
  for (int64_t n = 0; n < 9; ++n) CHECK(pulse.answered(1, ms(100 * n), ms(100 * n + (n == 0 ? 2 : 5))));
  CHECK(pulse.rtt() == DurationUs{5000});
}

TEST_CASE("pulse: after a connection has answered, those before it are ignored") {
  Pulse pulse;
  pulse.open(ms(0));
  pulse.open(ms(80));
  CHECK(pulse.newest() == 2);
  CHECK(pulse.answered(1, ms(10), ms(90)));
  CHECK(pulse.accepts(1));
  CHECK(pulse.answered(2, ms(81), ms(91)));
  CHECK(!pulse.accepts(1));
  CHECK(!pulse.answered(1, ms(95), ms(96)));
  CHECK(pulse.heard() == ms(81));
}

TEST_CASE("pulse: a request that was sent after the answered one keeps the server silent") {
  Pulse pulse;
  pulse.open(ms(0));
  pulse.sent(ms(0));
  pulse.sent(ms(50));
  CHECK(pulse.answered(1, ms(0), ms(51)));
  CHECK(pulse.open_at() == ms(50 + 153));
  CHECK(!pulse.is_silent(ms(60), {10'000}));
  CHECK(pulse.is_silent(ms(61), {10'000}));
}

TEST_CASE("pulse: another run id is a restart, and its clock another one") {
  Pulse pulse;
  pulse.open(ms(0));
  CHECK(!pulse.record_run("a"));
  pulse.record_time(ms(1), {5000});
  CHECK(!pulse.record_run("a"));
  CHECK(pulse.pair()->server == TimeMs{5000});
  CHECK(pulse.record_run("b"));
  CHECK(!pulse.pair());
  CHECK(!pulse.server_time());
}

TEST_CASE("pulse: heartbeats are due at their interval") {
  Pulse pulse;
  pulse.record_heartbeat(ms(10));
  CHECK(pulse.heartbeat_at({300'000}) == ms(310));
  CHECK(pulse.heartbeat_at(kForeverUs) == kNeverUs);
}

// --- ballot ---

TEST_CASE("ballot: a vote is dated by the pair of clocks, and never late") {
  const Pulse::Pair pair{ms(1000), {7000}};
  CHECK(not_after(pair, {7000}, 0.01) == ms(1000));
  CHECK(not_after(pair, {7100}, 0.01) == ms(1099));
  CHECK(not_after(pair, {6900}, 0.01) == ms(899));
}

TEST_CASE("ballot: a vote counts while 0.4 of its life is left") {
  Ballot ballot({3, 2, {500'000}, 0.01});
  ballot.record(0, 7, ms(1000));
  CHECK(ballot.counts_until(0) == ms(1000 + 495 - 2 - 200));
  CHECK(ballot.counts(0, {ms(1293).count - 1}));
  CHECK(!ballot.counts(0, ms(1293)));
  CHECK(!ballot.counts(1, ms(0)));
}

TEST_CASE("ballot: a quorum of votes with one token wins, whichever token it is") {
  Ballot ballot({5, 3, {500'000}, 0.01});
  ballot.record(0, 7, ms(1000));
  ballot.record(1, 9, ms(1000));
  ballot.record(2, 7, ms(1010));
  CHECK(!ballot.win(ms(1020)));
  ballot.record(3, 7, ms(1005));
  const auto win = ballot.win(ms(1020));
  REQUIRE(win);
  CHECK(win->token == 7);
  CHECK(win->until == ms(1000 + 493));
  ballot.record(4, 7, ms(1008));  // the best three
  CHECK(ballot.win(ms(1020))->until == ms(1005 + 493));
}

TEST_CASE("ballot: the smallest token that a quorum can have") {
  Ballot ballot({5, 3, {500'000}, 0.01});
  ballot.record(0, 14, ms(1000));
  ballot.record(1, 10, ms(1000));
  CHECK(!ballot.reachable_token(ms(1000)));
  ballot.record(2, 12, ms(1000));
  CHECK(ballot.reachable_token(ms(1000)) == 14);
  ballot.record(3, 11, ms(1000));
  CHECK(ballot.reachable_token(ms(1000)) == 12);
}

TEST_CASE("ballot: a vote that was given back never counts again, a later one does") {
  Ballot ballot({3, 2, {500'000}, 0.01});
  ballot.record(0, 7, ms(1000));
  ballot.yield(0, 6);
  CHECK(!ballot.has(0));
  CHECK(ballot.has_yielded(0, 7));
  CHECK(!ballot.has_yielded(0, 8));
  CHECK(!ballot.has_yielded(1, 7));
}

TEST_CASE("ballot: an answer that arrives late does not make a vote older") {
  Ballot ballot({3, 2, {500'000}, 0.01});
  ballot.record(0, 7, ms(1000));
  ballot.record(0, 7, ms(900));
  CHECK(ballot.counts_until(0) == ms(1293));
  ballot.record(0, 8, ms(900));
  CHECK(ballot.counts_until(0) == ms(1193));
}

// --- attempts that are over ---

TEST_CASE("over list: each server gets the newest attempts that it does not know, once") {
  OverList over("me", 2);
  over.learn(0, {"b.2", "a.1", "me.5"});
  CHECK(over.take_for(0).empty());
  CHECK(over.take_for(1) == std::vector<std::string>{"a.1", "b.2"});
  CHECK(over.take_for(1).empty());
  over.forget(1);
  CHECK(over.take_for(1).size() == 2);
}

TEST_CASE("over list: a later attempt of a slot replaces an earlier one") {
  OverList over("me", 2);
  over.learn(0, {"a.1"});
  over.learn(0, {"a.3", "b.1"});
  over.learn(0, {"a.2"});
  CHECK(over.take_for(1) == std::vector<std::string>{"b.1", "a.3"});
}

TEST_CASE("over list: it is bounded, and so is what one request names") {
  OverList over("me", 2);
  for (size_t n = 0; n < OverList::kMostSlots + 1; ++n) over.learn(0, {"s" + std::to_string(n) + ".1"});
  const std::vector<std::string> owners = over.take_for(1);
  CHECK(owners.size() == kMostOver);
  CHECK(owners.back() == "s32.1");
  CHECK(over.take_for(1).empty());  // the older ones are not told
}

}  // namespace holdfast::client
