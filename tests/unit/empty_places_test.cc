// The places of waiters whose connection ended.
#include "core/state/empty_places.h"

#include <doctest/doctest.h>

#include <string>

namespace holdfast {
namespace {

const EmptyPlaces::Whose kBob{0, "key", "bob"};

}  // namespace

TEST_CASE("places: a place ends at its very millisecond") {
  EmptyPlaces places;
  places.keep(kBob, 7, TimeMs{1000}, 10);
  CHECK(places.find(kBob, TimeMs{999}) == 7);
  CHECK(places.find(kBob, TimeMs{1000}) == 0);
  CHECK(places.next_end() == TimeMs{1000});
  places.end_some(TimeMs{999});
  CHECK(places.size() == 1);
  places.end_some(TimeMs{1000});
  CHECK(places.size() == 0);
  CHECK(places.bytes() == 0);
  CHECK(places.next_end() == kNever);
}

TEST_CASE("places: each is of a database, a key and an owner, and the oldest give way") {
  EmptyPlaces places;
  places.keep(kBob, 1, TimeMs{1000}, 3);
  places.keep({1, "key", "bob"}, 2, TimeMs{1000}, 3);
  places.keep({0, "keyb", "ob"}, 3, TimeMs{1001}, 3);
  CHECK(places.find(kBob, TimeMs{0}) == 1);
  CHECK(places.find({0, "keyb", "ob"}, TimeMs{0}) == 3);
  CHECK(places.find({0, "other", "bob"}, TimeMs{0}) == 0);
  places.keep({0, "key", "carol"}, 4, TimeMs{1002}, 3);
  CHECK(places.find(kBob, TimeMs{0}) == 0);
  CHECK(places.size() == 3);
  places.keep({1, "key", "bob"}, 5, TimeMs{1003}, 3);
  CHECK(places.find({1, "key", "bob"}, TimeMs{0}) == 5);
  places.keep(kBob, 6, TimeMs{1004}, 0);
  CHECK(places.size() == 0);
  CHECK(places.bytes() == 0);
}

}  // namespace holdfast
