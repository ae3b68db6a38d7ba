// The ends of an acquisition that no server decides.
#include <utility>

#include "client/api/hold_core.h"

namespace holdfast {

void HoldCore::refuse() { refuse(kDestroyed); }
void HoldCore::refuse_stopped() { refuse(kStopped); }

void HoldCore::refuse(const char* why) {
  const Done done = std::move(std::get<Acquiring>(phase_).done);
  phase_ = hold::Over{};
  done(Status{Outcome::kCancelled, why});
}

void HoldCore::cancel() {
  if (auto* acquiring = std::get_if<Acquiring>(&phase_)) acquiring->cancelled = kDestroyed;
  release();
}

void HoldCore::stop() {
  auto* acquiring = std::get_if<Acquiring>(&phase_);
  if (acquiring == nullptr) return;
  acquiring->cancelled = kStopped;
  release();
}

}  // namespace holdfast
