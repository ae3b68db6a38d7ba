// All data of an engine that a restart must keep, as records that can be compared: one for each hold, for
// each value, for each hash, list and set, and for each lock-delay.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/engine.h"

namespace holdfast::simulation {

struct Record {
  int db = 0;
  std::string key;
  std::string owner;        // of a lock, or the value
  std::string rest;         // all else, as text; for a hash, list or set its elements
  int64_t deadline_ms = 0;  // in true time; -1: none
  uint64_t token = 0;
  uint32_t capacity = 1;
  int64_t since_ms = 0;  // in true time
  bool session = false;
  uint64_t lease = 0;    // 0: none
  int64_t delay_ms = 0;  // the lock-delay that follows the hold
  bool hash = false;     // or a list or set: a value without an owner
  bool delay = false;    // a lock-delay: its deadline is its end

  bool ends_by(int64_t at_ms) const { return deadline_ms >= 0 && deadline_ms <= at_ms; }
  // Whether it is the same hold or value, whatever its deadline.
  bool is_same(const Record& other) const {
    return db == other.db && key == other.key && owner == other.owner && token == other.token &&
           rest == other.rest && session == other.session && hash == other.hash && delay == other.delay;
  }
  bool operator==(const Record& other) const { return is_same(other) && deadline_ms == other.deadline_ms; }
  std::string text() const;
};

using View = std::vector<Record>;

// The records in order. `clock` makes true times of the engine's.
View view_of(Engine& engine, const Now& clock);

}  // namespace holdfast::simulation
