// CLIENT TRACKING: which connections have read which keys, and hear when those change. As in Redis, a key
// is known by its name in any database. Owns the index; what a connection asked for stands in its Conn.
#pragma once

#include <absl/container/btree_map.h>
#include <absl/container/btree_set.h>

#include <span>
#include <string>
#include <string_view>

#include "core/conn.h"
#include "core/hash.h"

namespace holdfast {

struct Command;
struct Turn;

class Tracking {
 public:
  using Clients = absl::btree_map<uint64_t, ConnId>;  // by serial: told in the order they came

  // BCAST: who hears of keys with a prefix, and which of them have changed since they were last told.
  struct Prefix {
    Clients clients;
    absl::btree_map<std::string, uint64_t> changed;  // to the serial of who changed it
  };

  bool active() const { return !clients.empty(); }

  Clients clients;  // all with tracking on
  StringMap<Clients> readers;
  absl::btree_map<std::string, Prefix> prefixes;
  size_t pending = 0;     // changed keys of all prefixes
  size_t remembered = 0;  // of all readers
};

// Notes that the connection may keep what this request has read.
void remember_reads(Turn& t, Conn& c, const Command& command, std::span<const std::string_view> argv);

// Tells who has read the key that it changed.
void invalidate(Turn& t, std::string_view key);
void invalidate_all(Turn& t);

// Once a turn: tells those with BCAST what has changed.
void broadcast_invalidations(Turn& t);

void start_tracking(Turn& t, Conn& c, ClientTracking wanted);
void stop_tracking(Turn& t, Conn& c);

}  // namespace holdfast
