// A sorted set in both of its forms, compared with a simple model.
#include "core/keyspace/zset_body.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

constexpr uint64_t kSeed = 7;
constexpr PackedZsetLimits kLarge{0, 0};
constexpr PackedZsetLimits kSmall{1000, 1000};

using Ordered = std::vector<std::pair<double, std::string>>;

// Members to scores, and their order.
struct Model {
  std::map<std::string, double> scores;
  std::set<std::pair<double, std::string>> order;

  bool set(const std::string& member, double score) {
    const bool made = !erase(member);
    scores[member] = score;
    order.emplace(score, member);
    return made;
  }
  bool erase(const std::string& member) {
    const auto it = scores.find(member);
    if (it == scores.end()) return false;
    order.erase({it->second, member});
    scores.erase(it);
    return true;
  }
  Ordered range(size_t rank, size_t count) const {
    const auto from = std::next(order.begin(), static_cast<std::ptrdiff_t>(rank));
    return {from, std::next(from, static_cast<std::ptrdiff_t>(count))};
  }
};

Ordered range_of(const ZsetBody& zset, size_t rank, size_t count, bool reverse = false) {
  Ordered found;
  zset.for_range(rank, count, reverse,
                 [&](std::string_view member, double score) { found.emplace_back(score, member); });
  return found;
}

void compare(const ZsetBody& zset, const Model& model, std::mt19937& dice) {
  zset.check_invariants();
  REQUIRE(zset.size() == model.order.size());
  CHECK(range_of(zset, 0, zset.size()) == model.range(0, zset.size()));
  if (zset.size() == 0) return;
  const size_t rank = dice() % zset.size();
  const size_t count = dice() % (zset.size() - rank) + 1;
  Ordered part = model.range(rank, count);
  CHECK(range_of(zset, rank, count) == part);
  std::ranges::reverse(part);
  CHECK(range_of(zset, rank + count - 1, count, true) == part);
  const auto score = static_cast<double>(dice() % 50);
  const auto below = [&](std::string_view, double other) { return other < score; };
  const auto first = model.order.lower_bound({score, ""});
  CHECK(zset.count_before(below) == static_cast<size_t>(std::distance(model.order.begin(), first)));
}

void change_at_random(const PackedZsetLimits& limits, size_t members, int changes) {
  std::mt19937 dice(1);
  ZsetBody zset(kSeed);
  Model model;
  for (int i = 0; i < changes; ++i) {
    const std::string member = "m" + std::to_string(dice() % members);
    const size_t size = model.order.size();
    if (dice() % 4 == 0) {
      CHECK(zset.erase(member) == model.erase(member));
    } else if (dice() % 200 == 0 && size > 0) {
      const size_t rank = dice() % size;
      const size_t count = dice() % (size - rank) + 1;
      zset.erase_range(rank, count);
      for (const auto& [score, text] : model.range(rank, count)) model.erase(text);
    } else {
      const auto score = static_cast<double>(dice() % 50);
      CHECK((zset.set(member, score, limits) == ScoreChange::kAdded) == model.set(member, score));
    }
    const auto it = model.scores.find(member);
    CHECK(zset.find(member) == (it == model.scores.end() ? std::nullopt : std::optional(it->second)));
    if (i % (changes / 20) == 0) compare(zset, model, dice);
  }
  compare(zset, model, dice);
}

void fill(ZsetBody& zset, int from, int to) {
  for (int i = from; i < to; ++i) zset.set("member" + std::to_string(i), i, kLarge);
}

}  // namespace

TEST_CASE("zset body: after random changes it equals a model, packed and large") {
  change_at_random(kSmall, 60, 4000);
  change_at_random(kLarge, 60, 4000);
  change_at_random(kLarge, 20000, 60000);
}

TEST_CASE("zset body: many pages of members, added in order, in reverse and at random, then erased") {
  constexpr int kMembers = 70000;  // several pages of 256 chunks
  for (const int way : {0, 1, 2}) {
    ZsetBody zset(kSeed);
    for (int i = 0; i < kMembers; ++i) {
      const int score = way == 0 ? i : way == 1 ? kMembers - i : (i * 7919) % kMembers;
      zset.set(std::to_string(i), score, kLarge);
    }
    CHECK(zset.size() == kMembers);
    if (way == 0) CHECK(range_of(zset, 69999, 1) == Ordered{{69999, "69999"}});
    zset.erase_range(1000, kMembers - 2000);
    zset.check_invariants();
    CHECK(zset.size() == 2000);
    for (int i = 0; i < kMembers; ++i) zset.erase(std::to_string(i));
    zset.check_invariants();
    CHECK(zset.size() == 0);
    CHECK(zset.bytes() < 1000);
  }
}

TEST_CASE("zset body: members with the same score are in the order of their bytes") {
  for (const PackedZsetLimits& limits : {kSmall, kLarge}) {
    ZsetBody zset(kSeed);
    for (const char* member : {"b", "a", "\xff", "ab", "", "Z"}) zset.set(member, 1, limits);
    CHECK(range_of(zset, 0, 6) == Ordered{{1, ""}, {1, "Z"}, {1, "a"}, {1, "ab"}, {1, "b"}, {1, "\xff"}});
    CHECK(zset.rank("ab", 1) == 3);
  }
}

TEST_CASE("zset body: infinite scores are at the ends, and 0 equals -0") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const PackedZsetLimits& limits : {kSmall, kLarge}) {
    ZsetBody zset(kSeed);
    zset.set("most", kInfinity, limits);
    zset.set("least", -kInfinity, limits);
    zset.set("zero", 0, limits);
    CHECK(zset.set("zero", -0.0, limits) == ScoreChange::kNone);
    CHECK(range_of(zset, 0, 3) == Ordered{{-kInfinity, "least"}, {0, "zero"}, {kInfinity, "most"}});
  }
}

TEST_CASE("zset body: packed up to the limits of members and of a member's size; beyond them for good") {
  const PackedZsetLimits limits{2, 4};
  ZsetBody zset(kSeed);
  zset.set("four", 1, limits);
  zset.set("b", 2, limits);
  zset.set("b", 3, limits);
  CHECK(zset.encoding() == "listpack");
  zset.set("c", 4, limits);
  CHECK(zset.encoding() == "skiplist");
  zset.erase("c");
  CHECK(zset.encoding() == "skiplist");
  ZsetBody other(kSeed);
  other.set("fives", 1, limits);
  CHECK(other.encoding() == "skiplist");
}

TEST_CASE("zset body: a copy is equal and independent") {
  for (const PackedZsetLimits& limits : {kSmall, kLarge}) {
    ZsetBody zset(kSeed);
    for (int i = 0; i < 300; ++i) zset.set(std::to_string(i), i, limits);
    const auto copied = zset.copy();
    auto* const copy = dynamic_cast<ZsetBody*>(copied.get());
    REQUIRE(copy != nullptr);
    copy->check_invariants();
    CHECK(range_of(*copy, 0, 300) == range_of(zset, 0, 300));
    CHECK(copy->encoding() == zset.encoding());
    copy->set("1", 7, limits);
    copy->erase("2");
    CHECK(zset.find("1") == 1);
    CHECK(zset.find("2") == 2);
  }
}

TEST_CASE("zset body: a large copy has the order of the original, also with equal scores") {
  for (const int scores : {1, 3, 100000}) {
    ZsetBody zset(kSeed);
    for (int i = 0; i < 40000; ++i) zset.set("long-prefix:" + std::to_string(i * 7919), i % scores, kLarge);
    for (int i = 0; i < 10000; ++i) zset.erase("long-prefix:" + std::to_string(i * 3 * 7919));
    const auto copied = zset.copy();
    auto* const copy = dynamic_cast<ZsetBody*>(copied.get());
    REQUIRE(copy != nullptr);
    copy->check_invariants();
    CHECK(range_of(*copy, 0, copy->size()) == range_of(zset, 0, zset.size()));
    copy->erase_range(10, copy->size() - 20);
    copy->check_invariants();
    CHECK(copy->size() == 20);
  }
}

TEST_CASE("zset body: a builder gives the set to which its members were added") {
  for (const auto& [limits, members] :
       {std::pair(kSmall, 60), {kLarge, 60}, {kSmall, 1001}, {kLarge, 5000}}) {
    std::mt19937 dice(2);
    ZsetBuilder builder(kSeed);
    Model model;
    for (int i = 0; i < 4 * members; ++i) {
      std::string member = "m" + std::to_string(dice() % static_cast<unsigned>(members));
      if (i % 3 == 0) member += std::string(1, '\0');
      const auto score = static_cast<double>(dice() % 50);
      const auto old = model.scores.find(member);
      model.set(member, old == model.scores.end() ? score : old->second + score);
      builder.add(member, score, [](double before, double more) { return before + more; });
    }
    const auto zset = builder.finish(limits);
    compare(*zset, model, dice);
    CHECK(zset->packed() == (model.order.size() <= limits.entries));
    CHECK(builder.finish(limits)->size() == 0);
  }
}

TEST_CASE("zset body: a builder packs up to the limits of members and of a member's size") {
  const PackedZsetLimits limits{2, 4};
  const auto keep = [](double old, double) { return old; };
  const auto packs = [&](const std::vector<std::string>& members) {
    ZsetBuilder builder(kSeed);
    for (const std::string& member : members) builder.add(member, 1, keep);
    return builder.finish(limits)->packed();
  };
  CHECK(packs({}));
  CHECK(packs({"four", "b", "b"}));
  CHECK_FALSE(packs({"four", "b", "c"}));
  CHECK_FALSE(packs({"fives"}));
}

TEST_CASE("zset body: a scan returns each member once with its score") {
  ZsetBody zset(kSeed);
  fill(zset, 0, 1000);
  std::map<std::string, double> met;
  uint64_t cursor = 0;
  do {
    cursor = zset.scan(cursor, 10, [&](std::string_view member, double score) {
      CHECK(met.emplace(member, score).second);
    });
  } while (cursor != 0);
  CHECK(met.size() == 1000);
  CHECK(met["member7"] == 7);
}

}  // namespace holdfast
