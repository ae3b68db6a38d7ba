// A small hash in one block of bytes.
#include "core/keyspace/packed_hash.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs pairs_of(std::string_view bytes) {
  Pairs pairs;
  PackedHash(bytes).for_each([&](std::string_view f, std::string_view v) { pairs.emplace_back(f, v); });
  return pairs;
}

PackedHashEditor three_fields() {
  PackedHashEditor packed({});
  packed.set("a", "1");
  packed.set("b", "2");
  packed.set("c", "3");
  return packed;
}

}  // namespace

TEST_CASE("packed hash: an empty text is a hash without fields") {
  CHECK(PackedHash({}).size() == 0);
  CHECK(!PackedHash({}).find(""));
  CHECK(pairs_of({}).empty());
}

TEST_CASE("packed hash: fields keep the order in which they were set first") {
  PackedHashEditor packed = three_fields();
  CHECK(!packed.set("a", "4"));
  CHECK(packed.set("d", "5"));
  CHECK(pairs_of(packed.bytes()) == Pairs{{"a", "4"}, {"b", "2"}, {"c", "3"}, {"d", "5"}});
  CHECK(PackedHash(packed.bytes()).size() == 4);
}

TEST_CASE("packed hash: a value may grow, shrink and become empty between its neighbours") {
  PackedHashEditor packed = three_fields();
  for (const size_t size : {2U, 100U, 126U, 127U, 128U, 129U, 5U, 0U, 16383U, 16384U, 16385U, 1U}) {
    CAPTURE(size);
    const std::string value(size, 'x');
    CHECK(!packed.set("b", value));
    CHECK(pairs_of(packed.bytes()) == Pairs{{"a", "1"}, {"b", value}, {"c", "3"}});
  }
}

TEST_CASE("packed hash: fields of any size are found, before, at and after a size's next byte") {
  PackedHashEditor packed({});
  for (const size_t size : {0U, 1U, 127U, 128U, 16383U, 16384U, 2097151U, 2097152U}) {
    CHECK(packed.set(std::string(size, 'f'), std::to_string(size)));
  }
  for (const size_t size : {0U, 1U, 127U, 128U, 16383U, 16384U, 2097151U, 2097152U}) {
    CHECK(PackedHash(packed.bytes()).find(std::string(size, 'f')) == std::to_string(size));
  }
  CHECK(!PackedHash(packed.bytes()).find(std::string(126, 'f')));
}

TEST_CASE("packed hash: a field is not found within a value, nor by a part of its name") {
  PackedHashEditor packed({});
  packed.set("field", "other");
  CHECK(!PackedHash(packed.bytes()).find("other"));
  CHECK(!PackedHash(packed.bytes()).find("fiel"));
  CHECK(!PackedHash(packed.bytes()).find(std::string_view("field\0", 6)));
}

TEST_CASE("packed hash: erasing removes the field and keeps the order of the others") {
  for (const auto& [field, left] :
       std::vector<std::pair<std::string, Pairs>>{{"a", {{"b", "2"}, {"c", "3"}}},
                                                  {"b", {{"a", "1"}, {"c", "3"}}},
                                                  {"c", {{"a", "1"}, {"b", "2"}}}}) {
    PackedHashEditor packed = three_fields();
    CHECK(packed.erase(field));
    CHECK(!packed.erase(field));
    CHECK(pairs_of(packed.bytes()) == left);
  }
}

TEST_CASE("packed hash: the removal of the last field leaves no bytes") {
  PackedHashEditor packed({});
  packed.set("", "");
  CHECK(pairs_of(packed.bytes()) == Pairs{{"", ""}});
  CHECK(packed.erase(""));
  CHECK(packed.bytes().empty());
}

}  // namespace holdfast
