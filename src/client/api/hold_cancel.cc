// The ends of an acquisition that no server decides.
#include <utility>

#include "client/api/hold_core.h"

namespace holdfast {

void HoldCore::refuse() { refuse(kDestroyed); }
void HoldCore::refuse_stopped() { refuse(kStopped); }

void HoldCore::refuse(const char* why) {
  phase_ = Phase::kOver;
  std::exchange(done_, nullptr)(Status{Outcome::kCancelled, why});
}

void HoldCore::cancel() {
  cancelled_ = kDestroyed;
  release();
}

void HoldCore::stop() {
  if (phase_ != Phase::kAcquiring || !done_) return;
  cancelled_ = kStopped;
  release();
}

}  // namespace holdfast
