// The free memory is found by allocation: a piece for which the heap need not grow was free. Pieces stay
// allocated until the end, else each allocation would return the same one.
#include "io/os/heap_release.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <new>

namespace holdfast {
namespace {

// Releases the pages that are completely behind the link. The system gives zero pages at the next access.
void release_pages(char* piece, size_t link_bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(piece);
  const uintptr_t first = (begin + link_bytes + page - 1) / page * page;
  const uintptr_t end = (begin + HeapRelease::kPieceBytes) / page * page;
  madvise(piece + (first - begin), end - first, MADV_DONTNEED);  // if it fails, the pages stay
}

}  // namespace

HeapRelease::~HeapRelease() { free_pieces(SIZE_MAX); }

bool HeapRelease::step() {
  constexpr size_t kFreedAtOnce = 64;
  if (pieces_left_ > 0 && take_piece()) {
    --pieces_left_;
    return false;
  }
  pieces_left_ = 0;
  free_pieces(kFreedAtOnce);
  return taken_ == nullptr;
}

// Returns false if there is no free memory of this size.
bool HeapRelease::take_piece() {
  const void* const end_of_heap = sbrk(0);
  void* const memory = std::malloc(kPieceBytes);
  if (memory == nullptr) return false;
  if (sbrk(0) != end_of_heap) {
    std::free(memory);
    return false;
  }
  taken_ = new (memory) Piece{taken_};
  release_pages(static_cast<char*>(memory), sizeof(Piece));
  return true;
}

void HeapRelease::free_pieces(size_t most) {
  for (; most > 0 && taken_ != nullptr; --most) {
    Piece* const piece = taken_;
    taken_ = piece->next;
    std::free(piece);
  }
}

}  // namespace holdfast
