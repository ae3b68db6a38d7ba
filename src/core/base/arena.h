// Memory for a keyspace's entries: small blocks in size classes 8 bytes apart, named by 32-bit handles, so
// that a hash slot costs 4 bytes and a timer's two links 8. Owns all its memory; frees it whole pages at a
// time. Knows nothing of what the blocks hold.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/base/page_pool.h"

namespace holdfast {

// A block's name: page number and offset in units of 8 bytes. Values below kFirstHandle name no block, so
// that users of handles may give them a meaning of their own.
using Handle = uint32_t;

class Arena {
 public:
  static constexpr size_t kUnitBytes = 8;
  static constexpr size_t kMaxBlockBytes = 4096;  // larger things live outside and are pointed to
  static constexpr size_t kPageBytes = PagePool::kPageBytes;
  static constexpr Handle kFirstHandle = 4096;  // the first page's first 32 KiB are never given out
  static constexpr uint64_t kMaxBytes = kUnitBytes << 32;  // 32 GiB: what a handle can name

  // Its pages come from `pool`, which must outlive it.
  explicit Arena(PagePool& pool) : pool_(&pool) {}
  Arena(Arena&&) = default;
  Arena& operator=(Arena&&) = default;

  // A block of at least `bytes` (1 .. kMaxBlockBytes), aligned to 8. Throws std::bad_alloc at kMaxBytes.
  Handle allocate(size_t bytes);
  // `bytes` as given to allocate().
  void release(Handle h, size_t bytes);

  void* at(Handle h) const {
    assert(h >= kFirstHandle);
    return pages_[h / kUnitsPerPage].get() + size_t{h % kUnitsPerPage} * kUnitBytes;
  }

  // Begins to fetch a block that will be read, and whose first bytes will be written.
  void prefetch(Handle h) const {
    constexpr size_t kCacheLine = 64;
    const char* block = static_cast<const char*>(at(h));
    __builtin_prefetch(block, 1);
    __builtin_prefetch(block + kCacheLine);
  }

  // Bytes of the blocks in use, as rounded up to their classes.
  uint64_t used_bytes() const { return used_bytes_; }
  uint64_t reserved_bytes() const { return pages_.size() * kPageBytes; }
  static size_t class_bytes(size_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }

  // Gives up to `n` pages back to the system; true when none is left. The arena must not be used after it.
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
  Handle next_ = 0;  // first unit never given out
  uint64_t used_bytes_ = 0;
};

}  // namespace holdfast
