// Ranges of a sorted set as requests give them: by rank, score or member; and their members as a reply.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/base/score.h"
#include "core/keyspace/zset_body.h"
#include "core/state/request.h"

namespace holdfast {

// Members by rank: `count` of them, upwards from `rank`. They exist.
struct Ranks {
  size_t rank = 0;
  size_t count = 0;
};

// Like an index of a list: -1 is the last member.
struct IndexRange {
  int64_t first;
  int64_t last;
};
struct ScoreRange {
  ScoreBound least;
  ScoreBound most;
};
// The end of a range of members: "[a", "(a", or "-" and "+" for all members.
struct MemberBound {
  enum class Kind { kLowest, kMember, kHighest };
  Kind kind;
  std::string_view member;
  bool excluded;
};
struct MemberRange {
  MemberBound least;
  MemberBound most;
};
using ZsetRange = std::variant<IndexRange, ScoreRange, MemberRange>;

enum class RangeBy { kIndex, kScore, kMember };
// Reads both ends of a range, at arguments `least` and `most`. Writes Redis's error and returns nullopt if
// one is invalid.
std::optional<ZsetRange> read_range(Request& r, RangeBy by, size_t least, size_t most);

// The members of a range; `downwards`: indexes count from the end. Redis leaves open which members a
// MemberRange has if the scores differ.
Ranks ranks_of(const ZsetBody& zset, const ZsetRange& range, bool downwards = false);

// Calls `f(member, score)` for the members of a range.
template <class F>
void for_each_member(const ZsetBody& zset, const Ranks& ranks, bool downwards, F f) {
  zset.for_range(downwards ? ranks.rank + ranks.count - 1 : ranks.rank, ranks.count, downwards, f);
}

// Writes the head of a reply with `count` members. RESP3 has a pair for each member with its score.
void begin_members(Request& r, size_t count, bool with_scores);
void write_member(Request& r, std::string_view member, double score, bool with_scores);
// Writes the members of a range as an array.
void reply_members(Request& r, const ZsetBody& zset, const Ranks& ranks, bool downwards, bool with_scores);
void reply_no_members(Request& r);

}  // namespace holdfast
