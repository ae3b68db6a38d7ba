// Changes of sorted sets.
#include "core/values/zset_changes.h"

#include <cmath>
#include <memory>
#include <vector>

#include "core/base/config.h"
#include "core/events/record_changes.h"
#include "core/values/body_changes.h"

namespace holdfast {

namespace {

// The new score of a member; nullopt if a rule leaves it alone. It may be NaN.
std::optional<double> permitted(const ScoreRules& rules, std::optional<double> old, double given) {
  if (!old) return rules.only_existing ? std::nullopt : std::optional(given);
  if (rules.only_new) return std::nullopt;
  const double score = rules.increment ? *old + given : given;
  const bool kept = (rules.only_greater && score <= *old) || (rules.only_less && score >= *old);
  return kept ? std::nullopt : std::optional(score);
}

}  // namespace

std::unique_ptr<ZsetBody> new_zset(const EngineState& s) {
  return std::make_unique<ZsetBody>(s.config.hash_seed);
}

PackedZsetLimits packed_zset_limits(const EngineState& s) {
  return {s.config.limits.zset_packed_entries, s.config.limits.zset_packed_member_bytes};
}

PackedZsetLimits loading_zset_limits(const EngineState& s) {
  PackedZsetLimits limits = packed_zset_limits(s);
  limits.minus_zero = true;
  return limits;
}

PutScores put_scores(Context& ctx, KeyRef k, const Key& key, std::span<const MemberScore> scores,
                     const ScoreRules& rules, ConnId client) {
  ZsetBody& zset = body_to_change<ZsetBody>(ctx, k, key, client, [&] { return new_zset(ctx.s); });
  PutScores result;
  std::vector<MemberScore> changed;
  change_body(ctx.keys(k.db), zset, [&] {
    for (const auto& [member, given] : scores) {
      const auto score = rules.any() ? permitted(rules, zset.find(member), given) : given;
      result.score = score;
      result.nan = score && std::isnan(*score);
      if (!score || result.nan) continue;
      const ScoreChange change = zset.set(member, *score, packed_zset_limits(ctx.s));
      if (change == ScoreChange::kNone) continue;
      changed.push_back({member, *score});
      ++(change == ScoreChange::kAdded ? result.added : result.updated);
    }
    return true;
  });
  if (changed.empty()) return result;
  journal_scores(ctx, k.db, key.bytes, changed);
  end_body_change(ctx, k, client);
  return result;
}

void remove_ranks(Context& ctx, KeyRef k, size_t rank, size_t count, ConnId client) {
  if (count == 0) return;
  ZsetBody& zset = body_of<ZsetBody>(*k);
  if (count == zset.size()) return remove_key(ctx, k, End::kDeleted);
  change_body(ctx.keys(k.db), zset, [&] {
    zset.erase_range(rank, count);
    return true;
  });
  journal_erased_ranks(ctx, k.db, key_of(*k), rank, count);
  end_body_change(ctx, k, client);
}

}  // namespace holdfast
