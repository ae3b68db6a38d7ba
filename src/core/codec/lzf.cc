// The grammar, as in liblzf: a text is a sequence of tokens. A first byte below 32 stands before that many
// literal bytes + 1. Another one begins a reference: its upper 3 bits are the length - 2; 7 means that the
// next byte adds to it. The lower 5 bits and the following byte are the distance - 1, high bits first.
#include "core/codec/lzf.h"

#include <algorithm>
#include <cstring>

namespace holdfast {

namespace {

// A byte of a token makes at most so many, of which a token of 3 bytes makes 264.
constexpr uint64_t kMostByByte = 88;

// Repeats the last `distance` bytes before `to`. If they are fewer than `n`, what was written is a part of
// them: each copy doubles it.
void repeat(char* to, size_t distance, size_t n) {
  const char* const from = to - distance;
  while (n > 0) {
    const size_t part = std::min(n, static_cast<size_t>(to - from));
    std::memcpy(to, from, part);
    to += part;
    n -= part;
  }
}

}  // namespace

bool LzfText::begin(size_t packed, uint64_t size) {
  clear();
  if (packed == 0 || size == 0 || size > packed * kMostByByte) return false;
  // Exactly what it needs, and at once: a buffer that grows copies its bytes.
  bytes_.set_limit(size);
  bytes_.reserve(size);
  size_ = size;
  return true;
}

bool LzfText::step(std::string_view packed, size_t& effort) {
  if (ended_) return true;
  char* const out = bytes_.reserve(size_ - bytes_.size());
  const size_t left = size_ - bytes_.size();
  const size_t most = effort < left / kUnitBytes ? effort * kUnitBytes : left;
  size_t unpacked = 0;
  while (used_ < packed.size() && (unpacked < most || most == left)) {
    if (!unpack_token(packed, out, unpacked)) return false;
  }
  bytes_.commit(unpacked);
  effort -= std::min(effort, unpacked / kUnitBytes + 1);
  ended_ = used_ == packed.size();
  return !ended_ || bytes_.size() == size_;
}

// Unpacks one token to `out` behind the bytes that the present step has unpacked.
bool LzfText::unpack_token(std::string_view packed, char* out, size_t& unpacked) {
  const size_t left = size_ - bytes_.size() - unpacked;
  const auto next = [&] { return static_cast<uint8_t>(packed[used_++]); };
  const size_t first = next();
  if (first < 32) {
    const size_t n = first + 1;
    if (n > packed.size() - used_ || n > left) return false;
    std::memcpy(out + unpacked, packed.data() + used_, n);
    used_ += n;
    unpacked += n;
    return true;
  }
  size_t n = (first >> 5U) + 2;
  if (packed.size() - used_ < (n == 9 ? 2U : 1U)) return false;
  if (n == 9) n += next();
  const size_t distance = ((first & 31U) << 8U) + next() + 1;
  if (n > left || distance > bytes_.size() + unpacked) return false;
  repeat(out + unpacked, distance, n);
  unpacked += n;
  return true;
}

void LzfText::clear() {
  bytes_.clear();
  size_ = 0;
  used_ = 0;
  ended_ = false;
}

}  // namespace holdfast
