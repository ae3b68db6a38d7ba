// Counters of the engine.
#pragma once

#include <cstdint>

namespace holdfast {

// Counters since the start, for INFO.
struct Stats {
  uint64_t commands = 0;
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;
  uint64_t refused_connections = 0;
  uint64_t expired_keys = 0;
  uint64_t keyspace_hits = 0;
  uint64_t keyspace_misses = 0;
  uint64_t grants = 0;         // granted at once or from a queue
  uint64_t queued_grants = 0;  // granted from a queue
  uint64_t refusals = 0;       // LOCK replied null at once
  uint64_t timeouts = 0;       // waits that timed out
  uint64_t deadlocks = 0;
  uint64_t deadlock_searches_given_up = 0;  // too many owners wait for one another
  uint64_t releases = 0;
  uint64_t renewals = 0;
  uint64_t broken_holds = 0;  // ended by LOCKS BREAK
};

}  // namespace holdfast
