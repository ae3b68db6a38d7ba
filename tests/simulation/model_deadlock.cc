// Deadlock detection by simulation: it takes the locks of all owners that may wait for the requesting
// owner, directly or indirectly. The queues grant as usual, and an owner without a wait releases all its
// holds. If the requesting owner still waits when no grant is possible, it would wait for itself.
#include <algorithm>

#include "model.h"

namespace holdfast::simulation {

// Returns the owner and all owners that wait behind one of them, or for a key that one of them holds.
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

// Grants all requests of a queue that can be granted. Returns whether there was one.
bool Model::play(KeyState& state) {
  bool any = false;
  promote_upgrades(state);
  while (const std::optional<size_t> place = next_to_go(state)) {
    const Request granted = state.queue[*place];
    state.queue.erase(state.queue.begin() + static_cast<std::ptrdiff_t>(*place));
    std::erase_if(state.holds, [&](const Hold& hold) { return hold.owner == granted.owner; });
    state.holds.emplace_back().owner = granted.owner;
    state.holds.back().capacity = granted.capacity;
    promote_upgrades(state);
    any = true;
  }
  return any;
}

// Each owner that does not wait releases its holds. Returns whether there was one.
bool Model::release_unblocked(std::map<KeyId, KeyState>& keys) {
  std::set<std::string> waiting;
  for (const auto& [id, state] : keys) {
    for (const Request& request : state.queue) waiting.insert(request.owner);
  }
  size_t removed = 0;
  for (auto& [id, state] : keys) {
    removed += std::erase_if(state.holds, [&](const Hold& hold) { return !waiting.contains(hold.owner); });
  }
  return removed > 0;
}

bool Model::deadlocked(const std::string& owner) const {
  const std::set<std::string> concerned = waiting_for(owner);
  std::map<KeyId, KeyState> keys = keys_;
  for (auto& [id, state] : keys) {
    std::erase_if(state.holds, [&](const Hold& hold) { return !concerned.contains(hold.owner); });
    std::erase_if(state.queue, [&](const Request& request) { return !concerned.contains(request.owner); });
    state.delay_until = TimeMs{-1};  // the lock-delay will end
  }
  for (bool moves = true; moves;) {
    moves = release_unblocked(keys);
    for (auto& [id, state] : keys) moves = play(state) || moves;
  }
  return std::any_of(keys.begin(), keys.end(), [&](const auto& key) {
    const auto& queue = key.second.queue;
    return std::any_of(queue.begin(), queue.end(), [&](const Request& r) { return r.owner == owner; });
  });
}

}  // namespace holdfast::simulation
