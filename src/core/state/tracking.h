// CLIENT TRACKING: the index of the keys that connections have read, for invalidations when those keys
// change. As in Redis, a key is known by its name in any database. Owns the index; each Conn has its own
// settings.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <functional>
#include <string>
#include <vector>

#include "core/state/conn.h"

namespace holdfast {

class Tracking {
 public:
  using Clients = absl::btree_map<uint64_t, ConnId>;  // by serial: in the order in which they connected

  // BCAST: the clients that track a prefix, and the keys with it that have changed since the last
  // invalidation.
  struct Prefix {
    Clients clients;
    absl::btree_map<std::string, uint64_t> changed;  // to the serial of the client that changed it
  };

  // Whether any key may need an invalidation. A key that was read stays in the index until it changes, even
  // if its readers stop tracking.
  bool active() const { return !clients.empty() || !readers.empty(); }
  // Whether invalidations wait for the end of the request.
  bool has_unsent() const { return !own.empty() || pending > 0; }
  // Estimated memory of the names that clients have given or read.
  uint64_t bytes() const { return reader_bytes + prefix_bytes + remembered * sizeof(Clients::value_type); }
  // Whether the index has more than `most` keys; 0: no limit.
  bool has_surplus(uint64_t most) const { return most != 0 && readers.size() > most; }

  Clients clients;  // all clients with tracking on
  // Ordered, so that every run evicts the same keys when there are too many.
  absl::btree_map<std::string, Clients, std::less<>> readers;
  absl::btree_map<std::string, Prefix, std::less<>> prefixes;
  absl::btree_set<std::string> touched;  // the prefixes with changed keys
  std::vector<std::string> own;          // keys that the present request changed and its own client tracks
  size_t pending = 0;                    // changed keys, total over all prefixes
  size_t remembered = 0;                 // clients in `readers`, total over all keys
  uint64_t reader_bytes = 0;             // of the keys of `readers`
  uint64_t prefix_bytes = 0;             // of all prefixes, here and in ClientTracking

  // The most prefixes that one client may track.
  static constexpr size_t kMostPrefixes = 1000;
};

}  // namespace holdfast
