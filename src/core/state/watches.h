// WATCH: the index of the connections that watch each key until their EXEC. Owns the index; each Conn lists
// the keys that it watches.
#pragma once

#include <absl/container/btree_map.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/types.h"
#include "core/state/conn.h"

namespace holdfast {

class Watches {
 public:
  bool empty() const { return watched_ == 0; }
  // Estimated memory of the names, here and in Conn.
  uint64_t bytes() const { return bytes_; }

  void add(Conn& c, DbIndex db, std::string_view key);
  // UNWATCH: removes at most `most` watched keys of a connection, and clears its mark that one has changed.
  void clear(Conn& c, size_t most = SIZE_MAX);

  // Called when a key has changed: EXEC fails for all connections that watch it.
  void break_key(const ConnTable& conns, DbIndex db, std::string_view key);
  // SWAPDB: exchanges the watched keys of two databases. The caller updates Conn::watched.
  void swap_dbs(DbIndex a, DbIndex b) { std::swap(by_key_[a], by_key_[b]); }
  // Like break_key(), for all watched keys of a database for which `matches(key)` is true.
  template <class F>
  void break_db(const ConnTable& conns, DbIndex db, F matches) const {
    for (const auto& [key, watchers] : by_key_[db]) {
      if (matches(key)) break_all(conns, watchers);
    }
  }

 private:
  static void break_all(const ConnTable& conns, const std::vector<ConnId>& watchers);

  // Trees, not hash tables: a hash table that grows delays all clients.
  std::array<absl::btree_map<std::string, std::vector<ConnId>, std::less<>>, kDatabases> by_key_;
  size_t watched_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast
