// Large blocks of memory that are no longer needed. They are freed a little at a time: to free 1 MiB takes
// about 50 us, and 64 MiB at once would delay all clients. One block is kept, so that the next large reply
// gets memory whose pages are already mapped.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/buffer.h"

namespace holdfast {

class DeferredFree {
 public:
  // Empties the buffer and takes its memory.
  void take(Buffer& buffer) {
    buffer.clear();
    const bool fits = buffer.capacity() >= Buffer::kLarge && buffer.capacity() <= kMostSpare;
    if (fits && buffer.capacity() > spare_.capacity()) buffer.swap(spare_);
    if (buffer.capacity() <= kLeastStep) return buffer.reset(0);
    bytes_ += buffer.capacity();
    buffers_.push_back(std::move(buffer));
  }
  bool empty() const { return buffers_.empty(); }
  size_t bytes() const { return bytes_ + spare_.capacity(); }
  // For Buffer::borrow_from().
  Buffer& spare() { return spare_; }
  // Frees a part of the memory. The more there is, the larger the part, so that blocks cannot arrive faster
  // than they are freed.
  void release_some() {
    if (empty()) return;
    Buffer& last = buffers_.back();
    const size_t before = last.capacity();
    const bool freed = last.release_some(std::max(kLeastStep, bytes_ / kPart));
    bytes_ -= before - last.capacity();
    if (freed) buffers_.pop_back();
  }

 private:
  static constexpr size_t kMostSpare = size_t{2} << 20U;
  static constexpr size_t kLeastStep = size_t{512} << 10U;
  static constexpr size_t kPart = 16;
  std::vector<Buffer> buffers_;
  size_t bytes_ = 0;
  Buffer spare_;
};

}  // namespace holdfast
