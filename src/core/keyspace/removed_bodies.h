// The bodies of removed values. A body with millions of elements takes a second to free, so a Keyspace puts
// it here, and the engine frees it a part at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/keyspace/value_body.h"

namespace holdfast {

class RemovedBodies {
 public:
  // Frees a small body at once. Returns the number of elements that it freed.
  size_t take(std::unique_ptr<ValueBody> body) {
    if (body->size() <= kMostAtOnce && !body->saving()) return body->size();
    bytes_ += body->bytes();
    bodies_.push_back(std::move(body));
    return 0;
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
    return true;
  }
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return bodies_.size(); }

 private:
  static constexpr size_t kMostAtOnce = 64;  // elements

  std::vector<std::unique_ptr<ValueBody>>::const_iterator next() const {
    return std::find_if(bodies_.begin(), bodies_.end(), [](const auto& body) { return !body->saving(); });
  }

  std::vector<std::unique_ptr<ValueBody>> bodies_;
  uint64_t bytes_ = 0;
};

}  // namespace holdfast
