// Both forms of a sorted set, and the change from one to the other; see zset_body.h.
#include "core/keyspace/zset_body.h"

#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace holdfast {

namespace {

// A score as the value of a pair.
struct ScoreBytes {
  explicit ScoreBytes(double score) { std::memcpy(bytes, &score, sizeof score); }
  std::string_view view() const { return {bytes, sizeof bytes}; }
  char bytes[sizeof(double)];
};

// The number of bytes with which all members begin.
size_t common_prefix(const HashBody& members) {
  std::optional<std::string_view> common;
  members.for_each_while([&](std::string_view member, std::string_view) {
    if (!common) common = member;
    const auto [end, other] = std::ranges::mismatch(*common, member);
    *common = common->substr(0, static_cast<size_t>(end - common->begin()));
    return !common->empty();
  });
  return common ? common->size() : 0;
}

// An item with the bytes of its member that decide most comparisons: to read those of the pair costs a miss
// of the cache.
struct SortItem {
  double score;
  uint64_t begin = 0;  // the first 8 bytes behind the common ones, as a number
  const char* pair = nullptr;

  SortItem(std::string_view member, double s, size_t common) : score(s) {
    constexpr size_t kBytes = sizeof begin;
    for (size_t i = 0; i < kBytes; ++i) {
      const auto byte = common + i < member.size() ? static_cast<uint8_t>(member[common + i]) : uint8_t{0};
      begin = begin << 8U | byte;
    }
  }
  bool operator<(const SortItem& other) const {
    if (score != other.score) return score < other.score;
    if (begin != other.begin) return begin < other.begin;
    return ScoredPair{score, pair}.member() < ScoredPair{score, other.pair}.member();
  }
};

}  // namespace

void ZsetBody::Large::sort_members() {
  const size_t common = common_prefix(members);
  std::vector<SortItem> items;
  items.reserve(members.size());
  members.for_each_pair([&](const PackedPair& pair) {
    items.emplace_back(pair.field, score_of(pair.value), common).pair = pair.begin;
  });
  std::ranges::sort(items, std::less<>());
  std::vector<ScoredPair> sorted;
  sorted.reserve(items.size());
  for (const SortItem& item : items) sorted.push_back({item.score, item.pair});
  order.fill(sorted);
}

void ZsetBody::Large::copy_order(const Large& from) {
  std::vector<const char*> copies;  // of the pairs, in the order of the hashes
  copies.reserve(members.size());
  members.for_each_pair([&](const PackedPair& pair) { copies.push_back(pair.begin); });
  absl::flat_hash_map<const char*, const char*> copy_of;
  copy_of.reserve(copies.size());
  auto copy = copies.begin();
  from.members.for_each_pair([&](const PackedPair& pair) { copy_of.emplace(pair.begin, *copy++); });
  std::vector<ScoredPair> sorted;
  sorted.reserve(copies.size());
  from.order.for_range(0, from.order.size(), false, [&](const ScoredPair& item) {
    sorted.push_back({item.score, copy_of.find(item.pair)->second});
  });
  order.fill(sorted);
}

std::unique_ptr<ZsetBody> ZsetBuilder::finish(const PackedZsetLimits& limits) {
  auto result = std::make_unique<ZsetBody>(seed_);
  const HashBody& members = large_->members;
  size_t longest = 0;
  if (members.size() <= limits.entries) {
    members.for_each(
        [&](std::string_view member, std::string_view) { longest = std::max(longest, member.size()); });
  }
  if (members.size() > limits.entries || longest > limits.member_bytes) {
    large_->sort_members();
    result->large_ = std::move(large_);
  } else {
    members.for_each([&](std::string_view member, std::string_view value) {
      result->set(member, ZsetBody::score_of(value), limits);
    });
  }
  large_ = std::make_unique<ZsetBody::Large>(seed_);
  return result;
}

void ZsetBody::drop_minus_zero() {
  const char* at = packed_.data();
  for (size_t n = 0; n < packed_size_; ++n) {
    const PackedPair pair = packed_pair_at(at);
    const auto offset = static_cast<size_t>(pair.value.data() - packed_.data());
    if (score_of(pair) == 0) std::memset(packed_.data() + offset, 0, sizeof(double));
    at = pair.end;
  }
}

uint64_t ZsetBody::bytes() const {
  if (large_ == nullptr) return sizeof(ZsetBody) + packed_.capacity();
  return sizeof(ZsetBody) + sizeof(RankedScores) + large_->members.bytes() + large_->order.bytes();
}

PackedPair ZsetBody::packed_at(size_t rank) const {
  assert(rank < packed_size_);
  PackedPair pair = packed_pair_at(packed_.data());
  for (; rank > 0; --rank) pair = packed_pair_at(pair.end);
  return pair;
}

std::optional<double> ZsetBody::find(std::string_view member) const {
  const auto value = large_ != nullptr ? large_->members.find(member) : PackedHash(packed_).find(member);
  if (!value) return std::nullopt;
  return score_of(*value);
}

size_t ZsetBody::rank(std::string_view member, double score) const {
  return count_before([&](std::string_view other, double other_score) {
    return other_score != score ? other_score < score : other < member;
  });
}

void ZsetBody::set_packed(std::string_view member, double score) {
  const size_t size = packed_pair_bytes(member, ScoreBytes(score).view());
  size_t n = rank(member, score);
  const char* at = packed_.data();
  for (; n > 0; --n) at = packed_pair_at(at).end;
  const auto offset = static_cast<size_t>(at - packed_.data());
  packed_.insert(offset, size, '\0');
  put_packed_pair(packed_.data() + offset, member, ScoreBytes(score).view());
  ++packed_size_;
}

void ZsetBody::erase_packed(const PackedPair& pair) {
  packed_.erase(static_cast<size_t>(pair.begin - packed_.data()),
                static_cast<size_t>(pair.end - pair.begin));
  --packed_size_;
}

ScoreChange ZsetBody::set(std::string_view member, double score, const PackedZsetLimits& limits) {
  assert(!std::isnan(score));
  if (large_ != nullptr) return set_large(member, score);
  const auto old = PackedHash(packed_).find_pair(member);
  if (old && score_of(*old) == score) return ScoreChange::kNone;
  if (!old && (packed_size_ >= limits.entries || member.size() > limits.member_bytes)) {
    unpack();
    return set_large(member, score);
  }
  if (old) erase_packed(*old);
  // A packed -0 is 0, as in Redis, which packs integers.
  set_packed(member, score == 0 && !limits.minus_zero ? 0 : score);
  return old ? ScoreChange::kUpdated : ScoreChange::kAdded;
}

ScoreChange ZsetBody::set_large(std::string_view member, double score) {
  bool changes = true;
  const auto [pair, made] =
      large_->members.put(member, ScoreBytes(score).view(), [&](const PackedPair& found) {
        const double old = score_of(found);
        changes = old != score;
        if (changes) large_->order.erase({old, found.begin});
        return changes;
      });
  if (!changes) return ScoreChange::kNone;
  large_->order.insert({score, pair.begin});
  return made ? ScoreChange::kAdded : ScoreChange::kUpdated;
}

void ZsetBody::unpack() {
  large_ = std::make_unique<Large>(seed_);
  PackedHash(std::exchange(packed_, {})).for_each([&](std::string_view member, std::string_view value) {
    set_large(member, score_of(value));
  });
  packed_size_ = 0;
}

bool ZsetBody::erase(std::string_view member) {
  if (large_ == nullptr) {
    const auto pair = PackedHash(packed_).find_pair(member);
    if (pair) erase_packed(*pair);
    return pair.has_value();
  }
  const auto pair = large_->members.find_pair(member);
  if (!pair) return false;
  large_->order.erase({score_of(*pair), pair->begin});
  large_->members.erase(member);
  return true;
}

void ZsetBody::erase_range(size_t rank, size_t count) {
  if (count == 0) return;
  if (large_ == nullptr) {
    const char* const begin = packed_at(rank).begin;
    const char* end = begin;
    for (size_t i = 0; i < count; ++i) end = packed_pair_at(end).end;
    packed_.erase(static_cast<size_t>(begin - packed_.data()), static_cast<size_t>(end - begin));
    packed_size_ -= count;
    return;
  }
  std::vector<std::string_view> members;
  members.reserve(count);
  for_range(rank, count, false, [&](std::string_view member, double) { members.push_back(member); });
  large_->order.erase_range(rank, count);
  large_->members.erase_all(members);
}

bool ZsetBody::free_some() {
  if (large_ == nullptr) return true;
  return large_->order.free_some() && large_->members.free_some();
}

std::unique_ptr<ValueBody> ZsetBody::copy() const {
  auto other = std::make_unique<ZsetBody>(seed_);
  other->packed_ = packed_;
  other->packed_size_ = packed_size_;
  if (large_ == nullptr) return other;
  other->large_ = std::make_unique<Large>(seed_);
  large_->members.copy_to(other->large_->members);
  other->large_->copy_order(*large_);
  return other;
}

void ZsetBody::check_invariants() const {
  if (large_ == nullptr) {
    assert(PackedHash(packed_).size() == packed_size_);
  } else {
    large_->members.check_invariants();
    large_->order.check_invariants();
    assert(large_->members.size() == large_->order.size() && packed_.empty());
  }
  size_t rank = 0;
  for_each([&](std::string_view member, double score) {
    assert(!std::isnan(score) && find(member) == score && this->rank(member, score) == rank);
    ++rank;
  });
}

}  // namespace holdfast
