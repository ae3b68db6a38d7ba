// Small blocks of memory for Lua, which allocates and frees a few for every script. A list of free blocks
// for each size is much cheaper than malloc. The pool never frees its memory for small blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kPoolsBlocks = false;  // so that AddressSanitizer sees each block separately
#else
inline constexpr bool kPoolsBlocks = true;
#endif

namespace holdfast {

class BlockPool {
 public:
  static constexpr size_t kMaxBytes = 512;  // larger blocks come from malloc

  // Returns a block of at least `bytes`; null if there is no memory.
  void* take(size_t bytes) {
    if (bytes > kMaxBytes || !kPoolsBlocks) return std::malloc(bytes);
    void*& head = free_[class_of(bytes)];
    if (head == nullptr) refill(class_of(bytes));
    void* block = head;
    if (block == nullptr) return nullptr;
    std::memcpy(&head, block, sizeof head);
    return block;
  }
  // Takes a block back. `bytes` is the argument of take().
  void give(void* block, size_t bytes) {
    if (bytes > kMaxBytes || !kPoolsBlocks) return std::free(block);
    add_free(class_of(bytes), block);
  }

 private:
  static constexpr size_t kStep = 16;
  static constexpr size_t kPageBytes = size_t{32} << 10U;
  static size_t class_of(size_t bytes) { return (bytes + kStep - 1) / kStep; }

  void add_free(size_t size_class, void* block) {
    void*& head = free_[size_class];
    std::memcpy(block, &head, sizeof head);
    head = block;
  }

  // Cuts a new page into blocks of one class. Does nothing if there is no memory.
  void refill(size_t size_class) {
    auto page = std::unique_ptr<char[]>(new (std::nothrow) char[kPageBytes]);
    if (page == nullptr) return;
    const size_t bytes = size_class * kStep;
    for (size_t at = 0; at + bytes <= kPageBytes; at += bytes) add_free(size_class, page.get() + at);
    pages_.push_back(std::move(page));
  }

  std::array<void*, kMaxBytes / kStep + 1> free_{};
  std::vector<std::unique_ptr<char[]>> pages_;
};

}  // namespace holdfast
