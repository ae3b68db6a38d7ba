// The packed lists, as Redis's listpack.c, intset.c, ziplist.c and zipmap.c describe them; LZF by liblzf.
#include "core/codec/rdb_packed.h"

#include <liblzf/lzf.h>

#include <optional>

namespace holdfast {

namespace {

constexpr uint8_t kEndByte = 0xFF;

// Reads bytes from the front. After a read beyond the end, good() is false and values are 0.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : rest_(bytes) {}

  bool good() const { return good_; }
  size_t left() const { return rest_.size(); }
  uint8_t peek() { return rest_.empty() ? bad() : static_cast<uint8_t>(rest_[0]); }
  std::string_view take(uint64_t n) {
    if (n > rest_.size()) return bad(), std::string_view{};
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  uint64_t low_first(size_t n) {
    const std::string_view bytes = take(n);
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  uint64_t high_first(size_t n) {
    uint64_t value = 0;
    for (const char c : take(n)) value = (value << 8U) | static_cast<uint8_t>(c);
    return value;
  }
  int64_t integer(size_t n) {
    const unsigned unused = 64 - 8 * static_cast<unsigned>(n);
    return static_cast<int64_t>(low_first(n) << unused) >> unused;
  }
  uint8_t bad() {
    good_ = false;
    rest_ = {};
    return 0;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

// Returns the size of the length that closes a listpack's element. From two bytes on, Redis uses the next
// size one value early: 16383 would fit in two bytes and takes three.
size_t back_length_bytes(uint64_t n) {
  if (n <= 127) return 1;
  size_t bytes = 2;
  for (uint64_t most = (1U << 14U) - 1; bytes < 5 && n >= most; most = (most << 7U) | 0x7FU) ++bytes;
  return bytes;
}

// Reads one element. Returns nullopt if its encoding is unknown.
std::optional<std::string> listpack_element(Bytes& in) {
  const uint8_t b = in.peek();
  if ((b & 0x80U) == 0) return std::to_string(in.low_first(1));
  if ((b & 0xC0U) == 0x80) return std::string(in.take(in.low_first(1) & 0x3FU));
  if ((b & 0xE0U) == 0xC0) {
    const auto n = static_cast<int64_t>(in.high_first(2) & 0x1FFFU);
    return std::to_string(n >= 1 << 12 ? n - (1 << 13) : n);
  }
  if ((b & 0xF0U) == 0xE0) return std::string(in.take(in.high_first(2) & 0xFFFU));
  in.take(1);
  switch (b) {
    case 0xF0:
      return std::string(in.take(in.low_first(4)));
    case 0xF1:
      return std::to_string(in.integer(2));
    case 0xF2:
      return std::to_string(in.integer(3));
    case 0xF3:
      return std::to_string(in.integer(4));
    case 0xF4:
      return std::to_string(in.integer(8));
    default:
      return std::nullopt;
  }
}

std::optional<std::string> ziplist_element(Bytes& in) {
  constexpr uint8_t kLongPrevious = 0xFE;
  in.take(in.peek() == kLongPrevious ? 5 : 1);  // the length of the element before
  const uint8_t b = in.peek();
  switch (b >> 6U) {
    case 0:
      return std::string(in.take(in.low_first(1) & 0x3FU));
    case 1:
      return std::string(in.take(in.high_first(2) & 0x3FFFU));
    case 2:
      in.take(1);
      return std::string(in.take(in.high_first(4)));
    default:
      in.take(1);
  }
  switch (b) {
    case 0xC0:
      return std::to_string(in.integer(2));
    case 0xD0:
      return std::to_string(in.integer(4));
    case 0xE0:
      return std::to_string(in.integer(8));
    case 0xF0:
      return std::to_string(in.integer(3));
    case 0xFE:
      return std::to_string(in.integer(1));
    default:
      if (b < 0xF1 || b > 0xFD) return std::nullopt;
      return std::to_string((b & 0x0FU) - 1);
  }
}

}  // namespace

bool read_listpack(std::string_view bytes, const EachText& each) {
  constexpr uint64_t kUncounted = 65535;
  Bytes in(bytes);
  const uint64_t size = in.low_first(4);
  const uint64_t count = in.low_first(2);
  if (!in.good() || size != bytes.size()) return false;
  uint64_t met = 0;
  for (; in.good() && in.peek() != kEndByte; ++met) {
    const size_t before = in.left();
    const auto element = listpack_element(in);
    if (!element || !in.good()) return false;
    in.take(back_length_bytes(before - in.left()));
    if (in.good() && !each(*element)) return false;
  }
  in.take(1);
  return in.good() && in.left() == 0 && (count == kUncounted || count == met);
}

bool read_ziplist(std::string_view bytes, const EachText& each) {
  constexpr uint64_t kUncounted = 65535;
  Bytes in(bytes);
  const uint64_t size = in.low_first(4);
  in.take(4);  // the position of the last element
  const uint64_t count = in.low_first(2);
  if (!in.good() || size != bytes.size()) return false;
  uint64_t met = 0;
  for (; in.good() && in.peek() != kEndByte; ++met) {
    const auto element = ziplist_element(in);
    if (!element || !in.good() || !each(*element)) return false;
  }
  in.take(1);
  return in.good() && in.left() == 0 && (count == kUncounted || count == met);
}

// The size of an integer, their number, and the integers.
bool read_intset(std::string_view bytes, const EachText& each) {
  Bytes in(bytes);
  const uint64_t size = in.low_first(4);
  const uint64_t count = in.low_first(4);
  const bool fits = (size == 2 || size == 4 || size == 8) && in.left() == count * size;
  if (!in.good() || !fits) return false;
  for (uint64_t n = 0; n < count; ++n) {
    if (!each(std::to_string(in.integer(size)))) return false;
  }
  return true;
}

// Each pair: a length and the field, a length, the number of unused bytes, the value and the unused bytes.
bool read_zipmap(std::string_view bytes, const EachText& each) {
  constexpr uint8_t kLongLength = 254;
  Bytes in(bytes);
  const auto length = [&]() -> uint64_t {
    if (in.peek() < kLongLength) return in.low_first(1);
    in.take(1);
    return in.low_first(4);
  };
  in.take(1);  // the number of pairs, if it is small
  while (in.good() && in.peek() != kEndByte) {
    const std::string_view field = in.take(length());
    const uint64_t size = in.good() && in.peek() != kEndByte ? length() : in.bad();
    const uint64_t unused = in.low_first(1);
    const std::string_view value = in.take(size);
    in.take(unused);
    if (!in.good() || !each(field) || !each(value)) return false;
  }
  in.take(1);
  return in.good() && in.left() == 0;
}

// A text larger than LZF can pack into those bytes is rejected before memory is allocated.
bool unpack_lzf(std::string_view packed, uint64_t size, std::string& out) {
  constexpr uint64_t kMostByByte = 264;
  if (packed.empty() || size == 0 || size > packed.size() * kMostByByte) return false;
  out.resize(size);
  return lzf_decompress(packed.data(), static_cast<unsigned>(packed.size()), out.data(),
                        static_cast<unsigned>(size)) == size;
}

}  // namespace holdfast
