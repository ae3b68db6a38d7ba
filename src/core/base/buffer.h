// A growable run of bytes with a read position: unparsed input or unsent output of a connection. Owns its
// memory, and does not initialise new memory. Views into it are valid until the next call that may grow it.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

namespace holdfast {

class Buffer {
 public:
  // The allocator maps blocks of this size anew from the system each time: see server.cc.
  static constexpr size_t kLarge = size_t{256} << 10U;
  static constexpr size_t kUnlimited = SIZE_MAX / 2;

  Buffer() = default;
  Buffer(Buffer&& o) noexcept { swap(o); }
  Buffer& operator=(Buffer&& o) noexcept {
    swap(o);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { reset(0); }

  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  size_t capacity() const { return capacity_; }
  const char* data() const { return data_ + begin_; }
  std::string_view view() const { return {data_ + begin_, size()}; }

  // Returns room for at least `n` more bytes: the caller fills it, then calls commit(). Returns null if
  // this would exceed the limit; then only overflowed() changes.
  char* reserve(size_t n) {
    if (capacity_ - end_ < n) return grow(n);
    return data_ + end_;
  }
  size_t room() const { return capacity_ - end_; }
  void commit(size_t n) {
    assert(n <= room());
    end_ += n;
  }

  void append(std::string_view s) {
    if (s.empty()) return;
    char* const to = reserve(s.size());
    if (to == nullptr) return;
    std::memcpy(to, s.data(), s.size());
    end_ += s.size();
  }
  void push_back(char c) {
    char* const to = reserve(1);
    if (to == nullptr) return;
    *to = c;
    ++end_;
  }

  // Sets the most bytes that it may hold; there is no limit by default. Bytes beyond the limit are dropped
  // before they take memory, and the content is then incomplete. swap() does not exchange the limit.
  void set_limit(size_t bytes) { limit_ = bytes; }
  size_t limit() const { return limit_; }
  // Whether bytes beyond the limit were appended since the last clear() or forget_overflow().
  bool overflowed() const { return overflowed_ || size() > limit_; }
  void mark_overflowed() { overflowed_ = true; }
  // Clears the overflow, if all dropped bytes would have been behind the bytes that are left.
  void forget_overflow() { overflowed_ = false; }

  // When it grows large, it takes the memory of `spare` if that suffices. Pages in recent use cost nothing;
  // fresh pages cost 0.2 to 0.7 us each. `spare` must outlive it; swap() does not exchange it.
  void borrow_from(Buffer* spare) { spare_ = spare; }

  // Counts its memory in `total` from now on. `total` must outlive it; swap() does not exchange it.
  void count_in(uint64_t* total) {
    total_ = total;
    *total_ += capacity_;
  }

  // Removes `n` bytes from the front.
  void consume(size_t n) {
    assert(n <= size());
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Truncates to `n` bytes, as if the rest had never been appended.
  void truncate(size_t n) {
    assert(n <= size());
    end_ = begin_ + n;
  }
  void clear() {
    begin_ = end_ = 0;
    overflowed_ = false;
  }
  // Empties it, and frees its memory if the capacity is over `keep` bytes.
  void reset(size_t keep) {
    clear();
    if (capacity_ <= keep) return;
    std::free(data_);
    data_ = nullptr;
    set_capacity(0);
  }
  // Empties it, and frees at most `bytes` of its memory: to free a large block at once would delay all
  // clients. Returns whether all memory is freed.
  bool release_some(size_t bytes) {
    clear();
    char* smaller =
        capacity_ > bytes ? static_cast<char*>(std::realloc(data_, capacity_ - bytes)) : nullptr;
    if (smaller == nullptr) {
      reset(0);
      return true;
    }
    data_ = smaller;
    set_capacity(capacity_ - bytes);
    return false;
  }
  // Gives its memory to the caller, who frees it by std::free(). No byte of it was consumed.
  [[nodiscard]] char* release() {
    assert(begin_ == 0);
    clear();
    set_capacity(0);
    return std::exchange(data_, nullptr);
  }
  void swap(Buffer& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(begin_, o.begin_);
    std::swap(end_, o.end_);
    const size_t capacity = capacity_;
    set_capacity(o.capacity_);
    o.set_capacity(capacity);
  }

 private:
  // Writers reserve a little more room than they use. With this slack, a reply that ends exactly at the
  // limit still fits, and overflowed() counts only the bytes that were really written.
  static constexpr size_t kSlack = 64;

  char* grow(size_t n) {
    const size_t most = limit_ + kSlack;
    if (n > most - std::min(size(), most)) {
      overflowed_ = true;
      return nullptr;
    }
    make_room(n);
    return data_ + end_;
  }

  void make_room(size_t n) {
    if (begin_ > 0 && begin_ >= capacity_ / 2) {  // mostly read: to move is cheaper than to grow
      std::memmove(data_, data_ + begin_, size());
      end_ -= begin_;
      begin_ = 0;
      if (capacity_ - end_ >= n) return;
    }
    if (spare_ != nullptr && end_ + n >= kLarge && spare_->capacity_ >= end_ + n) return take_spare();
    size_t wanted = capacity_ < 512 ? 512 : capacity_;
    while (wanted - end_ < n) wanted *= 2;
    wanted = std::max(end_ + n, std::min(wanted, begin_ + limit_));
    char* moved = static_cast<char*>(std::realloc(data_, wanted));
    if (moved == nullptr) throw std::bad_alloc();
    data_ = moved;
    set_capacity(wanted);
  }

  void set_capacity(size_t bytes) {
    if (total_ != nullptr) *total_ += bytes - capacity_;
    capacity_ = bytes;
  }

  void take_spare() {
    if (!empty()) std::memcpy(spare_->data_, data(), size());
    end_ = size();
    begin_ = 0;
    std::swap(data_, spare_->data_);
    const size_t capacity = capacity_;
    set_capacity(spare_->capacity_);
    spare_->capacity_ = capacity;
    spare_->reset(0);
  }

  char* data_ = nullptr;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t capacity_ = 0;
  size_t limit_ = kUnlimited;
  bool overflowed_ = false;
  Buffer* spare_ = nullptr;
  uint64_t* total_ = nullptr;
};

}  // namespace holdfast
