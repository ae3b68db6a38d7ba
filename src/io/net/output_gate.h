// How much of a connection's output may leave: the rest waits for the disk. Counts bytes, and has none.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "io/net/held_replies.h"

namespace holdfast {

class OutputGate {
 public:
  // The number of bytes at the front of the output that may leave.
  size_t allowed() const { return allowed_; }
  // Whether it holds replies back.
  bool holds() const { return holds_; }

  // All of the output, which has so many bytes, may leave.
  void open(size_t size) {
    allowed_ = size;
    holds_ = false;
  }
  // Adds the output to `replies`: it may leave when the promise is kept, except for what was allowed
  // before.
  void hold(HeldReplies& replies, const Store::Promise& promise, ConnId id, size_t size) {
    holds_ = true;
    number_ = replies.add(promise, id, left_ + size, number_);
  }
  // The output may leave up to a position that hold() has added.
  void release(uint64_t end, size_t size) {
    const uint64_t may = std::min<uint64_t>(end - std::min(end, left_), size);
    allowed_ = std::max(allowed_, static_cast<size_t>(may));
    holds_ = size > allowed_;
  }
  // So many bytes have left.
  void record_left(size_t bytes) {
    allowed_ -= bytes;
    left_ += bytes;
  }

 private:
  size_t allowed_ = 0;
  uint64_t left_ = 0;    // bytes that have left so far
  uint64_t number_ = 0;  // see HeldReplies::add()
  bool holds_ = false;
};

}  // namespace holdfast
