// Deadlock, found the slow way: whoever may wait for the asking owner, directly or through others, is taken
// to be stuck. Then those are released who would have all they wait for once the owners that are not stuck
// let go, until nothing changes. If the asker remains, it would wait for itself.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {

// Whether the waiter gets its lock once every owner that is not stuck has let go of what it holds. Those
// queued before its owner's first request must all have had their turn, and of the holders as many must go
// as the capacity rule asks.
bool Model::satisfiable(const KeyState& state, size_t place, const std::set<std::string>& stuck) {
  const Request& request = state.queue[place];
  for (size_t before = 0; before < place; ++before) {
    const std::string& owner = state.queue[before].owner;
    if (owner == request.owner) break;
    if (stuck.contains(owner)) return false;
  }
  KeyState remaining;
  for (const Hold& hold : state.holds) {
    if (stuck.contains(hold.owner)) remaining.holds.push_back(hold);
  }
  return fits(remaining, request);
}

// The owner, and all who stand in a queue behind somebody of them or at a key that somebody of them holds.
std::set<std::string> Model::waiting_for(const std::string& owner) const {
  std::set<std::string> all = {owner};
  for (size_t before = 0; before < all.size();) {
    before = all.size();
    for (const auto& [id, state] : keys_) {
      bool concerned = std::any_of(state.holds.begin(), state.holds.end(),
                                   [&](const Hold& hold) { return all.contains(hold.owner); });
      for (const Request& request : state.queue) {
        if (concerned) all.insert(request.owner);
        concerned = concerned || all.contains(request.owner);
      }
    }
  }
  return all;
}

bool Model::deadlocked(const std::string& owner) const {
  std::set<std::string> stuck = waiting_for(owner);
  for (bool changed = true; changed;) {
    std::set<std::string> still;
    for (const auto& [id, state] : keys_) {
      for (size_t place = 0; place < state.queue.size(); ++place) {
        const std::string& waiter = state.queue[place].owner;
        if (stuck.contains(waiter) && !satisfiable(state, place, stuck)) still.insert(waiter);
      }
    }
    changed = still.size() < stuck.size();
    stuck = std::move(still);
  }
  return stuck.contains(owner);
}

}  // namespace holdfast::simulation
