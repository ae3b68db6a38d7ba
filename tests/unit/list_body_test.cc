// Lists of any size: all changes against a model, chunks and pages, copies that share memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/list_body.h"

namespace holdfast {

namespace {

using Model = std::deque<std::string>;

Model forward(const ListBody& list) {
  Model all;
  for (auto at = list.first(); at.valid(); at.next()) all.emplace_back(at.get());
  return all;
}

Model backward(const ListBody& list) {
  Model all;
  if (list.size() == 0) return all;
  for (auto at = list.at(list.size() - 1); at.valid(); at.previous()) all.emplace_front(at.get());
  return all;
}

void check_equal(const ListBody& list, const Model& model) {
  list.check_invariants();
  REQUIRE(list.size() == model.size());
  REQUIRE(forward(list) == model);
  REQUIRE(backward(list) == model);
}

size_t erase_equal(Model& model, const std::string& element, ListEnd from, size_t most) {
  size_t erased = 0;
  if (from == ListEnd::kTail) std::ranges::reverse(model);
  for (auto it = model.begin(); it != model.end() && erased < most;) {
    if (*it == element) {
      it = model.erase(it);
      ++erased;
    } else {
      ++it;
    }
  }
  if (from == ListEnd::kTail) std::ranges::reverse(model);
  return erased;
}

// Random elements: integers of each size, short texts that repeat, and a few larger than a chunk.
class Elements {
 public:
  explicit Elements(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return random_() % n; }
  std::string next() {
    switch (below(12)) {
      case 0:
        return std::string(below(5000), 'x');
      case 1:
        return std::to_string(static_cast<int64_t>(random_()) >> below(64));
      case 2:
        return below(20) == 0 ? std::string(8000 + below(400), 'y') : std::string();
      default:
        return std::string(1, static_cast<char>('a' + below(4)));
    }
  }

 private:
  std::mt19937_64 random_;
};

// Makes the same random change of both.
void change(ListBody& list, Model& model, Elements& any) {
  const std::string e = any.next();
  const size_t n = model.size();
  const size_t index = n == 0 ? 0 : any.below(n);
  switch (any.below(n > 600 ? 12 : 8)) {
    case 0:
    case 1:
      list.push(ListEnd::kHead, e);
      return model.push_front(e);
    case 2:
    case 3:
      list.push(ListEnd::kTail, e);
      return model.push_back(e);
    case 4:
    case 5:
      list.insert(index, e);
      model.insert(model.begin() + static_cast<std::ptrdiff_t>(index), e);
      return;
    case 6:
      if (n == 0) return;
      list.set(index, e);
      model[index] = e;
      return;
    case 7: {
      const ListEnd from = any.below(2) == 0 ? ListEnd::kHead : ListEnd::kTail;
      const size_t most = 1 + any.below(3);
      REQUIRE(list.erase_equal(e, from, most) == erase_equal(model, e, from, most));
      return;
    }
    default: {
      const size_t count = any.below(std::min<size_t>(n - index, 1 + any.below(300))) + 1;
      list.erase(index, count);
      const auto at = model.begin() + static_cast<std::ptrdiff_t>(index);
      model.erase(at, at + static_cast<std::ptrdiff_t>(count));
    }
  }
}

std::unique_ptr<ListBody> copy_of(const ListBody& list) {
  return std::unique_ptr<ListBody>(static_cast<ListBody*>(list.copy().release()));
}

std::string text_of(size_t i) { return "element:" + std::to_string(i); }

void fill(ListBody& list, size_t n) {
  for (size_t i = 0; i < n; ++i) list.push(ListEnd::kTail, text_of(i));
}

}  // namespace

TEST_CASE("ListBody: each text comes back as it was") {
  std::vector<std::string> texts = {"", "0", "-0", "00", "+1", "1.0", "a", " 1", "18446744073709551615"};
  for (const int64_t base : {0L, 127L, 128L, 4095L, 4096L, 32767L, 32768L, 8388607L, 8388608L, 2147483647L,
                             2147483648L, INT64_MAX}) {
    for (const int64_t n : {base, -base, -base - 1}) texts.push_back(std::to_string(n));
  }
  for (const size_t n :
       {1U, 63U, 64U, 125U, 126U, 127U, 128U, 4095U, 4096U, 8185U, 8192U, 16380U, 16384U, 70000U}) {
    texts.emplace_back(n, 'x');
  }
  ListBody list;
  Model model;
  for (const std::string& text : texts) {
    list.push(ListEnd::kTail, text);
    model.push_back(text);
  }
  check_equal(list, model);
  for (size_t i = 0; i < texts.size(); ++i) {
    CHECK(list.at(i).get() == texts[i]);
    CHECK(list.at(i).equals(PackedElement(texts[i])));
    CHECK(!list.at(i).equals(PackedElement(texts[i] + "1")));
  }
}

TEST_CASE("ListBody: random changes give the same list as a deque") {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    Elements any(seed);
    ListBody list;
    Model model;
    for (int i = 0; i < 4000; ++i) {
      change(list, model, any);
      if (i % 50 == 0) check_equal(list, model);
    }
    check_equal(list, model);
  }
}

TEST_CASE("ListBody: a copy and its original do not see the changes of the other") {
  Elements any(1);
  ListBody list;
  Model model;
  for (int i = 0; i < 1500; ++i) change(list, model, any);
  for (int round = 0; round < 30; ++round) {
    const auto other = copy_of(list);
    Model changed = model;
    for (int i = 0; i < 40; ++i) change(*other, changed, any);
    check_equal(list, model);
    check_equal(*other, changed);
    for (int i = 0; i < 40; ++i) change(list, model, any);
    check_equal(*other, changed);
  }
}

TEST_CASE("ListBody: a list of many pages finds, inserts, replaces and erases everywhere") {
  constexpr size_t kElements = 400000;
  ListBody list;
  fill(list, kElements);
  for (size_t i = 0; i < kElements; i += 7919) CHECK(list.at(i).get() == text_of(i));
  for (size_t i = 0; i < kElements; i += 997) list.insert(i, "between");
  for (size_t i = 0; i < kElements; i += 1009) list.set(i, "other");
  list.check_invariants();
  const size_t size = list.size();
  list.erase(1000, size - 2000);
  list.check_invariants();
  CHECK(list.size() == 2000);
  CHECK(list.at(1999).get() == text_of(kElements - 1));
}

TEST_CASE("ListBody: removals of most elements return most of the memory") {
  constexpr size_t kElements = 200000;
  SUBCASE("single ones") {
    ListBody list;
    fill(list, kElements);
    const uint64_t full = list.bytes();
    for (size_t i = kElements; i-- > 0;) {
      if (i % 100 != 0) list.erase(i, 1);
    }
    list.check_invariants();
    CHECK(list.bytes() < full / 30);
  }
  SUBCASE("by their value") {
    ListBody list;
    for (size_t i = 0; i < kElements; ++i) list.push(ListEnd::kTail, i % 100 == 0 ? text_of(i) : "removed");
    const uint64_t full = list.bytes();
    CHECK(list.erase_equal("removed", ListEnd::kTail, SIZE_MAX) == kElements / 100 * 99);
    list.check_invariants();
    CHECK(list.bytes() < full / 30);
  }
}

TEST_CASE("ListBody: a million elements take less memory than in Redis") {
  constexpr size_t kElements = 1000000;
  // Redis's quicklist: a node of 32 bytes and a block of 8 KiB for each 8185 bytes of entries.
  const auto redis_bytes = [](uint64_t entry_bytes) {
    return (kElements * entry_bytes / 8185 + 1) * (8192 + 32);
  };
  ListBody texts;
  ListBody integers;
  for (size_t i = 0; i < kElements; ++i) {
    texts.push(ListEnd::kTail, "0123456789abcdef");
    integers.push(ListEnd::kHead, std::to_string(1000000 + i));
  }
  CHECK(texts.bytes() < redis_bytes(18));
  CHECK(integers.bytes() < redis_bytes(5));
}

TEST_CASE("ListBody: free_some() frees a part in each step, and keeps the copies") {
  ListBody list;
  fill(list, 400000);
  const auto other = copy_of(list);
  size_t steps = 1;
  for (; !list.free_some(); ++steps) list.check_invariants();
  CHECK(steps > 2);
  CHECK(list.size() == 0);
  CHECK(other->size() == 400000);
  CHECK(other->at(399999).get() == text_of(399999));
}

TEST_CASE("ListBody: a save passes the elements of its begin in order, whatever changes meanwhile") {
  struct Sink final : ElementSink {
    void put(std::string_view element, std::string_view) override { all.emplace_back(element); }
    Model all;
  };
  ListBody list;
  fill(list, 400000);
  const Model before = forward(list);
  Sink sink;
  list.begin_save(sink);
  CHECK(list.saving());
  for (size_t steps = 1; !list.save_some(1000); ++steps) {
    CHECK(sink.all.size() == steps * 1000);
    list.set(list.size() / 2, "changed");
    list.push(ListEnd::kHead, "new");
    list.erase(list.size() - 900, 900);
    if (steps % 50 == 0) list.check_invariants();
  }
  CHECK(sink.all == before);
  list.end_save();
  CHECK_FALSE(list.saving());
  const Model changed = forward(list);
  sink.all.clear();
  list.begin_save(sink);
  CHECK_FALSE(list.save_some(changed.size() - 1));
  CHECK(list.save_some(1));
  CHECK(sink.all == changed);
  list.end_save();
  check_equal(list, changed);
}

}  // namespace holdfast
