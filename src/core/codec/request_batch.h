// Requests that one read brought together, cut before the first of them runs, so that the engine can
// prefetch the memory that they need. Keeps views into the caller's bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/config.h"
#include "core/codec/plain_request.h"

namespace holdfast {

class RequestBatch {
 public:
  static constexpr size_t kRequests = 16;
  // Larger arguments are left to the parser. No limit that may change between two requests is smaller, so
  // it makes no difference that the requests are cut before the earlier ones run.
  static constexpr uint64_t kMostBytes = 4096;

  // Replaces the batch by the plain requests at the beginning of `bytes`, up to the first that is
  // incomplete or has another form.
  void cut(std::string_view bytes, const Limits& limits);
  void clear() { count_ = next_ = 0; }

  // The requests that have not been taken.
  bool empty() const { return next_ == count_; }
  size_t size() const { return count_ - next_; }
  std::span<const std::string_view> argv(size_t i) const { return argv_of(next_ + i); }

  // Takes the first request. The result is valid until the next cut().
  struct Taken {
    std::span<const std::string_view> argv;
    size_t bytes;
  };
  Taken take() {
    const size_t i = next_++;
    return {argv_of(i), pieces_[i].bytes};
  }

 private:
  struct Piece {
    uint32_t first, arguments, bytes;
  };
  std::span<const std::string_view> argv_of(size_t i) const {
    return {&arguments_[pieces_[i].first], pieces_[i].arguments};
  }

  size_t count_ = 0;
  size_t next_ = 0;
  std::array<Piece, kRequests> pieces_{};
  std::array<std::string_view, kRequests * kPlainArguments> arguments_{};
};

}  // namespace holdfast
