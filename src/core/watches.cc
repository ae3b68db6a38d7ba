// The index behind WATCH.
#include "core/watches.h"

namespace holdfast {

void Watches::add(Conn& c, DbIndex db, std::string_view key) {
  if (!c.watched.insert(WatchedKey{db, std::string(key)}).second) return;
  by_key_[db][std::string(key)].push_back(c.id);
  ++watched_;
}

void Watches::clear(Conn& c, size_t most) {
  auto w = c.watched.begin();
  for (; most > 0 && w != c.watched.end(); --most, --watched_, w = c.watched.erase(w)) {
    const auto it = by_key_[w->db].find(w->key);
    std::erase(it->second, c.id);
    if (it->second.empty()) by_key_[w->db].erase(it);
  }
  c.watch_broken = false;
}

void Watches::break_all(const ConnTable& conns, const std::vector<ConnId>& watchers) {
  for (const ConnId id : watchers) conns.at(id).watch_broken = true;
}

void Watches::break_key(const ConnTable& conns, DbIndex db, std::string_view key) {
  const auto it = by_key_[db].find(key);
  if (it != by_key_[db].end()) break_all(conns, it->second);
}

}  // namespace holdfast
