// Changes of the sorted set that a key holds: see body_changes.h. The command sends the keyspace event.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/zset_body.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// An empty sorted set with the settings of the engine.
std::unique_ptr<ZsetBody> new_zset(const EngineState& s);
PackedZsetLimits packed_zset_limits(const EngineState& s);
// While a whole sorted set loads, which may become large: ZsetBody::drop_minus_zero() follows.
PackedZsetLimits loading_zset_limits(const EngineState& s);

// The options of ZADD.
struct ScoreRules {
  bool only_new = false;       // NX
  bool only_existing = false;  // XX
  bool only_greater = false;   // GT; new members are added
  bool only_less = false;      // LT; the same
  bool increment = false;      // INCR: the given score is added to the present one

  bool any() const { return only_new || only_existing || only_greater || only_less || increment; }
};
struct PutScores {
  size_t added = 0;
  size_t updated = 0;
  std::optional<double> score;  // of the last member, unless a rule left it alone
  bool nan = false;             // an increment would give NaN; it changed nothing
};

// Sets the scores of members in their order, as far as the rules permit; no score is NaN. The key holds a
// sorted set, or nothing yet; `k.f` must be the result of find_any() for it. `scores` is not empty. Without
// a value of the key, the rule `only_existing` is not permitted.
PutScores put_scores(Context& ctx, KeyRef k, const Key& key, std::span<const MemberScore> scores,
                     const ScoreRules& rules, ConnId client);

// Removes the members with these ranks, which must exist. The last member removes the key.
void remove_ranks(Context& ctx, KeyRef k, size_t rank, size_t count, ConnId client);

}  // namespace holdfast
