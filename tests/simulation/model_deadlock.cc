// Deadlock, found the slow way: suppose that the asking owner waits for ever. Then whoever cannot be
// granted without something of a stuck owner is stuck too, and so on until nothing changes. If what is
// stuck suffices to keep the new request out, it would wait for itself.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {

// Whether the waiter gets its lock once every owner that is not stuck has let go of what it holds. Those
// queued before its owner's first request must all have had their turn, and of the holders as many must go
// as the capacity rule asks.
bool Model::satisfiable(const KeyState& state, size_t place, const std::set<std::string>& stuck) const {
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

bool Model::deadlocked(const KeyId& id, size_t place) const {
  std::set<std::string> stuck = {keys_.at(id).queue[place].owner};
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [key, state] : keys_) {
      for (size_t at = 0; at < state.queue.size(); ++at) {
        if (!satisfiable(state, at, stuck)) changed = stuck.insert(state.queue[at].owner).second || changed;
      }
    }
  }
  return !satisfiable(keys_.at(id), place, stuck);
}

}  // namespace holdfast::simulation
