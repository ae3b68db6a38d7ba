// The grants of an iteration, as its records and its tokens show them.
#include "io/disk/iteration_grants.h"

#include "core/engine/engine.h"
#include "core/state/tokens.h"

namespace holdfast {

void IterationGrants::note_records(const Engine& engine) {
  recorded_ = recorded_ || engine.recorded_grants();
}

bool IterationGrants::any(const Engine& engine) const {
  const Tokens& tokens = engine.tokens();
  const bool has_new_tokens = tokens.largest() != token_ || tokens.ahead_serial() != ahead_serial_;
  return recorded_ || has_new_tokens;
}

void IterationGrants::end(const Engine& engine) {
  recorded_ = false;
  token_ = engine.tokens().largest();
  ahead_serial_ = engine.tokens().ahead_serial();
}

}  // namespace holdfast
