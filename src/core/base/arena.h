// Memory for a keyspace's entries: small blocks in size classes 8 bytes apart. 32-bit handles name the
// blocks, so that a hash slot costs 4 bytes and a timer's two links 8. Owns all its memory, and frees it in
// whole pages. Knows nothing of the content of the blocks.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/page_pool.h"

namespace holdfast {

// The name of a block: page number and offset in units of 8 bytes. Values below kFirstHandle name no block;
// users of handles may give them other meanings.
using Handle = uint32_t;

class Arena {
 public:
  static constexpr size_t kUnitBytes = 8;
  static constexpr size_t kMaxBlockBytes = 4096;  // larger objects are outside; a block points to them
  static constexpr size_t kPageBytes = PagePool::kPageBytes;
  static constexpr Handle kFirstHandle = 4096;  // the first 32 KiB of the first page are never allocated
  static constexpr uint64_t kMaxBytes = uint64_t{kUnitBytes} << 32U;  // 32 GiB: the range of a handle

  // Its pages come from `pool`, which must outlive it.
  explicit Arena(PagePool& pool) : pool_(&pool) {}
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // Returns a block of at least `bytes` (1 .. kMaxBlockBytes), aligned to 8. Throws std::bad_alloc at
  // kMaxBytes.
  Handle allocate(size_t bytes);
  // Frees a block. `bytes` is the argument of allocate().
  void release(Handle h, size_t bytes);

  void* at(Handle h) const {
    assert(h >= kFirstHandle);
    return pages_[h / kUnitsPerPage].get() + size_t{h % kUnitsPerPage} * kUnitBytes;
  }

  // Prefetches the first 120 bytes of a block that will be read and whose first bytes will be written.
  void prefetch(Handle h) const {
    constexpr size_t kCacheLine = 64;
    const char* block = static_cast<const char*>(at(h));
    __builtin_prefetch(block, 1);
    __builtin_prefetch(block + kCacheLine);
    __builtin_prefetch(block + 2 * kCacheLine - kUnitBytes);
  }

  // Bytes of the blocks in use, rounded up to their size classes.
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t reserved_bytes() const { return pages_.size() * kPageBytes; }
  static size_t class_bytes(size_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }

  // Gives up to `n` pages back to the pool. Returns true when none is left. After the first call, only
  // free_pages() may be called.
  bool free_pages(size_t n);

 private:
  static constexpr Handle kUnitsPerPage = kPageBytes / kUnitBytes;
  static constexpr size_t kClasses = kMaxBlockBytes / kUnitBytes + 1;

  Handle carve(size_t units);
  void retire_rest_of_page();
  void push_free(Handle h, size_t units);

  PagePool* pool_;
  std::vector<PagePool::Page> pages_;
  std::array<Handle, kClasses>
      free_{};       // by units: head of the list of free blocks, linked in their first bytes
  Handle next_ = 0;  // first unit that was never allocated
  uint64_t used_bytes_ = 0;
};

}  // namespace holdfast
