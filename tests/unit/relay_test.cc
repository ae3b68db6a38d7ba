// The attempts that are over, the floors of tickets, and the owners of ticketed requests.
#include "core/state/relay.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/state/floors.h"
#include "core/state/ticket.h"

namespace holdfast {
namespace {

using Owners = std::vector<std::string>;
Relay::Place at(DbIndex db, std::string_view key) { return {db, {key, StringHash()(key)}}; }
const Relay::Place kHere = at(0, "k");

Owners newest(const Relay& relay, const Relay::Place& place, size_t most, std::string_view but = {}) {
  Owners owners;
  for (const Attempt& a : relay.newest(place, most, but)) owners.push_back(owner_of(a));
  return owners;
}

}  // namespace

TEST_CASE("ticket: an owner is a slot, a dot and a number below 2^53") {
  CHECK(read_attempt("s.0")->slot == "s");
  CHECK(read_attempt("s.0")->number == 0);
  CHECK(read_attempt("web1.s.17")->slot == "web1.s");
  CHECK(read_attempt("web1.s.17")->number == 17);
  CHECK(read_attempt("s.9007199254740991")->number == kMaxToken);
  CHECK(!read_attempt("s.9007199254740992"));
  for (const char* owner : {"", "s", ".", ".1", "s.", "s.x", "s.01", "s.+1", "s.-1", "s.1 ", "s.1.x"}) {
    CAPTURE(owner);
    CHECK(!read_attempt(owner));
  }
  CHECK(owner_of({"a.b", 12}) == "a.b.12");
}

TEST_CASE("relay: an attempt is over with all before it, and not the next one") {
  Relay relay;
  CHECK(!relay.is_over(kHere, {"s", 0}));
  CHECK(!relay.add(kHere, {"s", 3}, true));
  CHECK(relay.is_over(kHere, {"s", 3}));
  CHECK(relay.is_over(kHere, {"s", 2}));
  CHECK(!relay.is_over(kHere, {"s", 4}));
  CHECK(relay.add(kHere, {"s", 2}, true) == 3);
  CHECK(relay.add(kHere, {"s", 5}, true) == 3);
  CHECK(relay.is_over(kHere, {"s", 4}));
  relay.check_invariants();
}

TEST_CASE("relay: a slot lives in one key of one database") {
  Relay relay;
  relay.add(kHere, {"s", 3}, true);
  CHECK(!relay.is_over(at(0, "l"), {"s", 3}));
  CHECK(!relay.is_over(at(1, "k"), {"s", 3}));
  CHECK(!relay.is_over(kHere, {"t", 3}));
  CHECK(newest(relay, at(0, "l"), 4).empty());
  CHECK(newest(relay, at(1, "k"), 4).empty());
}

TEST_CASE("relay: the newest of a key come first, and each slot once") {
  Relay relay;
  for (const char* slot : {"a", "b", "c", "d", "e"}) relay.add(kHere, {slot, 1}, true);
  relay.add(at(0, "ka"), {"f", 1}, true);
  CHECK(newest(relay, kHere, 4) == Owners{"e.1", "d.1", "c.1", "b.1"});
  relay.add(kHere, {"a", 7}, true);
  CHECK(newest(relay, kHere, 2) == Owners{"a.7", "e.1"});
  CHECK(newest(relay, kHere, 9).size() == 5);
  CHECK(newest(relay, kHere, 2, "a") == Owners{"e.1", "d.1"});
  relay.check_invariants();
}

TEST_CASE(
    "relay: an attempt that only a later one ended is not told of, and what is known already neither") {
  Relay relay;
  relay.add(kHere, {"s", 3}, false);
  CHECK(newest(relay, kHere, 4).empty());
  relay.add(kHere, {"s", 2}, true);
  CHECK(newest(relay, kHere, 4).empty());
  relay.add(kHere, {"s", 3}, true);  // it was known, but nothing was told
  CHECK(newest(relay, kHere, 4) == Owners{"s.3"});
  relay.add(kHere, {"s", 4}, true);
  relay.add(kHere, {"s", 6}, false);
  CHECK(newest(relay, kHere, 4) == Owners{"s.4"});
  CHECK(relay.is_over(kHere, {"s", 6}));
  relay.check_invariants();
}

TEST_CASE("relay: the UNLOCK of a hold that the relay has ended is settled once") {
  Relay relay;
  relay.owe(kHere, {"s", 2});  // a slot that is not known
  CHECK(!relay.settle(kHere, {"s", 2}));
  relay.add(kHere, {"s", 2}, true);
  CHECK(!relay.settle(kHere, {"s", 2}));
  relay.owe(kHere, {"s", 2});
  CHECK(!relay.settle(kHere, {"s", 1}));
  CHECK(relay.settle(kHere, {"s", 2}));
  CHECK(!relay.settle(kHere, {"s", 2}));
}

TEST_CASE("relay: the slots that were used least recently give way, at the limit and not before") {
  auto relay = std::make_unique<Relay>();
  for (size_t i = 0; i < Relay::kMostSlots; ++i) relay->add(kHere, {std::to_string(i), 1}, true);
  CHECK(relay->size() == Relay::kMostSlots);
  CHECK(relay->is_over(kHere, {"0", 1}));
  relay->add(kHere, {"0", 1}, true);  // known, but used
  relay->add(kHere, {"new", 1}, true);
  CHECK(relay->size() == Relay::kMostSlots);
  CHECK(relay->is_over(kHere, {"0", 1}));
  CHECK(!relay->is_over(kHere, {"1", 1}));
  CHECK(relay->is_over(kHere, {"2", 1}));
  CHECK(relay->is_over(kHere, {"new", 1}));
  relay->check_invariants();
}

TEST_CASE("relay: long names count, and one that is longer than the limit is kept alone") {
  Relay relay;
  const std::string large(Relay::kMostBytes / 4, 'k');
  for (int i = 0; i < 5; ++i) relay.add(at(0, large), {std::to_string(i), 1}, true);
  CHECK(relay.size() == 3);
  CHECK(relay.bytes() <= Relay::kMostBytes);
  CHECK(newest(relay, at(0, large), 9) == Owners{"4.1", "3.1", "2.1"});
  const std::string huge(Relay::kMostBytes, 'h');
  relay.add(at(0, huge), {"s", 1}, true);
  CHECK(relay.size() == 1);
  relay.add(kHere, {"s", 1}, true);
  CHECK(relay.size() == 1);
  CHECK(relay.is_over(kHere, {"s", 1}));
  relay.check_invariants();
}

TEST_CASE("floors: a floor is of a stripe of keys, and never decreases") {
  const Floors fresh;
  CHECK(fresh.of({"k", 5}) == 0);
  Floors floors;
  floors.raise({"k", 5}, 100);
  CHECK(floors.of({"k", 5}) == 100);
  CHECK(floors.of({"other", 5 + Tokens::kStripes}) == 100);
  CHECK(floors.of({"k", 6}) == 0);
  floors.raise({"k", 5}, 99);
  CHECK(floors.of({"k", 5}) == 100);
  floors.raise({"k", 5}, 101);
  CHECK(floors.of({"k", 5}) == 101);
}

}  // namespace holdfast
