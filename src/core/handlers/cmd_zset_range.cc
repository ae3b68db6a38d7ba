// Ranges of sorted sets: ZRANGE and its older forms, ZRANGESTORE, ZCOUNT ZLEXCOUNT ZREMRANGEBY...
// ZRANDMEMBER.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/config.h"
#include "core/command/handlers.h"
#include "core/events/change_events.h"
#include "core/handlers/body_access.h"
#include "core/handlers/random_choice.h"
#include "core/handlers/zset_access.h"
#include "core/handlers/zset_range.h"
#include "core/state/conn.h"
#include "core/state/request.h"
#include "core/values/body_changes.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

// What a command of the family fixes; the request says the rest. ZRANGE fixes nothing.
struct RangeForm {
  std::optional<RangeBy> by;
  std::optional<bool> downwards;
  bool store = false;
};

struct RangeRequest {
  std::optional<RangeBy> by;
  std::optional<bool> downwards;
  bool with_scores = false;
  int64_t offset = 0;
  int64_t limit = -1;  // below 0: none
};

// Reads one option at argument `i`, and moves `i` to its last word. Returns false after writing an error.
bool read_range_option(Request& r, const RangeForm& form, size_t& i, RangeRequest& o) {
  const std::string_view word = r.arg(i);
  if (!form.store && equals_ignore_case(word, "WITHSCORES")) {
    o.with_scores = true;
  } else if (equals_ignore_case(word, "LIMIT") && i + 2 < r.argc()) {
    const auto offset = parse_int(r.arg(i + 1));
    const auto limit = parse_int(r.arg(i + 2));
    if (!offset || !limit) return reply_not_an_integer(r), false;
    o.offset = *offset;
    o.limit = *limit;
    i += 2;
  } else if (!o.downwards && equals_ignore_case(word, "REV")) {
    o.downwards = true;
  } else if (!o.by && equals_ignore_case(word, "BYLEX")) {
    o.by = RangeBy::kMember;
  } else if (!o.by && equals_ignore_case(word, "BYSCORE")) {
    o.by = RangeBy::kScore;
  } else {
    return reply_syntax_error(r), false;
  }
  return true;
}

bool read_range_options(Request& r, const RangeForm& form, size_t at, RangeRequest& o) {
  o.by = form.by;
  o.downwards = form.downwards;
  for (size_t i = at; i < r.argc(); ++i) {
    if (!read_range_option(r, form, i, o)) return false;
  }
  o.by = o.by.value_or(RangeBy::kIndex);
  o.downwards = o.downwards.value_or(false);
  if (o.limit != -1 && *o.by == RangeBy::kIndex) {
    r.reply.error("ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX");
    return false;
  }
  if (o.with_scores && *o.by == RangeBy::kMember) {
    r.reply.error("ERR syntax error, WITHSCORES not supported in combination with BYLEX");
    return false;
  }
  return true;
}

// Applies LIMIT. A negative offset leaves nothing, as in Redis.
Ranks limited(const Ranks& ranks, const RangeRequest& o) {
  if (*o.by == RangeBy::kIndex) return ranks;
  if (o.offset < 0 || static_cast<uint64_t>(o.offset) >= ranks.count) return {};
  const auto offset = static_cast<size_t>(o.offset);
  const size_t left = ranks.count - offset;
  const size_t count = o.limit < 0 ? left : std::min(left, static_cast<size_t>(o.limit));
  return {*o.downwards ? ranks.rank + ranks.count - offset - count : ranks.rank + offset, count};
}

// The result of a request of the family; nullopt after an error. `zset` is null if there is no such key.
struct RangeResult {
  const ZsetBody* zset;
  Ranks ranks;
  RangeRequest request;
};
std::optional<RangeResult> find_range(Request& r, const RangeForm& form, size_t key) {
  RangeResult found{};
  if (!read_range_options(r, form, key + 3, found.request)) return std::nullopt;
  const RangeRequest& o = found.request;
  const bool swapped = *o.downwards && *o.by != RangeBy::kIndex;  // the upper end is first
  const auto range = read_range(r, *o.by, key + (swapped ? 2 : 1), key + (swapped ? 1 : 2));
  if (!range) return std::nullopt;
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(key));
  if (!zset) return std::nullopt;
  found.zset = *zset;
  if (*zset != nullptr) found.ranks = limited(ranks_of(**zset, *range, *o.downwards), o);
  return found;
}

void reply_range(Request& r, const RangeForm& form) {
  const auto found = find_range(r, form, 1);
  if (!found) return;
  if (found->zset == nullptr) return reply_no_members(r);
  reply_members(r, *found->zset, found->ranks, *found->request.downwards, found->request.with_scores);
}

void reply_count(Request& r, RangeBy by) {
  const auto range = read_range(r, by, 2, 3);
  if (!range) return;
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (!zset) return;
  r.reply.integer(*zset == nullptr ? 0 : static_cast<int64_t>(ranks_of(**zset, *range).count));
}

void remove_range(Request& r, RangeBy by, std::string_view event) {
  const auto range = read_range(r, by, 2, 3);
  if (!range) return;
  auto target = find_body_to_write<ZsetBody>(r, r.arg(1));
  if (!target) return;
  const Ranks ranks = target->body == nullptr ? Ranks{} : ranks_of(*target->body, *range);
  if (ranks.count > 0) {
    remove_ranks(r.ctx, {r.c.db, target->f}, ranks.rank, ranks.count, r.c.id);
    notify_removal(r.ctx, r.c.db, target->key, event);
  }
  r.reply.integer(static_cast<int64_t>(ranks.count));
}

// `count` different ranks below `size` in random order: the selection by Floyd, then shuffled.
std::vector<size_t> different_ranks(RandomNumbers& random, size_t size, size_t count) {
  absl::flat_hash_set<size_t> chosen;
  std::vector<size_t> ranks;
  for (size_t i = size - count; i < size; ++i) {
    const size_t at = random.next() % (i + 1);
    ranks.push_back(chosen.insert(at).second ? at : i);
    chosen.insert(ranks.back());
    std::swap(ranks.back(), ranks[random.next() % ranks.size()]);
  }
  return ranks;
}

void write_at(Request& r, const ZsetBody& zset, size_t rank, bool with_scores) {
  zset.for_range(rank, 1, false, [&](std::string_view member, double score) {
    write_member(r, member, score, with_scores);
  });
}

// A negative count: members may repeat. All members come downwards, as in Redis.
void reply_random(Request& r, const ZsetBody& zset, int64_t count, bool with_scores) {
  if (count >= 0 && static_cast<uint64_t>(count) >= zset.size())
    return reply_members(r, zset, {0, zset.size()}, true, with_scores);
  const auto n = static_cast<size_t>(count < 0 ? -count : count);
  if (count < 0 && refuse_repetitions(r, n)) return;
  RandomNumbers random(r.s().config);
  begin_members(r, n, with_scores);
  if (count < 0) {
    for (size_t i = 0; i < n && !r.reply.out().overflowed(); ++i)
      write_at(r, zset, random.next() % zset.size(), with_scores);
  } else {
    for (const size_t rank : different_ranks(random, zset.size(), n)) write_at(r, zset, rank, with_scores);
  }
}

}  // namespace

void cmd_zrange(Request& r) { reply_range(r, {}); }
void cmd_zrevrange(Request& r) { reply_range(r, {RangeBy::kIndex, true}); }
void cmd_zrangebyscore(Request& r) { reply_range(r, {RangeBy::kScore, false}); }
void cmd_zrevrangebyscore(Request& r) { reply_range(r, {RangeBy::kScore, true}); }
void cmd_zrangebylex(Request& r) { reply_range(r, {RangeBy::kMember, false}); }
void cmd_zrevrangebylex(Request& r) { reply_range(r, {RangeBy::kMember, true}); }
void cmd_zcount(Request& r) { reply_count(r, RangeBy::kScore); }
void cmd_zlexcount(Request& r) { reply_count(r, RangeBy::kMember); }
void cmd_zremrangebyrank(Request& r) { remove_range(r, RangeBy::kIndex, "zremrangebyrank"); }
void cmd_zremrangebyscore(Request& r) { remove_range(r, RangeBy::kScore, "zremrangebyscore"); }
void cmd_zremrangebylex(Request& r) { remove_range(r, RangeBy::kMember, "zremrangebylex"); }

void cmd_zrangestore(Request& r) {
  RangeForm form;
  form.store = true;
  const auto found = find_range(r, form, 2);
  if (!found) return;
  auto result = new_zset(r.s());
  PackedZsetLimits limits = packed_zset_limits(r.s());
  limits.minus_zero = found->ranks.count > limits.entries;  // Redis does not pack so many at first either
  if (found->zset != nullptr) {
    found->zset->for_range(
        found->ranks.rank, found->ranks.count, false,
        [&](std::string_view member, double score) { result->set(member, score, limits); });
  }
  store_zset(r, std::move(result), "zrangestore");
}

void cmd_zrandmember(Request& r) {
  const auto terms = read_random_terms(r, "WITHSCORES");
  if (!terms) return;
  const auto zset = find_body_to_read<ZsetBody>(r, r.arg(1));
  if (!zset) return;
  if (*zset == nullptr) return terms->count ? reply_no_members(r) : r.reply.null();
  if (terms->count) return reply_random(r, **zset, *terms->count, terms->with_values);
  write_at(r, **zset, RandomNumbers(r.s().config).next() % (*zset)->size(), false);
}

}  // namespace holdfast
