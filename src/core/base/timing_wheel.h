// A hierarchical timing wheel (Varghese and Lauck, 1987): add and remove in O(1), due items in steps that
// the caller limits. Intrusive: it owns 4 KiB of list heads and no item. 32-bit handles of at least
// kFirstItem name the items, and lists link them in both directions. A `prev` below kFirstItem is the
// bucket of the list's first item.
//
// Level l has 64 buckets of 64^l ms. The level of an item is the highest 6-bit digit in which its deadline
// differs from the wheel's position. So an item moves down at most once per level before it is due. The
// deadline of an item may move to a later time while the item stays where it is: at its old time the wheel
// moves it.
#pragma once

#include <array>
#include <bit>
#include <cassert>
#include <cstdint>
#include <optional>

#include "core/base/types.h"

namespace holdfast {

// Items: `uint32_t& next(uint32_t)`, `uint32_t& prev(uint32_t)`, `int64_t deadline_ms(uint32_t) const`.
template <class Items>
class TimingWheel {
 public:
  static constexpr uint32_t kLevels = 9;  // 54 bits of milliseconds
  static constexpr uint32_t kBuckets = kLevels * 64;
  static constexpr uint32_t kFirstItem = 4096;
  static constexpr size_t kAhead = 16;
  static_assert(kBuckets < kFirstItem);

  explicit TimingWheel(Items items) : items_(items) { heads_.fill(0); }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }

  void add(uint32_t item) {
    ++size_;
    link(item);
  }

  void remove(uint32_t item) {
    assert(size_ > 0);
    --size_;
    unlink(item);
  }

  // Calls `take` for items that are due at `now`; `take` must remove() the item before it returns. At most
  // `budget` items are taken or moved. Returns the rest of the budget; 0 means that the caller must call
  // again. Calls `look_ahead` with the first of a list of items at least each kAhead items.
  template <class Take, class LookAhead>
  size_t advance(TimeMs now, size_t budget, Take take, LookAhead look_ahead) {
    while (budget > 0 && position_ <= now.count) {
      if (size_ == 0) {
        position_ = now.count + 1;
        break;
      }
      budget = cascade(budget);
      if (budget == 0) break;
      uint32_t& head = heads_[bucket(0, position_)];
      for (size_t seen = 0; head != 0 && budget > 0; ++seen, --budget) {
        if (seen % kAhead == 0) look_ahead(head);
        items_.deadline_ms(head) > position_ ? move(head) : take(head);
      }
      if (head == 0) position_ = next_position(now.count + 1);
    }
    return budget;
  }

  // The earliest time at which advance() may have work: never later than the first deadline.
  std::optional<TimeMs> next_due() const {
    if (size_ == 0) return std::nullopt;
    for (uint32_t level = 0; level < kLevels; ++level) {
      if (heads_[bucket(level, position_)] != 0) return TimeMs{position_};
    }
    return TimeMs{next_position(kNever.count)};
  }

 private:
  static constexpr int64_t digit(uint32_t level, int64_t time) { return (time >> (6 * level)) & 63; }
  static constexpr uint32_t bucket(uint32_t level, int64_t time) {
    return level * 64 + static_cast<uint32_t>(digit(level, time));
  }

  void link(uint32_t item) {
    int64_t at = items_.deadline_ms(item);
    if (at < position_) at = position_;  // already due: the next advance() takes it
    const auto differ = static_cast<uint64_t>(at ^ position_);
    const uint32_t level = differ == 0 ? 0 : (static_cast<uint32_t>(std::bit_width(differ)) - 1) / 6;
    const uint32_t b = bucket(level, at);
    const uint32_t head = heads_[b];
    items_.next(item) = head;
    items_.prev(item) = b;
    if (head != 0) items_.prev(head) = item;
    heads_[b] = item;
    occupied_[level] |= uint64_t{1} << (b & 63);
  }

  void unlink(uint32_t item) {
    const uint32_t next = items_.next(item);
    const uint32_t prev = items_.prev(item);
    if (next != 0) items_.prev(next) = prev;
    if (prev >= kFirstItem) {
      items_.next(prev) = next;
      return;
    }
    heads_[prev] = next;
    if (next == 0) occupied_[prev / 64] &= ~(uint64_t{1} << (prev & 63));
  }

  // Moves an item to the bucket of its deadline.
  void move(uint32_t item) {
    unlink(item);
    link(item);
  }

  // Moves down the items in the higher levels' buckets of the present position.
  size_t cascade(size_t budget) {
    for (uint32_t level = kLevels - 1; level > 0; --level) {
      const uint32_t b = bucket(level, position_);
      while (heads_[b] != 0) {
        if (budget-- == 0) return 0;
        move(heads_[b]);
      }
    }
    return budget;
  }

  // Returns where the next occupied bucket begins, or `limit`. The lowest level with an occupied bucket
  // after the position has the earliest one: higher levels' buckets begin where the lower levels' windows
  // end.
  int64_t next_position(int64_t limit) const {
    for (uint32_t level = 0; level < kLevels; ++level) {
      const int64_t d = digit(level, position_);
      const uint64_t behind = d == 63 ? 0 : occupied_[level] & (~uint64_t{0} << (d + 1));
      if (behind == 0) continue;
      const uint32_t shift = 6 * level;
      const int64_t window = position_ >> shift >> 6 << 6 << shift;
      const int64_t begin = window + (static_cast<int64_t>(std::countr_zero(behind)) << shift);
      return begin < limit ? begin : limit;
    }
    return limit;
  }

  Items items_;
  std::array<uint32_t, kBuckets> heads_;
  std::array<uint64_t, kLevels> occupied_{};
  int64_t position_ =
      0;  // every item with an earlier deadline has been handed over, or lies at the position
  size_t size_ = 0;
};

}  // namespace holdfast
