// The model's time: due events, their order, and the ends of holds, waits and leases at their deadlines.
#include <algorithm>
#include <tuple>

#include "model.h"

namespace holdfast::simulation {

std::vector<Model::Due> Model::all_due() const {
  std::vector<Due> out;
  for (const auto& [id, lease] : leases_) {
    if (lease.state == Lease::State::kGranted) out.push_back({lease.deadline, Due::kLeaseOver, {}, {}, id});
  }
  std::stable_sort(out.begin(), out.end(), [&](const Due& a, const Due& b) {
    return leases_.at(a.lease).armed < leases_.at(b.lease).armed;
  });
  for (const auto& [id, state] : keys_) {
    for (const Hold& hold : state.holds) {
      out.push_back({hold.deadline, Due::kExpiry, id, hold.owner});
      out.push_back({hold.session_end, Due::kSessionOver, id, hold.owner, {}, hold.listener});
    }
    if (state.delay_until.count >= 0) out.push_back({state.delay_until, Due::kDelayOver, id});
    for (const Request& request : state.queue) {
      out.push_back({request.until, Due::kWaitOver, id, {}, {}, 0, &request});
    }
  }
  std::erase_if(out, [](const Due& due) { return due.at == kNever; });
  std::stable_sort(out.begin(), out.end(), [](const Due& a, const Due& b) {
    return std::tie(a.at, a.kind) < std::tie(b.at, b.kind);
  });
  return out;
}

std::optional<TimeMs> Model::next_event() const {
  const std::vector<Due> due = all_due();
  if (due.empty()) return std::nullopt;
  return due.front().at;
}

// Returns the end of a wait, or of a hold for which a waiter or a listener gets output.
std::optional<TimeMs> Model::next_visible_event() const {
  for (const Due& due : all_due()) {
    if (due.kind == Due::kWaitOver) return due.at;
    const auto found = keys_.find(due.id);
    if (found == keys_.end()) continue;
    const std::vector<Hold>& holds = found->second.holds;
    const bool listened =
        std::any_of(holds.begin(), holds.end(), [](const Hold& hold) { return hold.async; });
    if (listened || !found->second.queue.empty()) return due.at;
  }
  return std::nullopt;
}

// Whether two events happen at once, without a grant between them: events of keys at one moment, and the
// end of a session.
bool Model::together(const Due& a, const Due& b) {
  if (a.at != b.at) return false;
  if (a.kind <= Due::kDelayOver) return b.kind <= Due::kDelayOver;
  return a.kind == Due::kSessionOver && b.kind == Due::kSessionOver && a.session == b.session;
}

// Runs one event after the other, since an event can make new events due.
void Model::catch_up() {
  group_ = ++last_group_;
  std::optional<Due> last;
  for (;;) {
    const std::vector<Due> due = all_due();
    const bool more = !due.empty() && is_due(due.front().at, now_.mono);
    if (last && !(more && together(*last, due.front()))) {
      last.reset();
      serve_touched();
      continue;
    }
    if (!more) break;
    last = due.front();
    happen(*last);
  }
  group_ = 0;
}

void Model::tick(Now now) {
  now_ = now;
  catch_up();
}

void Model::happen(const Due& due) {
  switch (due.kind) {
    case Due::kDelayOver:
      keys_[due.id].delay_until = TimeMs{-1};
      return touch(due.id);
    case Due::kExpiry:
    case Due::kSessionOver:
      end_hold(due.id, due.owner, due.at);
      return touch(due.id);
    case Due::kLeaseOver:
      return lose_lease(due.lease, due.at);
    case Due::kWaitOver:
      return end_wait(due);
  }
}

// A hold ends by its deadline or by force, without a request of its owner. Its lock-delay starts at
// `moment`.
void Model::end_hold(const KeyId& id, const std::string& owner, TimeMs moment) {
  KeyState& state = keys_[id];
  const Hold hold = *hold_of(state, owner);
  std::erase_if(state.holds, [&](const Hold& h) { return h.owner == owner; });
  if (hold.delay_ms > 0) {
    state.delay_until = std::max(state.delay_until, moment + DurationMs{hold.delay_ms});
  }
  push_lost(id, hold);
}

void Model::push_lost(const KeyId& id, const Hold& hold) {
  if (!hold.async) return;
  expect_output(hold.listener, push(hold.listener, "lost", id.second, hold.owner, 4),
                id.second + ", " + hold.owner);
}

// The key ends for all its holders at once, without a lock-delay.
bool Model::lose_holds(const KeyId& id) {
  KeyState& state = keys_[id];
  if (state.holds.empty()) return false;
  const int group = group_;
  if (group_ == 0) group_ = ++last_group_;  // the order of its holders is unspecified
  for (const Hold& hold : state.holds) push_lost(id, hold);
  group_ = group;
  state.holds.clear();
  touch(id);
  return true;
}

void Model::end_wait(const Due& due) {
  const Request request = *due.request;
  KeyState& state = keys_[due.id];
  state.queue.erase(state.queue.begin() + (due.request - state.queue.data()));
  if (request.async) {
    expect_output(request.client, push(request.client, "timeout", due.id.second, request.owner, 4),
                  due.id.second);
  } else {
    wake(request.client, Frame(clients_.at(request.client).protocol).null_array(), due.id.second);
  }
  touch(due.id);
}

}  // namespace holdfast::simulation
