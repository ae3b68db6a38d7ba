// The bodies of removed values. A body with millions of elements takes a second to free, so a Keyspace puts
// it here, and the engine frees it a part at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "core/keyspace/value_body.h"

namespace holdfast {

class RemovedBodies {
 public:
  // Bodies with at most so many elements are freed at once.
  static constexpr size_t kMostAtOnce = 64;

  void take(std::unique_ptr<ValueBody> body) {
    if (body->size() <= kMostAtOnce && !body->saving()) return;  // small: the destructor frees it
    bytes_ += body->bytes();
    bodies_.push_back(std::move(body));
  }
  // Whether free_some() can free something. A body that a snapshot still saves must wait.
  bool can_free() const { return next() != bodies_.end(); }
  // Frees a part of one body. Returns false if there is nothing to free now.
  bool free_some() {
    const auto at = next();
    if (at == bodies_.end()) return false;
    ValueBody& body = **at;
    bytes_ -= body.bytes();
    if (body.free_some()) {
      bodies_.erase(at);
    } else {
      bytes_ += body.bytes();
    }
    sort_freed_blocks();
    return true;
  }
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return bodies_.size(); }

 private:
  // glibc sorts freed blocks into its lists at the next allocation that needs it, up to 10,000 at once.
  // So each step makes such an allocation itself: larger than the blocks of elements, as a block of exactly
  // its size ends the sorting, and smaller than a mapping of its own (server.cc).
  static void sort_freed_blocks() {
    constexpr size_t kBytes = size_t{200} << 10U;
    char* volatile block = static_cast<char*>(std::malloc(kBytes));  // volatile: the compiler keeps it
    std::free(block);
  }

  std::vector<std::unique_ptr<ValueBody>>::const_iterator next() const {
    return std::find_if(bodies_.begin(), bodies_.end(), [](const auto& body) { return !body->saving(); });
  }

  std::vector<std::unique_ptr<ValueBody>> bodies_;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast
