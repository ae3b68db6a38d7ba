// The names of scripts that are remembered with their bodies, and the limits of that memory.
#include "core/script/known_bodies.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "core/base/sha1.h"

namespace holdfast {
namespace {

std::string name_of(KnownBodies& bodies, std::string_view body) {
  const ScriptName& name = bodies.of(body).name;
  return {name.data(), name.size()};
}

}  // namespace

TEST_CASE("known bodies: a name is the SHA-1 of the body, the first time and later") {
  KnownBodies bodies;
  for (int i = 0; i < 2; ++i) {
    CHECK(name_of(bodies, "return 1") == "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
    CHECK(name_of(bodies, "return 2") == sha1_hex("return 2"));
    CHECK(name_of(bodies, "") == "da39a3ee5e6b4b0d3255bfef95601890afd80709");
  }
  CHECK(bodies.size() == 3);
}

TEST_CASE("known bodies: a body is remembered up to the size limit") {
  KnownBodies bodies;
  for (const size_t size : {KnownBodies::kMaxBody - 1, KnownBodies::kMaxBody, KnownBodies::kMaxBody + 1}) {
    const std::string body(size, 'x');
    CHECK(name_of(bodies, body) == sha1_hex(body));
    CHECK(name_of(bodies, body) == sha1_hex(body));
  }
  CHECK(bodies.size() == 2);
}

TEST_CASE("known bodies: all are dropped before they exceed the memory limit") {
  constexpr size_t kBody = 1024 - KnownBodies::kOverheadBytes;
  constexpr size_t kFit = KnownBodies::kMaxBytes / 1024;
  KnownBodies bodies;
  const auto body = [](size_t i) {
    std::string text = std::to_string(i);
    return text.append(kBody - text.size(), ' ');
  };
  for (size_t i = 0; i < kFit; ++i) bodies.of(body(i));
  CHECK(bodies.size() == kFit);
  CHECK(name_of(bodies, body(kFit)) == sha1_hex(body(kFit)));
  CHECK(bodies.size() == 1);
}

}  // namespace holdfast
