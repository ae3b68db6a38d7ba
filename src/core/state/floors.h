// The largest ticket time that each stripe of keys has seen, as Tokens has counters. A client takes a
// larger one for its next ticket, so that no clock starves another client. Lost at a restart. Owns 512 KiB,
// of which only the pages in use take memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

#include "core/base/hash.h"
#include "core/state/tokens.h"

namespace holdfast {

class Floors {
 public:
  // calloc() takes pages from the system that are zero and exist only after a write.
  Floors() : times_(static_cast<uint64_t*>(std::calloc(Tokens::kStripes, sizeof(uint64_t)))) {
    if (times_ == nullptr) throw std::bad_alloc();
  }

  uint64_t of(const Key& key) const { return times_[key.hash % Tokens::kStripes]; }
  void raise(const Key& key, uint64_t time) {
    uint64_t& floor = times_[key.hash % Tokens::kStripes];
    if (time > floor) floor = time;
  }

 private:
  struct Free {
    void operator()(uint64_t* times) const { std::free(times); }
  };
  std::unique_ptr<uint64_t[], Free> times_;
};

}  // namespace holdfast
