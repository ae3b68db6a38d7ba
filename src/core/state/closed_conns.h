// The addresses and names of connections that have closed, so that LOCKS INFO can show them for holds that
// outlive their connection. Bounded: a new one replaces the oldest.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "core/base/types.h"

namespace holdfast {

struct ClosedConn {
  uint64_t serial = 0;
  TimeMs opened;
  std::string addr;
  std::string name;
};

class ClosedConns {
 public:
  static constexpr size_t kMost = 10000;
  static constexpr size_t kMostBytes = size_t{4} << 20U;

  // A connection whose texts alone exceed kMostBytes is not kept.
  void add(ClosedConn c) {
    const size_t bytes = bytes_of(c);
    if (bytes > kMostBytes) return;
    while (order_.size() >= kMost || bytes_ + bytes > kMostBytes) remove_oldest();
    bytes_ += bytes;
    order_.push_back(c.serial);
    by_serial_.emplace(c.serial, std::move(c));
  }
  // Returns null if the connection is open, or closed before all that are kept. The pointer is valid until
  // the next add().
  const ClosedConn* find(uint64_t serial) const {
    const auto it = by_serial_.find(serial);
    return it == by_serial_.end() ? nullptr : &it->second;
  }
  size_t size() const { return order_.size(); }
  size_t bytes() const { return bytes_; }

 private:
  // With the estimated overhead of an element in the table.
  static size_t bytes_of(const ClosedConn& c) { return c.addr.size() + c.name.size() + 2 * sizeof c; }
  void remove_oldest() {
    const auto it = by_serial_.find(order_.front());
    bytes_ -= bytes_of(it->second);
    by_serial_.erase(it);
    order_.pop_front();
  }

  absl::flat_hash_map<uint64_t, ClosedConn> by_serial_;
  std::deque<uint64_t> order_;  // the oldest first
  size_t bytes_ = 0;
};

}  // namespace holdfast
