// Engines for targets, and operations that work on any of them.
#pragma once

#include <algorithm>
#include <string>

#include "core/base/checksum.h"
#include "core/codec/rdb_writer.h"
#include "core/engine/engine.h"
#include "core/persist/load_snapshot.h"
#include "core/persist/snapshot.h"
#include "fuzz/targets.h"
#include "unit/state_text.h"

namespace holdfast::fuzz {

inline Now time_at(int64_t ms) { return {{5000 + ms}, 1000000000000000 + ms * 1000}; }

// Small limits, so that inputs reach them.
inline Config engine_config() {
  Config c;
  c.hash_seed = 7;
  c.limits.max_ended_leases = 8;
  c.limits.waiters = 12;
  c.limits.waiters_per_key = 6;
  c.limits.owner_bytes = 100;
  c.limits.tracking_keys = 10;
  c.limits.hash_packed_entries = 6;
  c.limits.bulk_bytes = 1U << 20U;
  c.limits.script_memory_bytes = 8U << 20U;
  c.session_grace = {20};
  c.boot_id = "boot";
  c.random = [n = uint8_t{0}](std::span<uint8_t> bytes) mutable {
    for (uint8_t& b : bytes) b = n++;
  };
  return c;
}

// finish_restore() ends loading. let_expire() lets time pass.
inline void finish_restore(Engine& engine, const Now& now) {
  engine.finish_loading(now);
  engine.check_invariants();
}
inline void let_expire(Engine& engine, int64_t ms) {
  Effects fx;
  engine.tick(time_at(ms), fx);
  engine.check_invariants();
}

inline std::string snapshot_of(Engine& engine, const Now& now) {
  Snapshot snapshot(engine.state(), now, 1, false);
  while (!snapshot.step()) {
  }
  std::string file = std::move(snapshot.bytes());
  append_crc(file, crc64(0, file));
  return file;
}

// Returns an empty text, or the reason of the failure.
inline std::string restore(Engine& engine, std::string_view file, const Now& now, size_t piece = SIZE_MAX) {
  Restore restore(engine.state(), now, true);
  bool good = true;
  for (size_t at = 0; good && at < file.size(); at += std::min(piece, file.size() - at))
    good = restore.feed(file.substr(at, piece));
  if (good) good = restore.finish();
  must(good == restore.error().empty(), "what fails says why");
  return restore.error();
}

}  // namespace holdfast::fuzz
