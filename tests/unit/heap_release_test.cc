// Free memory of the heap goes back to the system in pieces.
#include "io/os/heap_release.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace holdfast {
namespace {

size_t steps_until_done(HeapRelease& heap) {
  size_t steps = 1;
  while (!heap.step()) ++steps;
  return steps;
}

#if !defined(__SANITIZE_ADDRESS__)  // its allocator has no heap that grows

int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

// Frees a heap of so many bytes, but its last block.
std::vector<char*> make_free_heap(size_t bytes) {
  constexpr size_t kBlockBytes = 1000;
  std::vector<char*> blocks;
  for (size_t made = 0; made < bytes; made += kBlockBytes) {
    blocks.push_back(static_cast<char*>(std::malloc(kBlockBytes)));
    std::memset(blocks.back(), 1, kBlockBytes);
  }
  for (size_t i = 0; i + 1 < blocks.size(); ++i) std::free(blocks[i]);
  return {blocks.back()};
}

constexpr size_t kBytes = size_t{64} << 20U;

TEST_CASE("heap release: the pages of freed blocks leave the process") {
  const std::vector<char*> last = make_free_heap(kBytes);
  const int64_t before = resident_bytes();
  HeapRelease heap;
  heap.begin(2 * kBytes);
  const size_t steps = steps_until_done(heap);
  CHECK(steps >= kBytes * 9 / 10 / HeapRelease::kPieceBytes);  // some blocks fill gaps of earlier tests
  CHECK(before - resident_bytes() > static_cast<int64_t>(kBytes * 9 / 10));
  std::free(last.front());
}

TEST_CASE("heap release: no more pieces than asked for leave the process") {
  const std::vector<char*> last = make_free_heap(kBytes);
  const int64_t before = resident_bytes();
  HeapRelease heap;
  heap.begin(10 * HeapRelease::kPieceBytes);
  steps_until_done(heap);
  CHECK(before - resident_bytes() <= static_cast<int64_t>(10 * HeapRelease::kPieceBytes));
  std::free(last.front());
}

#endif

TEST_CASE("heap release: without free memory the end comes, and an end halfway frees the pieces") {
  HeapRelease heap;
  heap.begin(0);
  CHECK(heap.step());
  heap.begin(100 * HeapRelease::kPieceBytes);
  CHECK(steps_until_done(heap) <= 102);
  heap.begin(100 * HeapRelease::kPieceBytes);
  heap.step();
}

}  // namespace
}  // namespace holdfast
