// The entries of a listpack, and the memory of chunks; see list_chunk.h.
//
//   head                       text
//   0xxxxxxx                   an integer of 7 bits without a sign
//   10xxxxxx                   up to 63 bytes
//   110xxxxx xxxxxxxx          an integer of 13 bits
//   1110xxxx xxxxxxxx          up to 4095 bytes
//   11110000, 4 bytes          more bytes
//   11110001 to 11110100       an integer of 2, 3, 4 or 8 bytes
//
// The length at the end counts head and text; its first byte is the highest, and all bytes but that one
// have the high bit set.
#include "core/keyspace/list_chunk.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <new>

#include "core/base/parse.h"

namespace holdfast {

struct ListChunk::Block {
  uint32_t refs;
  uint32_t capacity;
  char* bytes() { return reinterpret_cast<char*>(this + 1); }
};

namespace {

constexpr unsigned char kText12 = 0xe0, kText32 = 0xf0, kInt16 = 0xf1, kInt64 = 0xf4;

uint64_t read_low_first(const char* at, size_t bytes) {
  uint64_t n = 0;
  for (size_t i = 0; i < bytes; ++i) n |= uint64_t{static_cast<unsigned char>(at[i])} << (8 * i);
  return n;
}

int64_t read_signed(const char* at, size_t bytes) {
  const unsigned unused = 64 - 8 * static_cast<unsigned>(bytes);
  return static_cast<int64_t>(read_low_first(at, bytes) << unused) >> unused;
}

// The head of an entry, and what follows it.
struct Head {
  size_t head_bytes;
  size_t text_bytes;  // of a text; 0 for an integer
  bool is_integer;
  int64_t integer;
};

Head read_head(const char* at) {
  const auto first = static_cast<unsigned char>(at[0]);
  if (first < 0x80) return {1, 0, true, first};
  if (first < 0xc0) return {1, first & 0x3fU, false, 0};
  if (first < kText12) {
    const unsigned bits = (first & 0x1fU) << 8U | static_cast<unsigned char>(at[1]);
    return {2, 0, true, static_cast<int64_t>(bits) - (bits < 0x1000 ? 0 : 0x2000)};
  }
  if (first < kText32) return {2, (first & 0x0fU) << 8U | static_cast<unsigned char>(at[1]), false, 0};
  if (first == kText32) return {5, read_low_first(at + 1, 4), false, 0};
  const size_t bytes = first == kInt64 ? 8 : size_t{first} - kInt16 + 2;
  return {1 + bytes, 0, true, read_signed(at + 1, bytes)};
}

constexpr size_t length_bytes(size_t n) {
  size_t bytes = 1;
  for (; n >= 0x80; n >>= 7U) ++bytes;
  return bytes;
}

size_t entry_bytes(const char* at) {
  const Head head = read_head(at);
  const size_t n = head.head_bytes + head.text_bytes;
  return n + length_bytes(n);
}

template <class Out>
void put_low_first(Out& out, uint64_t n, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(n >> (8 * i)));
}

template <class Out>
void put_integer(Out& out, int64_t n) {
  const auto fits = [n](unsigned bits) {
    return n >= -(int64_t{1} << (bits - 1)) && n < int64_t{1} << (bits - 1);
  };
  const auto bits = static_cast<uint64_t>(n);
  if (n >= 0 && n < 0x80) return out.push_back(static_cast<char>(n));
  if (fits(13)) {
    out.push_back(static_cast<char>(0xc0U | (bits >> 8U & 0x1fU)));
    return out.push_back(static_cast<char>(bits));
  }
  const size_t bytes = fits(16) ? 2 : fits(24) ? 3 : fits(32) ? 4 : 8;
  out.push_back(static_cast<char>(bytes == 8 ? kInt64 : kInt16 + bytes - 2));
  put_low_first(out, bits, bytes);
}

template <class Out>
void put_text(Out& out, std::string_view text) {
  const size_t n = text.size();
  if (n < 0x40) {
    out.push_back(static_cast<char>(0x80U | n));
  } else if (n < 0x1000) {
    out.push_back(static_cast<char>(kText12 | n >> 8U));
    out.push_back(static_cast<char>(n));
  } else {
    out.push_back(static_cast<char>(kText32));
    put_low_first(out, n, 4);
  }
  out.insert(out.end(), text.begin(), text.end());
}

// The allocator's overhead of a block.
constexpr uint64_t kAllocatorBytes = 8;

}  // namespace

PackedElement::PackedElement(std::string_view text) {
  constexpr size_t kMostDigits = std::tuple_size_v<ElementDigits>;
  const auto number = text.size() <= kMostDigits ? parse_int(text) : std::nullopt;
  number ? put_integer(bytes_, *number) : put_text(bytes_, text);
  const size_t n = bytes_.size();
  for (size_t i = length_bytes(n); i-- > 0;) {
    const size_t part = n >> (7 * i) & 0x7fU;
    bytes_.push_back(static_cast<char>(i + 1 == length_bytes(n) ? part : part | 0x80U));
  }
}

ListChunk::ListChunk(const ListChunk& o) : block_(o.block_), count_(o.count_), used_(o.used_) {
  if (block_ != nullptr) ++block_->refs;
}

ListChunk::~ListChunk() {
  if (block_ != nullptr && --block_->refs == 0) std::free(block_);
}

const char* ListChunk::data() const { return block_ == nullptr ? nullptr : block_->bytes(); }
std::string_view ListChunk::entries() const { return {data(), used_}; }
uint64_t ListChunk::memory() const {
  return block_ == nullptr ? 0 : sizeof(Block) + block_->capacity + kAllocatorBytes;
}

// Moves the entries to a block of this capacity, which no other chunk shares.
void ListChunk::resize_block(size_t capacity) {
  assert(capacity >= used_);
  const bool shared = block_ != nullptr && block_->refs > 1;
  auto* made = static_cast<Block*>(std::realloc(shared ? nullptr : block_, sizeof(Block) + capacity));
  if (made == nullptr) throw std::bad_alloc();
  if (shared) {
    std::memcpy(made->bytes(), block_->bytes(), used_);
    --block_->refs;
  }
  made->refs = 1;
  made->capacity = static_cast<uint32_t>(capacity);
  block_ = made;
}

// Makes the block the chunk's own, with room for `bytes` more. A chunk grows by a half, as clients usually
// push more than one element.
char* ListChunk::make_room(size_t bytes) {
  constexpr size_t kLeastBytes = 24;  // with the header and the overhead a block of 40 bytes
  const size_t size = used_ + bytes;
  const bool fits = block_ != nullptr && size <= block_->capacity;
  if (!fits) {
    resize_block(std::max({kLeastBytes, size, std::min(size + size / 2, kMostBytes)}));
  } else if (block_->refs > 1) {
    resize_block(block_->capacity);
  }
  return block_->bytes();
}

void ListChunk::shrink() {
  if (block_ != nullptr && block_->refs == 1 && block_->capacity > used_) resize_block(used_);
}

// Returns memory if less than half of the block is in use.
void ListChunk::drop_surplus() {
  constexpr size_t kSmallBytes = 64;
  if (block_->capacity > kSmallBytes && used_ < block_->capacity / 2) resize_block(used_);
}

size_t ListChunk::next(size_t offset) const { return offset + entry_bytes(data() + offset); }

size_t ListChunk::previous(size_t offset) const {
  size_t bytes = 0;
  size_t length = 0;
  for (;;) {
    const auto byte = static_cast<unsigned char>(data()[offset - 1 - bytes]);
    length |= size_t{byte & 0x7fU} << (7 * bytes++);
    if (byte < 0x80) return offset - bytes - length;
  }
}

size_t ListChunk::offset_of(size_t index) const {
  assert(index <= count_);
  if (index <= count_ / 2) {
    size_t offset = 0;
    for (; index > 0; --index) offset = next(offset);
    return offset;
  }
  size_t offset = used_;
  for (; index < count_; ++index) offset = previous(offset);
  return offset;
}

std::string_view ListChunk::get(size_t offset, ElementDigits& digits) const {
  const char* const at = data() + offset;
  const Head head = read_head(at);
  if (!head.is_integer) return {at + head.head_bytes, head.text_bytes};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), head.integer).ptr;
  return {digits.data(), static_cast<size_t>(end - digits.data())};
}

bool ListChunk::equals(size_t offset, std::string_view entry) const {
  return used_ - offset >= entry.size() && std::memcmp(data() + offset, entry.data(), entry.size()) == 0;
}

void ListChunk::insert(size_t offset, std::string_view entries, size_t count) {
  char* const at = make_room(entries.size()) + offset;
  std::memmove(at + entries.size(), at, used_ - offset);
  std::memcpy(at, entries.data(), entries.size());
  used_ += static_cast<uint32_t>(entries.size());
  count_ += static_cast<uint32_t>(count);
}

void ListChunk::erase(size_t begin, size_t end, size_t count) {
  char* const bytes = make_room(0);
  std::memmove(bytes + begin, bytes + end, used_ - end);
  used_ -= static_cast<uint32_t>(end - begin);
  count_ -= static_cast<uint32_t>(count);
  drop_surplus();
}

size_t ListChunk::count_equal(std::string_view entry) const {
  size_t n = 0;
  for (size_t at = 0; at < used_; at = next(at)) n += equals(at, entry) ? 1 : 0;
  return n;
}

size_t ListChunk::erase_equal(std::string_view entry, size_t skip, size_t most) {
  size_t erased = 0;
  for (size_t at = 0; at < used_ && erased < most;) {
    if (!equals(at, entry) || (skip > 0 && skip-- > 0)) {
      at = next(at);
      continue;
    }
    char* const bytes = make_room(0);
    std::memmove(bytes + at, bytes + at + entry.size(), used_ - at - entry.size());
    used_ -= static_cast<uint32_t>(entry.size());
    --count_;
    ++erased;
  }
  if (erased > 0) drop_surplus();
  return erased;
}

void ListChunk::check_invariants() const {
  assert(block_ != nullptr || used_ == 0);
  assert(block_ == nullptr || used_ <= block_->capacity);
  assert(count_ <= 1 || used_ <= kMostBytes);
  size_t n = 0;
  size_t at = 0;
  for (; at < used_; ++n) {
    const size_t behind = next(at);
    assert(previous(behind) == at);
    at = behind;
  }
  assert(n == count_ && at == used_);
}

}  // namespace holdfast
