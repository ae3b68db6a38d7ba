// CLIENT TRACKING: which connections have read which keys, and hear when those change. As in Redis, a key
// is known by its name in any database. Owns the index; what a connection asked for stands in its Conn.
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
  using Clients = absl::btree_map<uint64_t, ConnId>;  // by serial: told in the order they came

  // BCAST: who hears of keys with a prefix, and which of them have changed since they were last told.
  struct Prefix {
    Clients clients;
    absl::btree_map<std::string, uint64_t> changed;  // to the serial of who changed it
  };

  // Keys stay remembered when those who read them stop tracking, until they change.
  bool active() const { return !clients.empty() || !readers.empty(); }
  // Whether there is anything that a request's end has to tell.
  bool untold() const { return !own.empty() || pending > 0; }
  // Memory of what clients have named or read, by estimate.
  uint64_t bytes() const { return reader_bytes + prefix_bytes + remembered * sizeof(Clients::value_type); }
  // Whether more keys are remembered than may be; `most` 0: any number may.
  bool has_surplus(uint64_t most) const { return most != 0 && readers.size() > most; }

  Clients clients;  // all with tracking on
  // In order, so that what is forgotten when there are too many is the same in every run.
  absl::btree_map<std::string, Clients, std::less<>> readers;
  absl::btree_map<std::string, Prefix, std::less<>> prefixes;
  absl::btree_set<std::string> touched;  // the prefixes that have something to tell
  std::vector<std::string> own;          // keys that the present request has changed under its own client
  size_t pending = 0;                    // changed keys of all prefixes
  size_t remembered = 0;                 // of all readers
  uint64_t reader_bytes = 0;             // of the keys of `readers`
  uint64_t prefix_bytes = 0;             // of all prefixes, here and in ClientTracking

  // The most that one client may name.
  static constexpr size_t kMostPrefixes = 1000;
};

}  // namespace holdfast
