// The requests about one owner go to all servers; the answers of a quorum decide.
#include "proxy/operations.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "client/algorithm/lock_status.h"
#include "client/base/validity.h"
#include "proxy/gateway.h"
#include "proxy/owner_name.h"

namespace holdfast::proxy {

using client::Loop;
using client::Value;

namespace {

constexpr DurationMs kShortestTtl{10};

bool is_silent(const std::optional<Value>& answer) {
  return !answer || answer->kind == Value::Kind::kLost || answer->kind == Value::Kind::kError;
}

Silence silence_in(const Quorum& quorum, const Quorum::Answers& answers) {
  Silence silence;
  for (size_t i = 0; i < answers.size(); ++i) {
    if (answers[i] && is_silent(answers[i])) silence.push_back(quorum.name(i) + " " + answers[i]->text);
  }
  return silence;
}

// Whether the server did it: an integer of at least 1, or OK.
bool is_yes(const Value& answer) {
  return answer.kind == Value::Kind::kStatus ||
         (answer.kind == Value::Kind::kInteger && answer.integer > 0);
}

// What the servers have said so far about one owner.
struct Tally {
  size_t yes = 0;
  size_t open = 0;     // no answer, or none that says anything
  bool waits = false;  // for further answers

  explicit Tally(const Quorum::Answers& answers) {
    for (const auto& answer : answers) {
      if (is_silent(answer)) ++open;
      if (!answer) waits = true;
      if (answer && is_yes(*answer)) ++yes;
    }
  }
  // nullopt: further answers decide.
  std::optional<Verdict> verdict(size_t quorum) const {
    if (yes >= quorum) return Verdict::kYes;
    if (yes + open < quorum) return Verdict::kNo;
    return waits ? std::nullopt : std::optional(Verdict::kUnknown);
  }
};

// Sends a request about one owner to all servers. `all`: called when no further answer follows.
using OnAll = std::function<void(Verdict verdict, const Quorum::Answers& answers)>;
void ask_about_owner(Gateway& gateway, const std::vector<std::string>& argv, const OnVerdict& done,
                     const OnAll& all) {
  Quorum& quorum = gateway.quorum();
  const auto told = std::make_shared<std::optional<Verdict>>();
  quorum.ask(argv, [&quorum, done, all, told](const Quorum::Answers& answers) {
    const Tally tally(answers);
    if (!*told) {
      *told = tally.verdict(quorum.quorum());
      if (*told) done(**told, silence_in(quorum, answers));
    }
    if (!tally.waits) all(**told, answers);
    return !tally.waits;
  });
}

// A renewal in progress.
struct Renewal {
  HoldName hold;
  NewTtl wanted;
  DurationMs allowance{0};  // the time for a round that the TTL on the servers includes
  DurationMs there{0};      // the TTL on the servers
};

// Gives the hold to the servers that do not have it, while a quorum has it.
void heal(Gateway& gateway, const Renewal& renewal, const Quorum::Answers& answers) {
  const HoldName& hold = renewal.hold;
  const bool still = gateway.own().find(hold.key, hold.owner, Loop::now()) != nullptr;
  if (!still || hold.token == 0) return;
  for (size_t i = 0; i < answers.size(); ++i) {
    const bool lacks = answers[i] && answers[i]->kind == Value::Kind::kInteger && answers[i]->integer == 0;
    if (lacks)
      gateway.quorum().tell(i, {"LOCK", hold.key, hold.owner, std::to_string(renewal.there.count), "TOKEN",
                                std::to_string(hold.token)});
  }
}

// Remembers a hold that has a new end.
void remember(Gateway& gateway, const Renewal& renewal, client::TimeUs begun) {
  const HoldName& hold = renewal.hold;
  const TimeMs end = client::end_of_validity({begun.count / 1000}, renewal.there);
  gateway.own().put({hold.key, hold.value, hold.owner, hold.token, renewal.wanted.ttl, end}, Loop::now());
}

// If the round takes longer than the TTL on the servers allows for, the client would not have its whole TTL
// from the answer on: another round follows.
void begin_round(Gateway& gateway, const Renewal& renewal, const OnVerdict& done) {
  std::vector<std::string> argv{"RENEW", renewal.hold.key, renewal.hold.owner};
  if (!renewal.wanted.as_before) argv.push_back(std::to_string(renewal.there.count));
  const client::TimeUs begun = Loop::time_us();
  const auto decided = [&gateway, renewal, begun, done](Verdict verdict, const Silence& silence) {
    const DurationMs took = client::ms_of(Loop::time_us() - begun);
    const bool late = took > renewal.allowance && renewal.wanted.ttl;
    if (verdict == Verdict::kYes) gateway.record_round(Loop::time_us() - begun);
    if (verdict == Verdict::kYes && late) {
      Renewal again = renewal;
      again.allowance = {2 + 2 * took.count};
      again.there = server_ttl(gateway, renewal.wanted.ttl, again.allowance);
      return begin_round(gateway, again, done);
    }
    if (verdict == Verdict::kYes && !renewal.wanted.as_before) remember(gateway, renewal, begun);
    if (verdict == Verdict::kNo) gateway.own().forget(renewal.hold.key, renewal.hold.owner);
    done(verdict, silence);
  };
  ask_about_owner(gateway, argv, decided, [&gateway, renewal](Verdict verdict, const auto& answers) {
    if (verdict == Verdict::kYes && !renewal.wanted.as_before) heal(gateway, renewal, answers);
  });
}

}  // namespace

Silence silence_of(const Quorum& quorum, const Status& status) {
  Silence silence;
  for (size_t i = 0; i < status.servers.size(); ++i) {
    const ServerReport& report = status.servers[i];
    const bool silent = report.outcome == Outcome::kUnreachable || report.outcome == Outcome::kRefused;
    if (silent && report.text != client::kNoAnswerYet)
      silence.push_back(quorum.name(i) + " " + report.text);
  }
  return silence;
}

DurationMs server_ttl(const Gateway& gateway, std::optional<DurationMs> ttl, DurationMs round) {
  if (!ttl) return gateway.options().untimed_ttl;
  return std::max(kShortestTtl, client::ttl_for_validity({ttl->count + round.count}));
}

DurationMs client_ttl(const Gateway& gateway, DurationMs left) {
  const int64_t valid = client::end_of_validity({0}, left).count;
  return {std::max<int64_t>(valid - gateway.recent_round().count, 1)};
}

void read_key(Gateway& gateway, const std::string& key, const OnState& done) {
  Quorum& quorum = gateway.quorum();
  quorum.ask({"LOCKS", "INFO", key}, [&quorum, done](const Quorum::Answers& answers) {
    std::vector<std::optional<SeenKey>> seen;
    seen.reserve(answers.size());
    bool waits = false;
    for (const auto& answer : answers) {
      seen.push_back(answer ? std::optional(read_info(*answer)) : std::nullopt);
      waits = waits || !answer;
    }
    const KeyState state = judge(seen, quorum.quorum());
    if (state.kind == KeyState::Kind::kUndecided && waits) return false;
    done(state, silence_in(quorum, answers));
    return true;
  });
}

void release_hold(Gateway& gateway, const std::string& key, const std::string& owner,
                  const OnVerdict& done) {
  gateway.own().forget(key, owner);
  ask_about_owner(gateway, {"UNLOCK", key, owner}, done, [&gateway, key, owner](Verdict, const auto& all) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (is_silent(all[i])) gateway.quorum().owe_release(i, key, owner);
    }
  });
}

void renew_hold(Gateway& gateway, const HoldName& hold, const NewTtl& ttl, const OnVerdict& done) {
  const DurationMs allowance = gateway.recent_round();
  begin_round(gateway, {hold, ttl, allowance, server_ttl(gateway, ttl.ttl, allowance)}, done);
}

// A server where the condition failed keeps its hold. If certainly too few servers did it, the new hold
// ends there. If that is not certain, it stays: a client may have been told earlier that it holds the lock.
void replace_hold(Gateway& gateway, const HoldName& hold, const std::string& value,
                  std::optional<DurationMs> ttl, const OnVerdict& done) {
  gateway.own().forget(hold.key, hold.owner);
  const HoldName fresh{hold.key, value, client::owner_of(new_slot(value), 1)};
  const DurationMs allowance = gateway.recent_round();
  const Renewal first{fresh, {ttl}, allowance, server_ttl(gateway, ttl, allowance)};
  const client::TimeUs begun = Loop::time_us();
  const auto decided = [&gateway, first, begun, done](Verdict verdict, const Silence& silence) {
    const HoldName& made = first.hold;
    const DurationMs took = client::ms_of(Loop::time_us() - begun);
    if (verdict == Verdict::kYes && first.wanted.ttl && took > first.allowance)
      return renew_hold(gateway, made, first.wanted, done);  // as in begin_round()
    if (verdict == Verdict::kYes) remember(gateway, first, begun);
    if (verdict == Verdict::kNo) release_hold(gateway, made.key, made.owner, [](auto, const auto&) {});
    done(verdict, silence);
  };
  const std::string there = std::to_string(first.there.count);
  ask_about_owner(gateway, {"SET", hold.key, fresh.owner, "IFEQ", hold.owner, "PX", there}, decided,
                  [](auto, const auto&) {});
}

}  // namespace holdfast::proxy
