// Lists of free blocks by size class, over pages that are allocated from front to back.
#include "core/base/arena.h"

#include <cstring>
#include <new>
#include <utility>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace holdfast {

Handle Arena::allocate(size_t bytes) {
  assert(bytes > 0 && bytes <= kMaxBlockBytes);
  const size_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
  Handle h = free_[units];
  if (h == 0) {
    h = carve(units);
  } else {
    void* block = at(h);
    ASAN_UNPOISON_MEMORY_REGION(block, units * kUnitBytes);
    std::memcpy(&free_[units], block, sizeof(Handle));
  }
  used_bytes_ += units * kUnitBytes;
  return h;
}

void Arena::release(Handle h, size_t bytes) {
  const size_t units = (bytes + kUnitBytes - 1) / kUnitBytes;
  used_bytes_ -= units * kUnitBytes;
  push_free(h, units);
}

void Arena::push_free(Handle h, size_t units) {
  void* block = at(h);
  std::memcpy(block, &free_[units], sizeof(Handle));
  ASAN_POISON_MEMORY_REGION(block, units * kUnitBytes);
  free_[units] = h;
}

Handle Arena::carve(size_t units) {
  const size_t left = pages_.size() * kUnitsPerPage - next_;
  if (left < units) {
    if (pages_.size() * kPageBytes >= kMaxBytes) throw std::bad_alloc();
    retire_rest_of_page();
    pages_.push_back(pool_->take());
    next_ = static_cast<Handle>((pages_.size() - 1) * kUnitsPerPage);
    if (next_ == 0) next_ = kFirstHandle;
  }
  const Handle h = next_;
  next_ += static_cast<Handle>(units);
  return h;
}

// The rest of the page is too small for the requested block, but not for all blocks. It becomes free blocks
// of the largest classes that fit.
void Arena::retire_rest_of_page() {
  size_t left = pages_.size() * kUnitsPerPage - next_;
  while (left > 0) {
    const size_t units = left < kClasses ? left : kClasses - 1;
    push_free(next_, units);
    next_ += static_cast<Handle>(units);
    left -= units;
  }
}

bool Arena::free_pages(size_t n) {
  for (; n > 0 && !pages_.empty(); --n) {
    pool_->give_back(std::move(pages_.back()));
    pages_.pop_back();
  }
  return pages_.empty();
}

}  // namespace holdfast
