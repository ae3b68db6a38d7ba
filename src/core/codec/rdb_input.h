// The bytes of one item of an RDB file, as the parts of RdbReader read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/codec/lzf.h"
#include "core/codec/rdb_packed.h"
#include "core/codec/rdb_reader.h"

namespace holdfast {

// The received bytes of the present item. A read beyond them sets short_of_bytes(), as does a text that is
// not yet unpacked completely; an invalid value sets wrong().
class RdbReader::Input {
 public:
  static constexpr std::string_view kNoRoom = "no memory for the value";

  Input(RdbReader& reader, std::string_view bytes) : reader_(reader), bytes_(bytes) {}

  bool short_of_bytes() const { return short_; }
  const std::string& wrong() const { return wrong_; }
  size_t used() const { return used_; }
  size_t wanted() const { return wanted_; }  // bytes needed in all, if too few are there

  std::string_view take(uint64_t n) {
    if (!short_ && n > bytes_.size() - used_) wanted_ = used_ + n;
    if (short_ || wanted_ > 0) return short_ = true, std::string_view{};
    used_ += n;
    return bytes_.substr(used_ - n, n);
  }
  uint8_t u8() {
    const std::string_view byte = take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  uint64_t low_first(size_t n) {
    const std::string_view bytes = take(n);
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  // Whether an item can be processed: it is complete and not wrong.
  bool good() const { return !short_ && wrong_.empty(); }
  // Reads a length or, if it sets `special`, the encoding of a text without a length.
  uint64_t length(bool& special) {
    const uint8_t first = u8();
    special = (first >> 6U) == 3;
    if (special || (first >> 6U) == 0) return first & 0x3FU;
    if ((first >> 6U) == 1) return (uint64_t{first & 0x3FU} << 8U) | u8();
    if (first == 0x80) return high_first(4);
    if (first == 0x81) return high_first(8);
    wrong("unknown encoding of a length");
    return 0;
  }
  uint64_t length() {
    bool special = false;
    const uint64_t n = length(special);
    if (special) wrong("expected a length");
    return n;
  }
  // Reads a text. `unpacked` has it if it is compressed, also when the item is read again.
  std::string_view text(LzfText& unpacked) {
    bool special = false;
    const uint64_t n = length(special);
    if (short_ || !wrong_.empty()) return {};
    if (!special) return n > kMaxTextBytes ? wrong("a string of more than 512 MiB") : take(n);
    if (n == 3) return compressed_text(unpacked);
    if (n > 3) return wrong("unknown encoding of a string");
    const unsigned bytes = 1U << static_cast<unsigned>(n);
    const unsigned unused = 64 - 8 * bytes;
    return reader_.numbers_.text_of(static_cast<int64_t>(low_first(bytes) << unused) >> unused);
  }
  std::string_view wrong(std::string_view why) {
    if (wrong_.empty() && !short_) wrong_ = why;
    return {};
  }

 private:
  uint64_t high_first(size_t n) {
    uint64_t value = 0;
    for (const char c : take(n)) value = (value << 8U) | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view compressed_text(LzfText& unpacked) {
    const uint64_t packed = length();
    const uint64_t size = length();
    if (packed > kMaxTextBytes || size > kMaxTextBytes) return wrong("a string of more than 512 MiB");
    const std::string_view bytes = take(packed);
    if (short_) return {};
    if (!unpacked.begun()) {
      if (!reader_.sink_.has_room(size)) return wrong(kNoRoom);
      if (!unpacked.begin(packed, size)) return wrong(kDamaged);
    }
    if (!unpacked.step(bytes, reader_.effort_)) return wrong(kDamaged);
    if (!unpacked.ended()) return short_ = true, std::string_view{};
    return unpacked.view();
  }

  static constexpr std::string_view kDamaged = "a compressed string is damaged";
  RdbReader& reader_;
  std::string_view bytes_;
  size_t used_ = 0;
  size_t wanted_ = 0;
  bool short_ = false;
  std::string wrong_;
};

}  // namespace holdfast
