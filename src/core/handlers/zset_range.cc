// Reads and evaluates ranges of sorted sets.
#include "core/handlers/zset_range.h"

#include <algorithm>

#include "core/base/parse.h"

namespace holdfast {

namespace {

std::optional<MemberBound> parse_member_bound(std::string_view text) {
  using Kind = MemberBound::Kind;
  if (text.empty()) return std::nullopt;
  const bool alone = text.size() == 1 || text[1] == '\0';  // to Redis a NUL is the end
  const std::string_view member = text.substr(1);
  switch (text[0]) {
    case '-':
      return alone ? std::optional(MemberBound{Kind::kLowest, {}, false}) : std::nullopt;
    case '+':
      return alone ? std::optional(MemberBound{Kind::kHighest, {}, false}) : std::nullopt;
    case '[':
    case '(':
      return MemberBound{Kind::kMember, member, text[0] == '('};
    default:
      return std::nullopt;
  }
}

// The number of members below a bound; with `inclusive` also a member that is equal to it.
size_t count_below(const ZsetBody& zset, const ScoreBound& bound, bool inclusive) {
  return zset.count_before([&](std::string_view, double score) {
    return score < bound.score || (inclusive && score == bound.score);
  });
}
size_t count_below(const ZsetBody& zset, const MemberBound& bound, bool inclusive) {
  if (bound.kind == MemberBound::Kind::kLowest) return 0;
  if (bound.kind == MemberBound::Kind::kHighest) return zset.size();
  return zset.count_before([&](std::string_view member, double) {
    return member < bound.member || (inclusive && member == bound.member);
  });
}

template <class Range>
Ranks ranks_between(const ZsetBody& zset, const Range& range) {
  const size_t from = count_below(zset, range.least, range.least.excluded);
  const size_t to = count_below(zset, range.most, !range.most.excluded);
  return {from, to > from ? to - from : 0};
}

Ranks ranks_at(const ZsetBody& zset, const IndexRange& range, bool downwards) {
  const auto size = static_cast<int64_t>(zset.size());
  const int64_t first = std::max<int64_t>(range.first < 0 ? range.first + size : range.first, 0);
  const int64_t last = std::min(range.last < 0 ? range.last + size : range.last, size - 1);
  if (first > last) return {};
  const int64_t rank = downwards ? size - 1 - last : first;
  return {static_cast<size_t>(rank), static_cast<size_t>(last - first + 1)};
}

std::optional<ZsetRange> read_indexes(Request& r, size_t least, size_t most) {
  const auto first = parse_int(r.arg(least));
  const auto last = parse_int(r.arg(most));
  if (first && last) return IndexRange{*first, *last};
  reply_not_an_integer(r);
  return std::nullopt;
}

}  // namespace

std::optional<ZsetRange> read_range(Request& r, RangeBy by, size_t least, size_t most) {
  if (by == RangeBy::kIndex) return read_indexes(r, least, most);
  if (by == RangeBy::kScore) {
    const auto from = parse_score_bound(r.arg(least));
    const auto to = parse_score_bound(r.arg(most));
    if (from && to) return ScoreRange{*from, *to};
    r.reply.error("ERR min or max is not a float");
    return std::nullopt;
  }
  const auto from = parse_member_bound(r.arg(least));
  const auto to = parse_member_bound(r.arg(most));
  if (from && to) return MemberRange{*from, *to};
  r.reply.error("ERR min or max not valid string range item");
  return std::nullopt;
}

Ranks ranks_of(const ZsetBody& zset, const ZsetRange& range, bool downwards) {
  if (const auto* indexes = std::get_if<IndexRange>(&range)) return ranks_at(zset, *indexes, downwards);
  if (const auto* scores = std::get_if<ScoreRange>(&range)) return ranks_between(zset, *scores);
  return ranks_between(zset, std::get<MemberRange>(range));
}

void begin_members(Request& r, size_t count, bool with_scores) {
  r.reply.array(with_scores && r.reply.protocol() < 3 ? 2 * count : count);
}

void write_member(Request& r, std::string_view member, double score, bool with_scores) {
  if (with_scores && r.reply.protocol() >= 3) r.reply.array(2);
  r.reply.bulk(member);
  if (with_scores) r.reply.number(score);
}

void reply_members(Request& r, const ZsetBody& zset, const Ranks& ranks, bool downwards, bool with_scores) {
  begin_members(r, ranks.count, with_scores);
  for_each_member(zset, ranks, downwards, [&](std::string_view member, double score) {
    write_member(r, member, score, with_scores);
  });
}

void reply_no_members(Request& r) { r.reply.array(0); }

}  // namespace holdfast
