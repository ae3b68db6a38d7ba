// Deadlock, found the slow way: whoever waits is taken to be stuck; then those are released who would have
// all they wait for once the owners that are not stuck let go, until nothing changes. Who remains waits for
// ever.
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

bool Model::deadlocked(const std::string& owner) const {
  std::set<std::string> stuck;
  for (const auto& [id, state] : keys_) {
    for (const Request& request : state.queue) stuck.insert(request.owner);
  }
  for (bool changed = true; changed;) {
    std::set<std::string> still;
    for (const auto& [id, state] : keys_) {
      for (size_t place = 0; place < state.queue.size(); ++place) {
        if (!satisfiable(state, place, stuck)) still.insert(state.queue[place].owner);
      }
    }
    changed = still.size() < stuck.size();
    stuck = std::move(still);
  }
  return stuck.contains(owner);
}

}  // namespace holdfast::simulation
