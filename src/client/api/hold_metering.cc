// What a HoldCore tells the meter of its client.
#include <utility>

#include "client/api/client_core.h"
#include "client/api/hold_core.h"

namespace holdfast {

microseconds HoldCore::since(int64_t begin_us) { return microseconds(client::Loop::now_us() - begin_us); }

// Returns the reason of a loss by the end of the validity: what the last renewal said.
LossReason HoldCore::expiry_reason() const {
  if (renewing_) return LossReason::kUnreachable;
  if (!machine_.renewal() || machine_.renewal()->ok()) return LossReason::kExpired;
  const Outcome outcome = machine_.renewal()->outcome;
  if (outcome == Outcome::kUnreachable) return LossReason::kUnreachable;
  return outcome == Outcome::kRefused ? LossReason::kRefused : LossReason::kGone;
}

void HoldCore::record_attempts() {
  const size_t begun = machine_.attempts();
  if (begun == counted_attempts_) return;
  client_->meter().record_attempts(begun - std::exchange(counted_attempts_, begun));
}

// Counts the end of a hold that was released, once. A release may find that the lock was lost before.
void HoldCore::record_end(Outcome outcome) {
  if (!std::exchange(releasing_, false)) return;
  const microseconds held = since(granted_us_);
  if (outcome != Outcome::kExpired) return client_->meter().record_release(key_, token_, outcome, held);
  client_->meter().record_loss(key_, token_, released_in_time_ ? LossReason::kGone : expiry_reason(), held);
}

}  // namespace holdfast
