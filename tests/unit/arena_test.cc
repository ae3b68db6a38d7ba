// Blocks never overlap, are aligned, and are reused in their size class.
#include "core/base/arena.h"

#include <doctest/doctest.h>

#include <cstring>
#include <random>
#include <vector>

namespace holdfast {

TEST_CASE("pages: spare pages: 0 of a small keyspace, then 2, then one for each 32, at most 8") {
  PagePool pool;
  pool.expect_spares();
  std::vector<PagePool::Page> taken;
  CHECK(pool.wanted() == 0);
  const auto take = [&](size_t upto) {
    while (taken.size() < upto) taken.push_back(pool.take());
  };
  take(1);
  CHECK(pool.wanted() == 0);
  take(2);
  CHECK(pool.wanted() == 2);
  take(95);
  CHECK(pool.wanted() == 2);
  take(96);
  CHECK(pool.wanted() == 3);
  take(287);
  CHECK(pool.wanted() == 8);
  take(1000);
  CHECK(pool.wanted() == 8);
  PagePool::Page page = PagePool::make_ready();
  char* spare = page.get();
  pool.give(std::move(page));
  CHECK(pool.wanted() == 7);
  CHECK(pool.take().get() == spare);
  CHECK(pool.wanted() == 8);
}

TEST_CASE("pages: the shell that gives spares frees up to 64 pages of arenas, and the pool the others") {
  PagePool pages;
  pages.expect_spares();
  Arena arena(pages);
  while (arena.reserved_bytes() < 66 * Arena::kPageBytes) arena.allocate(Arena::kMaxBlockBytes);
  CHECK(!arena.free_pages(2));
  CHECK(pages.unneeded() == 2);
  CHECK(pages.take_unneeded().size() == 2);
  CHECK(pages.unneeded() == 0);
  CHECK(!arena.free_pages(63));
  CHECK(pages.unneeded() == 63);
  CHECK(arena.free_pages(1));
  CHECK(pages.unneeded() == 64);
  Arena other(pages);
  other.allocate(1);
  CHECK(other.free_pages(1));
  CHECK(pages.unneeded() == 64);
  CHECK(pages.free_unneeded());
  CHECK(pages.unneeded() == 63);
  CHECK(pages.take_unneeded().size() == 63);
  CHECK(!pages.free_unneeded());
}

TEST_CASE("pages: without such a shell the pool frees them at once") {
  PagePool pages;
  Arena arena(pages);
  arena.allocate(1);
  CHECK(arena.free_pages(1));
  CHECK(pages.unneeded() == 0);
}

TEST_CASE("arena: blocks of all sizes keep their content while other blocks are allocated and freed") {
  const uint64_t seed = 11;
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  struct Block {
    Handle handle;
    size_t size;
    int fill;
  };
  PagePool pages;
  Arena arena(pages);
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

TEST_CASE("arena: a freed block is the next one allocated of its class, and of no other class") {
  PagePool pages;
  Arena arena(pages);
  const Handle h = arena.allocate(100);
  arena.release(h, 100);
  CHECK(arena.allocate(96) != h);
  CHECK(arena.allocate(112) != h);
  CHECK(arena.allocate(104) == h);
}

}  // namespace holdfast
