// The judge: redlock_world.h says what it checks, and when that is promised.
#include <algorithm>

#include "redlock_world.h"

namespace holdfast::simulation::redlock {

using client::Redlock;

size_t World::quorum_of(const Session& session) const {
  return session.mode() == Mode::kCounted ? world_.servers : world_.servers / 2 + 1;
}

int64_t World::valid_until_us(const Session& session) const {
  return clients_[session.step->client].clock.when(session.lock->valid_until().count);
}

// A client that stands still does not notice the end of its validity.
bool World::is_valid(const Session& session) const {
  return session.lock->state() == Redlock::State::kHeld && now_us_ < valid_until_us(session);
}

// The number of servers that refuse other holders until the end of the validity.
size_t World::supporters(const Session& session) const {
  const int64_t until_us = valid_until_us(session);
  size_t n = 0;
  for (size_t i = 0; i < servers_.size(); ++i)
    n += servers_[i].clock.when(session.proofs[i].refuses_ms) >= until_us ? 1 : 0;
  return n;
}

void World::judge(size_t index) {
  Session& session = sessions_[index];
  if (session.lock->state() == Redlock::State::kHeld && !session.holds) judge_acquired(session);
  judge_renewal(session);
  judge_exclusion(session.key());
  if (session.lock->state() == Redlock::State::kOver && !session.counted) judge_end(session);
}

void World::judge_acquired(Session& session) {
  session.holds = true;
  tell([&] {
    return name_of(session) + " holds the lock with token " + std::to_string(session.lock->token());
  });
  session.act_us = now_us_ + session.dice.between(100, world_.ttl_ms * 700);
  session.end_us = now_us_ + session.step->for_us;
  const int64_t half_us = (valid_until_us(session) - now_us_) / 2;
  const int64_t pause_us = std::max<int64_t>(std::min(ttl_us() / 3, half_us), 1000);
  if (session.step->renews) session.act_us = now_us_ + session.dice.between(100, pause_us);
  session.confirmed_us = now_us_;
  if (half_us < renewal_us()) session.shaky_us = now_us_;
  ++tally_.acquired;
  if (session.fenced) ++tally_.fenced;
  judge_token(session);
  judge_support(session);
  const bool alone = session.mode() == Mode::kExclusive;
  Issued& issued = issued_[session.key()];
  issued.tokens[session.lock->token()] |= alone;
  issued.largest = std::max(issued.largest, session.lock->token());
  if (alone) issued.largest_exclusive = std::max(issued.largest_exclusive, session.lock->token());
}

// Shared and counted locks have several holders: the order of their tokens is unspecified.
void World::judge_token(const Session& session) {
  const uint64_t token = session.lock->token();
  const bool alone = session.mode() == Mode::kExclusive;
  const uint64_t above = alone ? session.above_all : session.above_exclusive;
  if (token <= above) {
    wrong("token " + std::to_string(token) + " is not above " + std::to_string(above) +
          ", which was given before it began");
  }
  const auto& tokens = issued_[session.key()].tokens;
  const auto same = tokens.find(token);
  if (same != tokens.end() && (alone || same->second))
    wrong("token " + std::to_string(token) + " is given twice");
}

void World::judge_support(Session& session) {
  const int64_t until_us = valid_until_us(session);
  const auto given =
      static_cast<size_t>(std::count_if(session.proofs.begin(), session.proofs.end(),
                                        [&](const Proof& p) { return p.given_us >= until_us; }));
  if (given < quorum_of(session))
    wrong(name_of(session) + " relies on a validity that only " + std::to_string(given) + " servers gave");
  session.unsupported = supporters(session) < quorum_of(session);
  if (session.unsupported) ++tally_.forgotten;
}

// A client that learns that too many servers lack the hold ends it, as HoldCore does.
void World::judge_renewal(Session& session) {
  if (!session.lock->renewal()) return;
  const Outcome outcome = session.lock->renewal()->outcome;
  if (outcome == Outcome::kExpired && !std::exchange(session.forgotten, true)) {
    tell([&] { return name_of(session) + " finds the lock lost"; });
    session.act_us = now_us_;
  }
  if (!std::exchange(session.renewing, false)) return;
  if (outcome == Outcome::kOk) {
    tell([&] { return name_of(session) + " has renewed"; });
    ++tally_.renewed;
    session.confirmed_us = session.round_us;
    judge_support(session);
  }
  if (!session.step->renews || session.forgotten) return;
  const int64_t left_ms = (session.lock->valid_until() - client_now(session.step->client)).count;
  const int64_t pause_ms = outcome == Outcome::kOk ? std::min(world_.ttl_ms / 3, left_ms / 2)
                                                   : std::min(world_.ttl_ms / 10, left_ms / 4);
  session.act_us = now_us_ + std::max<int64_t>(pause_ms, 1) * 1000;
}

void World::judge_end(Session& session) {
  session.counted = true;
  Client& client = clients_[session.step->client];
  client.busy = false;
  client.next_us = now_us_ + session.dice.between(0, world_.ttl_ms * 500);
  if (!session.holds) ++tally_.failed;
  const bool lost =
      session.forgotten || (session.lock->result().outcome == Outcome::kExpired && !session.releases);
  if (session.holds && !lost && session.restarted + 1 == uint64_t{1} << world_.servers) ++tally_.kept;
  if (!session.holds || !lost) return;
  ++tally_.lost;
  tell([&] { return name_of(session) + " has lost the lock"; });
  if (!session.step->renews || !world_.calm()) return;
  if (session.shaky_us >= session.confirmed_us) return void(++tally_.excused);
  wrong(name_of(session) + " lost a lock that it renewed, though at most " +
        std::to_string(world_.servers - quorum_of(session)) + " servers were bad at any time");
}

void World::judge_exclusion(size_t key) {
  std::vector<const Session*> holders;
  size_t exclusive = 0;
  size_t counted = 0;
  for (const Client& client : clients_) {
    if (!client.busy || !is_valid(sessions_[client.session])) continue;
    const Session& session = sessions_[client.session];
    if (session.key() != key) continue;
    if (session.mode() == Mode::kCounted) ++counted;
    const bool supported = !session.unsupported && supporters(session) >= quorum_of(session);
    if (!supported && session.mode() != Mode::kCounted) continue;
    if (session.mode() == Mode::kExclusive) ++exclusive;
    holders.push_back(&session);
  }
  if (exclusive > 0 && holders.size() > 1) wrong("two hold the lock");
  if (counted > world_.limit) judge_counted(holders);
}

// Too many holders: none of the servers may remember all of them.
void World::judge_counted(const std::vector<const Session*>& holders) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    const bool all = std::all_of(holders.begin(), holders.end(), [&](const Session* s) {
      return servers_[i].clock.when(s->proofs[i].refuses_ms) >= valid_until_us(*s);
    });
    if (all) return wrong("too many hold the lock");
  }
}

// How long a renewal takes at most if a quorum works: RENEW, and LOCK where a server is without the hold.
int64_t World::renewal_us() const { return 4 * world_.slowest_us + 2000; }

// How long a server may be without a hold that is renewed, although the server works: a round that missed
// the server, the pause after it, and a round that waits for another server that does not answer.
int64_t World::healing_us() const {
  return ttl_us() / 3 + 2000 * world_.server_timeout_ms + 6 * world_.slowest_us + 5000;
}

void World::judge_health() {
  if (!world_.calm()) return;
  for (const Client& client : clients_) {
    if (!client.busy) continue;
    Session& session = sessions_[client.session];
    if (session.step->renews && session.holds && is_valid(session) && !session.releases)
      judge_health(session);
  }
}

void World::judge_health(Session& session) {
  size_t bad = now_us_ < clients_[session.step->client].stalled_us ? world_.servers : 0;
  for (size_t i = 0; i < servers_.size(); ++i) bad += is_good(session, i) ? 0 : 1;
  if (bad > world_.servers - quorum_of(session)) session.shaky_us = now_us_;
  if (bad > world_.servers - (world_.servers / 2 + 1)) session.unhealable_us = now_us_;
  for (size_t i = 0; i < servers_.size(); ++i) judge_lack(session, i);
}

// Whether the server does its part for the next renewal: it has the hold, or has had the time to get it.
bool World::is_good(Session& session, size_t index) {
  Server& server = servers_[index];
  Proof& proof = session.proofs[index];
  const bool reachable = server.up() && !server.loading && !is_cut(session.step->client, index);
  const bool has = reachable && server.clock.when(proof.holds_ms) > now_us_;
  if (!reachable || has || server.recovering(now_us_)) {
    proof.lacks_us = proof.lacks_long_us = -1;
    return has;
  }
  if (proof.lacks_long_us == -1) proof.lacks_long_us = now_us_;
  if (obstructed(session, look(index, session.key()))) {
    proof.lacks_us = -1;
  } else if (proof.lacks_us == -1) {
    proof.lacks_us = now_us_;
  }
  return proof.lacks_us != -1 && now_us_ - proof.lacks_us >= healing_us();
}

bool World::obstructed(const Session& session, const KeyState& state) const {
  return state.waiters || std::any_of(state.holders.begin(), state.holders.end(),
                                      [&](const auto& h) { return h.first != session.lock->owner(); });
}

void World::judge_lack(Session& session, size_t index) {
  const Proof& proof = session.proofs[index];
  const auto since = [&](int64_t us) {
    return us == -1 ? 0 : now_us_ - std::max(us, session.unhealable_us);
  };
  const bool roomy = world_.ttl_ms >= 500 && world_.servers > 1;
  if (since(proof.lacks_us) < 4 * healing_us() && (!roomy || since(proof.lacks_long_us) < 20 * ttl_us()))
    return;
  wrong("server " + std::to_string(index) + " works, but " + name_of(session) + " does not heal it");
}

}  // namespace holdfast::simulation::redlock
