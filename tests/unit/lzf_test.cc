// LZF in steps: each step ends after its effort, the text is the same, and damage is an error in each.
#include "core/codec/lzf.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>

#include "unit/payloads.h"

namespace holdfast {
namespace {

// Returns nullopt if the bytes are damaged.
std::optional<std::string> unpacked(const std::string& packed, uint64_t size, size_t effort = SIZE_MAX) {
  LzfText text;
  if (!text.begin(packed.size(), size)) return std::nullopt;
  for (size_t left = effort; !text.ended(); left = effort) {
    if (!text.step(packed, left)) return std::nullopt;
  }
  return std::string(text.view());
}

std::string repeated(const std::string& unit, size_t times) {
  std::string text;
  for (; times > 0; --times) text += unit;
  return text;
}

TEST_CASE("lzf: a text is the same in steps of any effort, at each distance and length") {
  for (const size_t distance : {1U, 2U, 3U, 7U, 8U, 9U, 100U, 8192U}) {
    const std::string unit = repeated("0123456789abc", 1000).substr(0, distance);
    for (const size_t times : {4U, 263U, 264U, 265U, 266U, 267U, 300U}) {
      const std::string packed = lzf_literals(unit) + lzf_repeat(distance, distance * (times - 1));
      const std::string text = repeated(unit, times);
      for (const size_t effort : {size_t{1}, size_t{3}, SIZE_MAX}) {
        const std::string got = unpacked(packed, text.size(), effort).value_or("damaged");
        if (got != text) FAIL_CHECK("distance ", distance, ", times ", times, ", effort ", effort);
      }
    }
  }
}

TEST_CASE("lzf: a step unpacks little more than its effort, and uses it up") {
  const size_t size = 100000;
  const std::string packed = lzf_literals("x") + lzf_repeat(1, size - 1);
  LzfText text;
  REQUIRE(text.begin(packed.size(), size));
  for (size_t steps = 1; !text.ended(); ++steps) {
    size_t effort = 10;
    REQUIRE(text.step(packed, effort));
    CHECK((effort == 0 || text.ended()));
    CHECK(text.view().size() <= steps * (10 * LzfText::kUnitBytes + 264));
  }
  CHECK(text.view() == std::string(size, 'x'));
}

TEST_CASE("lzf: cut bytes, another size, and a distance beyond the begin are errors") {
  const std::string packed =
      lzf_literals("abc") + lzf_repeat(3, 3) + lzf_repeat(3, 264) + lzf_literals("d");
  CHECK(unpacked(packed, 271) == repeated("abc", 90) + "d");
  for (const size_t effort : {size_t{1}, SIZE_MAX}) {
    for (size_t cut = 0; cut < packed.size(); ++cut) {
      if (unpacked(packed.substr(0, cut), 271, effort)) FAIL_CHECK("cut at ", cut);
    }
    for (const uint64_t size : {0U, 1U, 270U, 272U, 1000000U}) {
      if (unpacked(packed, size, effort)) FAIL_CHECK("size ", size);
    }
    CHECK(unpacked(lzf_literals("abc") + lzf_repeat(3, 3), 6, effort));
    CHECK_FALSE(unpacked(lzf_literals("abc") + lzf_repeat(4, 3), 6, effort));
  }
}

}  // namespace
}  // namespace holdfast
