// The packed lists, as Redis's listpack.c, intset.c, ziplist.c and zipmap.c describe them.
#include "core/codec/rdb_packed.h"

#include <charconv>
#include <utility>

namespace holdfast {

namespace {

constexpr uint8_t kEndByte = 0xFF;
constexpr uint64_t kUncounted = 65535;  // a listpack or ziplist with at least so many elements

// Returns the size of the length that closes a listpack's element. From two bytes on, Redis uses the next
// size one value early: 16383 would fit in two bytes and takes three.
size_t back_length_bytes(uint64_t n) {
  if (n <= 127) return 1;
  size_t bytes = 2;
  for (uint64_t most = (1U << 14U) - 1; bytes < 5 && n >= most; most = (most << 7U) | 0x7FU) ++bytes;
  return bytes;
}

}  // namespace

std::string_view DecimalTexts::text_of(int64_t n) {
  char* const text = bytes_[next_++ % kTexts];
  return {text, static_cast<size_t>(std::to_chars(text, text + sizeof bytes_[0], n).ptr - text)};
}

std::string_view PackedBytes::take(uint64_t n) {
  if (n > rest_.size()) return bad(), std::string_view{};
  const std::string_view taken = rest_.substr(0, n);
  rest_.remove_prefix(n);
  return taken;
}

uint64_t PackedBytes::low_first(size_t n) {
  const std::string_view bytes = take(n);
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<uint8_t>(bytes[i]);
  return value;
}

uint64_t PackedBytes::high_first(size_t n) {
  uint64_t value = 0;
  for (const char c : take(n)) value = (value << 8U) | static_cast<uint8_t>(c);
  return value;
}

int64_t PackedBytes::integer(size_t n) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(n);
  return static_cast<int64_t>(low_first(n) << unused) >> unused;
}

PackedList::PackedList(Form form, std::string_view bytes) : form_(form), in_(bytes) {
  if (form == Form::kZipmap) {
    in_.take(1);  // the number of pairs, if it is small
  } else if (form == Form::kIntset) {
    number_size_ = in_.low_first(4);
    count_ = in_.low_first(4);
    const bool known = number_size_ == 2 || number_size_ == 4 || number_size_ == 8;
    if (!known || in_.left() != count_ * number_size_) in_.bad();
  } else {
    const uint64_t size = in_.low_first(4);
    if (form == Form::kZiplist) in_.take(4);  // the position of the last element
    count_ = in_.low_first(2);
    if (size != bytes.size()) in_.bad();
  }
}

std::optional<std::string_view> PackedList::next() {
  if (!in_.good() || complete_) return std::nullopt;
  switch (form_) {
    case Form::kListpack:
      return listpack_next();
    case Form::kZiplist:
      return ziplist_next();
    case Form::kIntset:
      return intset_next();
    case Form::kZipmap:
      return zipmap_next();
  }
  return std::nullopt;
}

// Whether the end byte comes next. Then the list is complete, if the byte is the last one and all elements
// were there.
bool PackedList::at_end() {
  if (in_.peek() != kEndByte) return false;
  in_.take(1);
  const bool counted = form_ != Form::kZipmap && count_ != kUncounted;
  complete_ = in_.left() == 0 && (!counted || count_ == met_);
  if (!complete_) in_.bad();
  return true;
}

PackedList::Element PackedList::listpack_next() {
  if (at_end()) return std::nullopt;
  const size_t before = in_.left();
  const Element element = listpack_element();
  in_.take(back_length_bytes(before - in_.left()));
  if (!element || !in_.good()) return in_.bad(), std::nullopt;
  ++met_;
  return element;
}

// Returns nullopt if its encoding is unknown.
PackedList::Element PackedList::listpack_element() {
  const uint8_t b = in_.peek();
  if ((b & 0x80U) == 0) return number(static_cast<int64_t>(in_.low_first(1)));
  if ((b & 0xC0U) == 0x80) return in_.take(in_.low_first(1) & 0x3FU);
  if ((b & 0xE0U) == 0xC0) {
    const auto n = static_cast<int64_t>(in_.high_first(2) & 0x1FFFU);
    return number(n >= 1 << 12 ? n - (1 << 13) : n);
  }
  if ((b & 0xF0U) == 0xE0) return in_.take(in_.high_first(2) & 0xFFFU);
  in_.take(1);
  switch (b) {
    case 0xF0:
      return in_.take(in_.low_first(4));
    case 0xF1:
      return number(in_.integer(2));
    case 0xF2:
      return number(in_.integer(3));
    case 0xF3:
      return number(in_.integer(4));
    case 0xF4:
      return number(in_.integer(8));
    default:
      return std::nullopt;
  }
}

PackedList::Element PackedList::ziplist_next() {
  if (at_end()) return std::nullopt;
  const Element element = ziplist_element();
  if (!element || !in_.good()) return in_.bad(), std::nullopt;
  ++met_;
  return element;
}

PackedList::Element PackedList::ziplist_element() {
  constexpr uint8_t kLongPrevious = 0xFE;
  in_.take(in_.peek() == kLongPrevious ? 5 : 1);  // the length of the element before
  const uint8_t b = in_.peek();
  switch (b >> 6U) {
    case 0:
      return in_.take(in_.low_first(1) & 0x3FU);
    case 1:
      return in_.take(in_.high_first(2) & 0x3FFFU);
    case 2:
      in_.take(1);
      return in_.take(in_.high_first(4));
    default:
      in_.take(1);
  }
  switch (b) {
    case 0xC0:
      return number(in_.integer(2));
    case 0xD0:
      return number(in_.integer(4));
    case 0xE0:
      return number(in_.integer(8));
    case 0xF0:
      return number(in_.integer(3));
    case 0xFE:
      return number(in_.integer(1));
    default:
      if (b < 0xF1 || b > 0xFD) return std::nullopt;
      return number((b & 0x0FU) - 1);
  }
}

// The size of an integer, their number, and the integers.
PackedList::Element PackedList::intset_next() {
  complete_ = met_ == count_;
  if (complete_) return std::nullopt;
  ++met_;
  return number(in_.integer(number_size_));
}

// Each pair: a length and the field, a length, the number of unused bytes, the value and the unused bytes.
PackedList::Element PackedList::zipmap_next() {
  constexpr uint8_t kLongLength = 254;
  if (value_) return std::exchange(value_, std::nullopt);
  if (at_end()) return std::nullopt;
  const auto length = [&]() -> uint64_t {
    if (in_.peek() < kLongLength) return in_.low_first(1);
    in_.take(1);
    return in_.low_first(4);
  };
  const std::string_view field = in_.take(length());
  const uint64_t size = in_.good() && in_.peek() != kEndByte ? length() : in_.bad();
  const uint64_t unused = in_.low_first(1);
  value_ = in_.take(size);
  in_.take(unused);
  if (!in_.good()) return value_.reset(), std::nullopt;
  return field;
}

}  // namespace holdfast
