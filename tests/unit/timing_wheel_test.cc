// The timing wheel against a plain map of deadlines.
#include "core/base/timing_wheel.h"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <vector>

namespace holdfast {
namespace {

constexpr uint32_t kFirst = TimingWheel<int>::kFirstItem;

struct Node {
  uint32_t next = 0;
  uint32_t prev = 0;
  int64_t deadline = 0;
};

struct Nodes {
  std::vector<Node>* nodes;
  uint32_t& next(uint32_t i) const { return (*nodes)[i - kFirst].next; }
  uint32_t& prev(uint32_t i) const { return (*nodes)[i - kFirst].prev; }
  int64_t deadline_ms(uint32_t i) const { return (*nodes)[i - kFirst].deadline; }
};

struct Wheel {
  explicit Wheel(size_t n) : nodes(n), wheel(Nodes{&nodes}) {}
  void add(uint32_t i, int64_t deadline) {
    nodes[i].deadline = deadline;
    wheel.add(i + kFirst);
  }
  std::set<uint32_t> advance(int64_t now, size_t budget = SIZE_MAX) {
    std::set<uint32_t> taken;
    const auto take = [&](uint32_t item) {
      wheel.remove(item);
      taken.insert(item - kFirst);
    };
    wheel.advance({now}, budget, take, [](uint32_t) {});
    return taken;
  }
  std::vector<Node> nodes;
  TimingWheel<Nodes> wheel;
};

}  // namespace

TEST_CASE("timing wheel: an item is due at its millisecond and not before, at every level's edge") {
  for (const int64_t at :
       {1LL, 63LL, 64LL, 65LL, 4095LL, 4096LL, 4097LL, 262143LL, 262144LL, 1LL << 40, (1LL << 53) + 7}) {
    Wheel w(1);
    w.add(0, at);
    CHECK(w.advance(at - 1).empty());
    CHECK(w.advance(at).size() == 1);
    CHECK(w.wheel.empty());
  }
}

TEST_CASE("timing wheel: an item that is due when it is added is returned at once") {
  Wheel w(2);
  w.advance(1000);
  w.add(0, 1000);
  w.add(1, 5);
  CHECK(w.advance(1001) == std::set<uint32_t>{0, 1});
}

TEST_CASE("timing wheel: a budget is respected, and no item is lost by it") {
  Wheel w(1000);
  for (uint32_t i = 0; i < 1000; ++i) w.add(i, 5000);
  size_t taken = 0;
  for (int calls = 0; taken < 1000; ++calls) {
    const size_t now_taken = w.advance(5000, 10).size();
    REQUIRE(now_taken <= 10);
    REQUIRE(calls < 1000);
    taken += now_taken;
    if (taken < 1000) CHECK(w.wheel.next_due()->count <= 5000);
  }
  CHECK(w.wheel.empty());
}

TEST_CASE("timing wheel: an item whose deadline moves to a later time is due then, at every level's edge") {
  for (const int64_t from : {1LL, 63LL, 64LL, 4095LL, 4096LL}) {
    for (const int64_t to : {64LL, 4095LL, 4096LL, 262144LL, 1LL << 40}) {
      if (to < from) continue;
      Wheel w(2);
      w.add(0, from);
      w.add(1, from);
      w.nodes[0].deadline = to;
      CHECK(w.advance(from - 1).empty());
      CHECK(w.advance(from).size() == (to == from ? 2 : 1));
      CHECK(w.advance(to - 1).empty());
      CHECK(w.advance(to).size() == (to == from ? 0 : 1));
      CHECK(w.wheel.empty());
    }
  }
}

TEST_CASE("timing wheel: an item that is moved at its old time counts in the budget") {
  Wheel w(3);
  for (uint32_t i = 0; i < 3; ++i) w.add(i, 100);
  for (uint32_t i = 0; i < 3; ++i) w.nodes[i].deadline = 200;
  size_t taken = 0;
  const auto take = [&](uint32_t) { ++taken; };
  const auto advance = [&](size_t budget) { return w.wheel.advance({100}, budget, take, [](uint32_t) {}); };
  CHECK(advance(2) == 0);
  CHECK(advance(2) == 1);
  CHECK(taken == 0);
  CHECK(w.wheel.next_due()->count > 100);
  CHECK(w.advance(200).size() == 3);
}

TEST_CASE("timing wheel: random adds, removes, extensions and steps agree with a map of deadlines") {
  const uint64_t seed = 20261121;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  Wheel w(500);
  std::map<uint32_t, int64_t> present;
  int64_t now = 0;
  for (int step = 0; step < 200000; ++step) {
    const auto i = static_cast<uint32_t>(random() % 500);
    if (present.contains(i) && random() % 2 == 0) {
      w.nodes[i].deadline += static_cast<int64_t>(random() >> (11 + random() % 53));
      present[i] = w.nodes[i].deadline;
    } else if (present.contains(i)) {
      w.wheel.remove(i + kFirst);
      present.erase(i);
    } else {
      const int64_t deadline = now + 1 + static_cast<int64_t>(random() >> (11 + random() % 53));
      w.add(i, deadline);
      present[i] = deadline;
    }
    if (random() % 4 != 0) continue;
    now += static_cast<int64_t>(random() >> (20 + random() % 44));
    std::set<uint32_t> due;
    std::erase_if(present, [&](const auto& p) { return p.second <= now && due.insert(p.first).second; });
    const auto next = w.wheel.next_due();
    for (const auto& [item, deadline] : present) REQUIRE(next->count <= deadline);
    REQUIRE(w.advance(now) == due);
    REQUIRE(w.wheel.size() == present.size());
    if (now > (int64_t{1} << 52)) break;
  }
}

}  // namespace holdfast
