// The index behind WATCH.
#include "core/state/watches.h"

#include "core/state/conn.h"

namespace holdfast {

void Watches::add(Conn& c, DbIndex db, std::string_view key) {
  if (!c.watched.insert(WatchedKey{db, std::string(key)}).second) return;
  const auto [it, made] = by_key_[db].try_emplace(std::string(key));
  it->second.push_back(c.id);
  ++watched_;
  bytes_ += bytes_of_name(key) * (made ? 2 : 1);
  c.name_bytes += bytes_of_name(key);
}

void Watches::clear(Conn& c, size_t most) {
  auto w = c.watched.begin();
  for (; most > 0 && w != c.watched.end(); --most, --watched_, w = c.watched.erase(w)) {
    const auto it = by_key_[w->db].find(w->key);
    std::erase(it->second, c.id);
    const bool last = it->second.empty();
    bytes_ -= bytes_of_name(w->key) * (last ? 2 : 1);
    c.name_bytes -= bytes_of_name(w->key);
    if (last) by_key_[w->db].erase(it);
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
