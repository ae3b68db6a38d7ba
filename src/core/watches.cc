// The index behind WATCH.
#include "core/watches.h"

#include <algorithm>

namespace holdfast {

void Watches::add(Conn& c, DbIndex db, std::string_view key) {
  WatchedKey wanted{db, std::string(key)};
  if (std::ranges::find(c.watched, wanted) != c.watched.end()) return;
  by_key_[db][wanted.key].push_back(c.id);
  c.watched.push_back(std::move(wanted));
  ++watched_;
}

void Watches::clear(Conn& c) {
  for (const WatchedKey& w : c.watched) {
    const auto it = by_key_[w.db].find(w.key);
    std::erase(it->second, c.id);
    if (it->second.empty()) by_key_[w.db].erase(it);
  }
  watched_ -= c.watched.size();
  c.watched.clear();
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
