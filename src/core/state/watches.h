// WATCH: which connections look at which keys until their EXEC. Owns the index; what each watches stands
// in its Conn.
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
  // Memory of the names, here and in Conn, by estimate.
  uint64_t bytes() const { return bytes_; }

  void add(Conn& c, DbIndex db, std::string_view key);
  // UNWATCH: forgets what a connection watches, at most so many of it, and whether any of it changed.
  void clear(Conn& c, size_t most = SIZE_MAX);

  // The key has changed: EXEC will fail for all who watch it.
  void break_key(const ConnTable& conns, DbIndex db, std::string_view key);
  // SWAPDB: what is watched by a name is watched in the other database from now on. The caller sees to
  // Conn::watched.
  void swap_dbs(DbIndex a, DbIndex b) { std::swap(by_key_[a], by_key_[b]); }
  // The same for all watched keys of a database for which `is_concerned(key)`.
  template <class F>
  void break_db(const ConnTable& conns, DbIndex db, F is_concerned) const {
    for (const auto& [key, watchers] : by_key_[db]) {
      if (is_concerned(key)) break_all(conns, watchers);
    }
  }

 private:
  static void break_all(const ConnTable& conns, const std::vector<ConnId>& watchers);

  // Trees, not hash tables, as one that grows keeps everybody waiting.
  std::array<absl::btree_map<std::string, std::vector<ConnId>, std::less<>>, kDatabases> by_key_;
  size_t watched_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast
