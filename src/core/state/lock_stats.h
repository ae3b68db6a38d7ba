// Counters and histograms of locks, by mode and by reason.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "core/base/duration_histogram.h"
#include "core/base/types.h"

namespace holdfast {

enum class LockMode : uint8_t { kExclusiveMode, kSharedMode, kSemaphoreMode };
inline constexpr size_t kLockModes = 3;
inline constexpr LockMode mode_of(Capacity c) {
  if (c == kExclusive) return LockMode::kExclusiveMode;
  return c == kShared ? LockMode::kSharedMode : LockMode::kSemaphoreMode;
}

// Why a hold ends. A lock-delay follows kExpired, kDisconnected and kBroken. After kReleased the owner gets
// no push about a loss.
enum class End : uint8_t { kReleased, kExpired, kDisconnected, kBroken, kDeleted, kOverwritten };
inline constexpr size_t kEnds = 6;

// Why a LOCK got an answer other than a grant at once. kHeld: it did not want to wait.
enum class Refusal : uint8_t { kHeld, kDeadlock, kRecovering, kDisk, kMemory, kWaiters };
inline constexpr size_t kRefusals = 6;

// Why a wait ends. kReset: RESET, or a change to RESP2.
enum class WaitEnd : uint8_t { kGranted, kTimeout, kDisconnected, kUnblocked, kReset };
inline constexpr size_t kWaitEnds = 5;

// A counter for each value of an enumeration.
template <class Reason, size_t N>
class CountersBy {
 public:
  uint64_t& operator[](Reason r) { return counts_[static_cast<size_t>(r)]; }
  uint64_t operator[](Reason r) const { return counts_[static_cast<size_t>(r)]; }
  uint64_t sum() const { return std::accumulate(counts_.begin(), counts_.end(), uint64_t{0}); }

 private:
  std::array<uint64_t, N> counts_{};
};

// Since the start, or since CONFIG RESETSTAT.
struct LockStats {
  CountersBy<LockMode, kLockModes> grants;         // by LOCK: at once or from a queue
  CountersBy<LockMode, kLockModes> queued_grants;  // those of them that came from a queue
  CountersBy<End, kEnds> ends;                     // of all holds, also those that SET made
  CountersBy<Refusal, kRefusals> refusals;
  CountersBy<WaitEnd, kWaitEnds> wait_ends;
  uint64_t renewals = 0;
  std::array<DurationHistogram, kLockModes> holds;
  // Of requests that waited. A grant at once is not recorded here, as its wait is 0.
  std::array<DurationHistogram, kLockModes> waits;

  void record_end(LockMode mode, End why, DurationMs held) {
    ++ends[why];
    holds[static_cast<size_t>(mode)].record(held);
  }
  // Of all grants.
  DurationHistogram wait_times(LockMode mode) const {
    DurationHistogram all = waits[static_cast<size_t>(mode)];
    all.add_zeros(grants[mode] - queued_grants[mode]);
    return all;
  }
};

}  // namespace holdfast
