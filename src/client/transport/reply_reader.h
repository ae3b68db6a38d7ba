// Replies out of bytes: hiredis' reader, made to build Values itself and to keep limits.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/value.h"

namespace holdfast::client {

// Of one reply, with all that is in it. What a server only announces must not cost memory, nor may one that
// sends without end.
struct ReplyLimits {
  size_t elements = size_t{1} << 20;
  size_t bytes = size_t{512} << 20;
  size_t line_bytes = size_t{64} << 10;  // of a status, an error, or the length of a bulk
};

class ReplyReader {
 public:
  explicit ReplyReader(const ReplyLimits& limits = {});
  ~ReplyReader();
  ReplyReader(ReplyReader&&) noexcept;
  ReplyReader& operator=(ReplyReader&&) noexcept;

  // Takes what the server sent, cut in any way; it is copied.
  void feed(std::string_view bytes);
  // The next reply. None: it needs more bytes, or what came is none, as error() says; nothing is read then
  // any more.
  std::optional<Value> next();
  // Empty: there is none.
  const std::string& error() const;

 private:
  struct Core;
  std::unique_ptr<Core> core_;  // hiredis keeps its address
};

}  // namespace holdfast::client
