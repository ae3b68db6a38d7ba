// A sorted set: members with scores, in the order of the scores. While it is small, its members are packed
// in this order into one run of bytes (packed_hash.h; the value is the score). Later a HashBody finds the
// members, and RankedScores has their order. An entry of type kZset owns it. No score is NaN.
#pragma once

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/packed_hash.h"
#include "core/keyspace/ranked_scores.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

struct MemberScore {
  std::string_view member;
  double score;
};

enum class ScoreChange : uint8_t { kNone, kUpdated, kAdded };

// The limits of a packed sorted set.
struct PackedZsetLimits {
  size_t entries;
  size_t member_bytes;
  bool minus_zero = false;  // a packed -0 stays -0, until drop_minus_zero()
};

class ZsetBody final : public ValueBody {
 public:
  static constexpr EntryType kType = EntryType::kZset;

  explicit ZsetBody(uint64_t seed) : seed_(seed) {}

  size_t size() const override { return large_ != nullptr ? large_->order.size() : packed_size_; }
  uint64_t bytes() const override;
  std::unique_ptr<ValueBody> copy() const override;
  std::string_view encoding() const override { return packed() ? "listpack" : "skiplist"; }
  void check_invariants() const override;

  bool free_some() override;
  // The score of a member in a snapshot is the value that ElementSink gets.
  bool can_save_in_parts() const override { return large_ != nullptr; }
  void begin_save(ElementSink& sink) override { large_->members.begin_save(sink); }
  bool save_some(size_t count) override { return large_->members.save_some(count); }
  void end_save() override { large_->members.end_save(); }
  bool saving() const override { return large_ != nullptr && large_->members.saving(); }
  static double score_of(std::string_view value) {
    double score = 0;
    std::memcpy(&score, value.data(), sizeof score);
    return score;
  }

  bool packed() const { return large_ == nullptr; }
  std::optional<double> find(std::string_view member) const;
  // Sets the score of a member. A set that is not packed stays so.
  ScoreChange set(std::string_view member, double score, const PackedZsetLimits& limits);
  // Ends a result that was built with `minus_zero`, before it becomes the value of a key.
  void drop_minus_zero();
  // Returns false if there is no such member.
  bool erase(std::string_view member);
  // Erases the members with these ranks, which must exist.
  void erase_range(size_t rank, size_t count);

  // Returns the number of members at the front for which `is_before(member, score)` is true. It must be
  // true for a prefix of the order, and false for the rest.
  template <class IsBefore>
  size_t count_before(IsBefore is_before) const;
  // Returns the rank of a member that exists and has this score.
  size_t rank(std::string_view member, double score) const;
  // Calls `f(member, score)` for the members with these ranks, which must exist; downwards if `reverse`.
  template <class F>
  void for_range(size_t rank, size_t count, bool reverse, F f) const;
  template <class F>
  void for_each(F f) const {
    for_range(0, size(), false, f);
  }
  // Calls `f(member, score)` for all members, until it returns false. Large sets are in the order of the
  // members' hashes, in which a search of the members in another set is much faster.
  template <class F>
  void for_each_while(F f) const;
  // Like HashBody::scan(), with `f(member, score)`; a packed set is scanned in one step.
  template <class F>
  uint64_t scan(uint64_t cursor, const size_t& count, F f) const;

 private:
  friend class ZsetBuilder;

  struct Large {
    explicit Large(uint64_t seed) : members(seed) {}
    HashBody members;  // to scores; owns the pairs of `order`
    RankedScores order;
    // Fills an empty order with all members.
    void sort_members();
    // The same, if the members are those of `from`.
    void copy_order(const Large& from);
  };

  static double score_of(const PackedPair& pair) { return score_of(pair.value); }
  PackedPair packed_at(size_t rank) const;
  void set_packed(std::string_view member, double score);
  void erase_packed(const PackedPair& pair);
  ScoreChange set_large(std::string_view member, double score);
  void unpack();

  uint64_t seed_;
  std::string packed_;
  size_t packed_size_ = 0;
  std::unique_ptr<Large> large_;  // null while packed
};

// Makes a sorted set of members that come in any order, and several times. They are sorted once, at the
// end.
class ZsetBuilder {
 public:
  explicit ZsetBuilder(uint64_t seed) : seed_(seed), large_(std::make_unique<ZsetBody::Large>(seed)) {}

  // Adds a member. If it is there, its score becomes `combine(old, score)`. No score is NaN.
  template <class Combine>
  void add(std::string_view member, double score, Combine combine);
  // The result; the builder is empty then. Its form is that of a set to which its members were added.
  std::unique_ptr<ZsetBody> finish(const PackedZsetLimits& limits);

 private:
  uint64_t seed_;
  std::unique_ptr<ZsetBody::Large> large_;
};

template <class Combine>
void ZsetBuilder::add(std::string_view member, double score, Combine combine) {
  char bytes[sizeof score];
  std::memcpy(bytes, &score, sizeof score);
  large_->members.put(member, {bytes, sizeof bytes}, [&](const PackedPair& found) {
    const double combined = combine(ZsetBody::score_of(found.value), score);
    std::memcpy(bytes, &combined, sizeof combined);
    return true;
  });
}

template <class F>
void ZsetBody::for_each_while(F f) const {
  const auto with_score = [&](std::string_view member, std::string_view value) {
    return f(member, score_of(value));
  };
  if (large_ != nullptr) return large_->members.for_each_while(with_score);
  PackedHash(packed_).for_each_while(with_score);
}

template <class IsBefore>
size_t ZsetBody::count_before(IsBefore is_before) const {
  if (large_ != nullptr) {
    return large_->order.count_before(
        [&](const ScoredPair& item) { return is_before(item.member(), item.score); });
  }
  size_t n = 0;
  for (const char* at = packed_.data(); n < packed_size_; ++n) {
    const PackedPair pair = packed_pair_at(at);
    if (!is_before(pair.field, score_of(pair))) break;
    at = pair.end;
  }
  return n;
}

template <class F>
void ZsetBody::for_range(size_t rank, size_t count, bool reverse, F f) const {
  if (count == 0) return;
  if (large_ != nullptr) {
    return large_->order.for_range(rank, count, reverse,
                                   [&](const ScoredPair& item) { f(item.member(), item.score); });
  }
  // The sizes of pairs are in front of them, so the way is always upwards.
  absl::InlinedVector<PackedPair, 128> pairs;
  PackedPair pair = packed_at(reverse ? rank + 1 - count : rank);
  for (pairs.push_back(pair); pairs.size() < count; pairs.push_back(pair)) pair = packed_pair_at(pair.end);
  if (reverse) std::ranges::reverse(pairs);
  for (const PackedPair& p : pairs) f(p.field, score_of(p));
}

template <class F>
uint64_t ZsetBody::scan(uint64_t cursor, const size_t& count, F f) const {
  if (large_ != nullptr) {
    return large_->members.scan(cursor, count, [&](std::string_view member, std::string_view value) {
      f(member, score_of(value));
    });
  }
  for_each(f);
  return 0;
}

}  // namespace holdfast
