// Reads a snapshot to its end, and checks it.
#pragma once

#include <cstdint>
#include <string>

#include "core/persist/load_snapshot.h"
#include "io/os/files.h"

namespace holdfast {

struct SnapshotFacts {
  uint64_t bytes = 0;  // unpacked
  uint64_t strings = 0;
  uint64_t hashes = 0;
  uint64_t collections = 0;  // lists, sets and sorted sets
  uint64_t others = 0;       // keys of types that only Redis has
  PeekedJournal journal;

  // "a snapshot of 800 bytes unpacked, with ..."
  std::string text() const;
};

// The error has the position of the fault.
Result<SnapshotFacts> read_snapshot(Files& files, const std::string& name);

}  // namespace holdfast
