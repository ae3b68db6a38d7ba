// Numbers and texts in the form of the journal and the snapshot: low byte first, lengths in as few bytes as
// possible. The reader never goes beyond the end of the bytes, whatever they contain.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

inline void put_u8(std::string& out, uint8_t n) { out.push_back(static_cast<char>(n)); }

// Seven bits a byte, the lowest first. The top bit is set if more bytes follow.
inline void put_number(std::string& out, uint64_t n) {
  char bytes[10];
  size_t size = 0;
  for (; n >= 0x80; n >>= 7U) bytes[size++] = static_cast<char>((n & 0x7FU) | 0x80U);
  bytes[size++] = static_cast<char>(n);
  out.append(bytes, size);
}

inline void put_text(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out.append(text);
}

// A number of as many bytes as its type has. read_at() needs that many bytes from `at` on.
template <class T>
void put_fixed(std::string& out, T n) {
  for (size_t i = 0; i < sizeof n; ++i) out.push_back(static_cast<char>((n >> (8 * i)) & 0xFFU));
}
template <class T>
T read_at(std::string_view bytes, size_t at) {
  T n = 0;
  for (size_t i = sizeof n; i-- > 0;) n = (n << 8U) | static_cast<uint8_t>(bytes[at + i]);
  return n;
}

// Reads the values that the put functions wrote. After the first value that is missing or invalid, all
// results are 0 or empty, and ok() is false.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

  uint8_t u8() {
    const std::string_view byte = take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  uint64_t number() {
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const uint8_t byte = u8();
      n |= uint64_t{byte & 0x7FU} << shift;
      if ((byte & 0x80U) == 0) return ok_ ? n : 0;
    }
    return fail();
  }
  std::string_view text() { return take(number()); }
  template <class T>
  T fixed() {
    const std::string_view bytes = take(sizeof(T));
    return bytes.empty() ? T{0} : read_at<T>(bytes, 0);
  }

 private:
  std::string_view take(uint64_t size) {
    if (!ok_ || size > rest_.size()) return fail(), std::string_view{};
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }
  uint64_t fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace holdfast
