// Faults of servers and networks: restarts with and without memory, jumps of clocks, cuts.
#include <algorithm>

#include "redlock_world.h"

namespace holdfast::simulation::redlock {

using client::Redlock;
using client::Reply;

void World::begin_step(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kLeave:
      return leave(step);
    case Step::Kind::kJump:
      return jump(step);
    case Step::Kind::kCut:
      tell([&] {
        return "no message between client " + std::to_string(step.client) + " and server " +
               std::to_string(step.server);
      });
      cut_us_[step.client][step.server] =
          std::max(cut_us_[step.client][step.server], now_us_ + step.for_us);
      return;
    case Step::Kind::kStall: {
      tell([&] { return "client " + std::to_string(step.client) + " stands still"; });
      int64_t& until_us = clients_[step.client].stalled_us;
      until_us = std::max(until_us, now_us_ + step.for_us);
      return;
    }
    case Step::Kind::kSession:
      return;  // begins in step_client()
  }
}

// Whether all other servers work and have the holds of all holders that renew.
bool World::may_leave(const Step& step) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    if (i == step.server) continue;
    if (!servers_[i].up() || servers_[i].loading || servers_[i].recovering(now_us_)) return false;
    for (const Client& client : clients_) {
      if (!client.busy) continue;
      const Session& session = sessions_[client.session];
      const bool keeps = session.step->renews && is_valid(session) && !session.releases;
      if (keeps && servers_[i].clock.when(session.proofs[i].holds_ms) <= now_us_) return false;
    }
  }
  return true;
}

void World::leave(const Step& step) {
  Server& server = servers_[step.server];
  if (!server.up()) return;
  // judge_lack() reports a server that is never healed.
  const bool patient = now_us_ < step.at_us + 25 * ttl_us();
  if (step.once_healed && patient && !may_leave(step))
    return schedule_step(now_us_ + ttl_us() / 50, Event::Kind::kStep, step);
  tell([&] { return "server " + std::to_string(step.server) + " stops"; });
  for (const auto& [serial, link] : server.stop(now_us_))
    deliver(step.server, link, link.second, {Reply::Kind::kLost, 0, "the server stops"});
  schedule_step(now_us_ + step.for_us, Event::Kind::kReturn, step);
}

void World::come_back(const Step& step) {
  Server& server = servers_[step.server];
  tell([&] { return "server " + std::to_string(step.server) + " starts"; });
  ++tally_.restarts;
  if (step.reboots) ++tally_.reboots;
  const Clock before = server.clock;
  server.restart(now_us_, step, world_.flaw == Flaw::kCounterReset);
  const TimeMs recovered{server.clock.at(now_us_ + step.loading_us) + step.recovery_ms};
  const bool recovers = step.recovery_ms != 0 && world_.flaw != Flaw::kNoRecovery;
  if (recovers) server.engine().availability().recovering_until = recovered;
  // Nobody asks a server that loads. So the holds of the judge end with the recovery, also before it
  // begins.
  std::vector<KeyState> states;
  for (size_t key = 0; key < world_.keys; ++key) states.push_back(look(step.server, key));
  for (Session& session : sessions_) {
    if (is_valid(session)) session.restarted |= uint64_t{1} << step.server;
    Proof& proof = session.proofs[step.server];
    if (step.reboots) {  // the same moments on the new clock
      for (int64_t* ms : {&proof.holds_ms, &proof.refuses_ms})
        *ms = *ms == 0 ? 0 : server.clock.at(before.when(*ms));
    }
    const KeyState& state = states[session.key()];
    const auto found = std::find_if(state.holders.begin(), state.holders.end(),
                                    [&](const auto& h) { return h.first == session.lock->owner(); });
    const int64_t until = found == state.holders.end() ? 0 : server.clock.at(now_us_) + found->second;
    judge_memory(session, step, until);
    proof.holds_ms = std::min(proof.holds_ms, until);
    proof.refuses_ms =
        std::min(proof.refuses_ms, step.recovery_ms == 0 ? until : std::max(until, recovered.count));
  }
  if (step.loading_us != 0) {
    server.loading = server.engine().availability().loading = true;
    schedule_step(now_us_ + step.loading_us, Event::Kind::kLoaded, step);
  }
}

void World::finish_loading(const Step& step) {
  Server& server = servers_[step.server];
  if (!server.up()) return;
  tell([&] { return "server " + std::to_string(step.server) + " is loaded"; });
  server.loading = server.engine().availability().loading = false;
}

void World::jump(const Step& step) {
  tell([&] { return "the clock of server " + std::to_string(step.server) + " jumps"; });
  servers_[step.server].clock.start_ms += step.for_us / 1000;
}

// Judges what a restarted server still has of a session's hold: `until_ms` on its clock; 0: nothing.
void World::judge_memory(const Session& session, const Step& step, int64_t until_ms) {
  const int64_t holds_ms = session.proofs[step.server].holds_ms;
  const bool promised = step.memory == Memory::kAll && !step.reboots;
  if (!promised || until_ms >= holds_ms || holds_ms <= servers_[step.server].clock.at(now_us_)) return;
  wrong("server " + std::to_string(step.server) + " restarts with all its memory, but has the hold of " +
        name_of(session) + " until " + std::to_string(until_ms) + " ms, not " + std::to_string(holds_ms) +
        " ms");
}

KeyState World::look(size_t index, size_t key) {
  Effects fx;
  const KeyState state = servers_[index].look(kKeys[key], now_us_, fx);
  collect(index, fx);
  return state;
}

// Where each message arrives exactly once, all holds must be released long before their expiry. Returns
// true in all other runs.
bool World::is_free(size_t index) {
  if (world_.lost_one_in != 0 || world_.resent_one_in != 0) return true;
  const bool faults = std::any_of(steps_.begin(), steps_.end(),
                                  [](const Step& s) { return s.kind != Step::Kind::kSession; });
  for (size_t key = 0; key < world_.keys && !faults; ++key) {
    const KeyState state = look(index, key);
    if (!state.holders.empty() || state.waiters) return false;
  }
  return true;
}

}  // namespace holdfast::simulation::redlock
