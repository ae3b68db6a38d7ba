// Parses replies from bytes, with hiredis' reader, which here builds Values directly and enforces limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/value.h"

namespace holdfast::client {

// The limits of one reply with all its elements. Announced sizes must not allocate memory, and a server
// that sends without end must not use unlimited memory.
struct ReplyLimits {
  size_t elements = size_t{1} << 20;
  size_t bytes = size_t{512} << 20;
  size_t line_bytes = size_t{64} << 10;  // for a status, an error, or the length of a bulk
};

enum class Protocol : uint8_t { kResp2, kResp3 };

class ReplyReader {
 public:
  explicit ReplyReader(Protocol protocol = Protocol::kResp2, const ReplyLimits& limits = {});
  ~ReplyReader();
  ReplyReader(ReplyReader&&) noexcept;
  ReplyReader& operator=(ReplyReader&&) noexcept;

  // Adds bytes from the server, split at any place; copies them.
  void feed(std::string_view bytes);
  // Returns the next reply; nullopt if more bytes are needed, or if the bytes are not a reply. In the
  // second case error() has the reason, and the reader reads no more.
  std::optional<Value> next();
  // Returns the error; empty if there is none.
  const std::string& error() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;  // hiredis keeps its address
};

}  // namespace holdfast::client
