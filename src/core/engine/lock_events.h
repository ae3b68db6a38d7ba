// The changes of locks, one after the other, for a shell that passes them on: the events of LOCKS HISTORY.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/base/types.h"

namespace holdfast {

class Engine;

// With the names of LOCKS HISTORY. The texts are valid until the next request.
struct ShownLockEvent {
  uint64_t serial = 0;
  std::string_view name;
  int64_t at_ms = 0;  // wall clock
  int db = 0;         // as clients number it
  std::string_view key;
  std::string_view owner;
  std::string_view note;
  Token token;
  DurationMs waited;
  DurationMs held;
  std::string_view address;  // of the client whose request caused it; empty: none, or it is not known
};

// The serials of the events that are kept are those from the oldest to the newest.
uint64_t newest_lock_event(const Engine& engine);
uint64_t oldest_lock_event(const Engine& engine);
ShownLockEvent read_lock_event(const Engine& engine, uint64_t serial);

}  // namespace holdfast
