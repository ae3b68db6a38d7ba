// A text that LZF has packed, as Redis compresses strings. It is unpacked in steps, as a megabyte may
// become 88. Input is not trusted: damaged bytes give an error, never a read or write beyond the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/buffer.h"

namespace holdfast {

class LzfText {
 public:
  // What one unit of effort unpacks. It takes about 1 us.
  static constexpr size_t kUnitBytes = 512;

  // Begins a text of `size` bytes that are packed in `packed` bytes. Returns false, and allocates nothing,
  // if LZF cannot pack so much.
  [[nodiscard]] bool begin(size_t packed, uint64_t size);
  bool begun() const { return size_ > 0; }
  // Unpacks the next part, and reduces `effort` by what it takes. `packed` is the same at each step.
  // Returns false if it is damaged.
  [[nodiscard]] bool step(std::string_view packed, size_t& effort);
  // Whether all is unpacked: then the text is complete. Valid until clear().
  bool ended() const { return ended_; }
  std::string_view view() const { return bytes_.view(); }
  // Forgets the text, and keeps its memory for the next one.
  void clear();
  Buffer& memory() { return bytes_; }

 private:
  bool unpack_token(std::string_view packed, char* out, size_t& unpacked);

  Buffer bytes_;
  uint64_t size_ = 0;  // of the whole text; 0: none is begun
  size_t used_ = 0;    // of the packed bytes
  bool ended_ = false;
};

}  // namespace holdfast
