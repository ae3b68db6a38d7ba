// Blocks never overlap, are aligned, and come again in their size class.
#include "core/arena.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

namespace holdfast {

TEST_CASE(
    "arena: blocks of all sizes keep what is written to them, whatever is allocated and released beside") {
  const uint64_t seed = 11;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  struct Block {
    Handle handle;
    size_t size;
    int fill;
  };
  Arena arena;
  std::vector<Block> blocks;
  uint64_t used = 0;
  for (int step = 0; step < 40000; ++step) {
    if (blocks.empty() || random() % 5 < 3) {
      const size_t size = 1 + random() % (random() % 10 == 0 ? Arena::kMaxBlockBytes : 200);
      const Block b{arena.allocate(size), size, static_cast<int>(random() % 256)};
      REQUIRE(b.handle >= Arena::kFirstHandle);
      REQUIRE(reinterpret_cast<uintptr_t>(arena.at(b.handle)) % 8 == 0);
      std::memset(arena.at(b.handle), b.fill, size);
      used += Arena::class_bytes(size);
      blocks.push_back(b);
    } else {
      const size_t i = random() % blocks.size();
      const Block b = blocks[i];
      const std::vector<unsigned char> expected(b.size, static_cast<unsigned char>(b.fill));
      REQUIRE(std::memcmp(arena.at(b.handle), expected.data(), b.size) == 0);
      arena.release(b.handle, b.size);
      used -= Arena::class_bytes(b.size);
      blocks[i] = blocks.back();
      blocks.pop_back();
    }
    REQUIRE(arena.used_bytes() == used);
  }
}

TEST_CASE("arena: a released block is the next of its class, and of no other") {
  Arena arena;
  const Handle h = arena.allocate(100);
  arena.release(h, 100);
  CHECK(arena.allocate(96) != h);
  CHECK(arena.allocate(112) != h);
  CHECK(arena.allocate(104) == h);
}

}  // namespace holdfast
