// A run of list elements in one block of memory, in Redis's listpack format without its header and its end:
// each entry has a head (its type and length), its text, and its length once more, so that a walk may go
// both ways. Integers are packed as such. A text has only one encoding, so equal elements have equal
// entries.
//
// A ListChunk is a handle. A copy of it shares the block; the first change of a shared block copies it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include <absl/container/inlined_vector.h>

namespace holdfast {

// The entry of an element, as a chunk stores it.
class PackedElement {
 public:
  explicit PackedElement(std::string_view text);
  std::string_view bytes() const { return {bytes_.data(), bytes_.size()}; }

 private:
  absl::InlinedVector<char, 128> bytes_;
};

// Room for the text of an element that is packed as an integer.
using ElementDigits = std::array<char, 20>;

class ListChunk {
 public:
  // A chunk with more than one element has at most so many bytes. Redis's default is the same.
  static constexpr size_t kMostBytes = 8192;

  ListChunk() = default;
  ListChunk(const ListChunk& o);
  ListChunk(ListChunk&& o) noexcept
      : block_(std::exchange(o.block_, nullptr)),
        count_(std::exchange(o.count_, 0)),
        used_(std::exchange(o.used_, 0)) {}
  ListChunk& operator=(ListChunk o) noexcept {
    std::swap(block_, o.block_);
    std::swap(count_, o.count_);
    std::swap(used_, o.used_);
    return *this;
  }
  ~ListChunk();

  size_t count() const { return count_; }
  size_t used() const { return used_; }  // bytes of all entries
  std::string_view entries() const;
  uint64_t memory() const;  // bytes of the block, with the allocator's overhead
  bool has_room_for(size_t bytes) const { return used_ == 0 || used_ + bytes <= kMostBytes; }

  // An element is named by the offset of its entry. used() is the offset behind the last one.
  size_t offset_of(size_t index) const;
  size_t next(size_t offset) const;
  size_t previous(size_t offset) const;
  // The view is valid until the chunk or `digits` change.
  std::string_view get(size_t offset, ElementDigits& digits) const;
  bool equals(size_t offset, std::string_view entry) const;

  // `entries` are `count` whole entries.
  void insert(size_t offset, std::string_view entries, size_t count = 1);
  void erase(size_t begin, size_t end, size_t count);
  size_t count_equal(std::string_view entry) const;
  // Erases elements with this entry, but not the first `skip` of them, and at most `most`.
  size_t erase_equal(std::string_view entry, size_t skip, size_t most);
  // Returns the unused memory of a chunk that is not expected to grow.
  void shrink();

  void check_invariants() const;

 private:
  struct Block;
  const char* data() const;
  char* make_room(size_t bytes);
  void resize_block(size_t capacity);
  void drop_surplus();

  Block* block_ = nullptr;
  uint32_t count_ = 0;
  uint32_t used_ = 0;
};

}  // namespace holdfast
