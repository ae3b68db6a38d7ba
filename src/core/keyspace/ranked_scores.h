// The members of a large sorted set in the order of their scores, with ranks. Members with the same score
// are in the order of their bytes. Owns no member: an item points to the member's pair (packed_hash.h),
// whose owner keeps it in place.
//
// The items are in chunks of up to 128, and the chunks in pages of up to 256. A chunk or page begins with a
// copy of its first item, so that a search reads few cache lines. A change moves at most one chunk and one
// page, so that no growth takes long. Per member this takes less than half the memory of a node of a ranked
// tree (Boost.MultiIndex, pb_ds), which would exceed that of Redis.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/keyspace/packed_hash.h"

namespace holdfast {

struct ScoredPair {
  double score;
  const char* pair;

  std::string_view member() const { return packed_pair_at(pair).field; }
  friend bool operator<(const ScoredPair& a, const ScoredPair& b) {
    return a.score != b.score ? a.score < b.score : a.member() < b.member();
  }
};

class RankedScores {
 public:
  size_t size() const { return size_; }
  uint64_t bytes() const { return bytes_; }

  // The item must not be in the order yet.
  void insert(const ScoredPair& item);
  // Fills an empty order with items in their order.
  void fill(std::span<const ScoredPair> items);
  // The item must be in the order.
  void erase(const ScoredPair& item);
  // Erases the items with these ranks, which must exist. Does not read the items' pairs.
  void erase_range(size_t rank, size_t count);

  // Returns the number of items at the front for which `is_before(item)` is true. It must be true for a
  // prefix of the order, and false for the rest.
  template <class IsBefore>
  size_t count_before(IsBefore is_before) const {
    const Place at = end_of_prefix(is_before);
    return at.index == 0 ? 0 : rank_of(at);
  }

  // Calls `f(item)` for `count` items, from the one with this rank on; downwards if `reverse`. They must
  // exist.
  template <class F>
  void for_range(size_t rank, size_t count, bool reverse, F f) const {
    if (count == 0) return;
    Place at = place_of(rank);
    for (f(item(at)); --count > 0; f(item(at))) {
      reverse ? previous(at) : next(at);
      if (!reverse) fetch_ahead(at);
    }
  }

  // Frees the last page, but not the items' pairs. Returns true if none is left.
  bool free_some();

  void check_invariants() const;

 private:
  static constexpr size_t kChunkItems = 128;
  static constexpr size_t kPageChunks = 256;
  static constexpr size_t kChunkStep = 16;  // items by which a chunk's memory grows

  struct Chunk {
    ScoredPair first;
    std::vector<ScoredPair> items;
  };
  struct Page {
    ScoredPair first;
    size_t items = 0;
    std::unique_ptr<std::vector<Chunk>> chunks;
  };
  struct Place {
    size_t page = 0;
    size_t chunk = 0;
    size_t index = 0;
  };

  // The place behind the last item for which `is_before` is true; its index is 0 if there is none.
  template <class IsBefore>
  Place end_of_prefix(IsBefore is_before) const {
    const auto begins_before = [&](const auto& part) { return is_before(part.first); };
    const auto page = std::ranges::partition_point(pages_, begins_before);
    if (page == pages_.begin()) return {};
    const auto& chunks = *std::prev(page)->chunks;
    const auto chunk = std::prev(std::ranges::partition_point(chunks, begins_before));
    const auto end = std::ranges::partition_point(chunk->items, is_before);
    return {static_cast<size_t>(page - pages_.begin()) - 1, static_cast<size_t>(chunk - chunks.begin()),
            static_cast<size_t>(end - chunk->items.begin())};
  }
  const ScoredPair& item(const Place& at) const {
    return (*pages_[at.page].chunks)[at.chunk].items[at.index];
  }
  // The pairs are anywhere in memory.
  void fetch_ahead(const Place& at) const {
    constexpr size_t kAhead = 8;
    const std::vector<ScoredPair>& items = (*pages_[at.page].chunks)[at.chunk].items;
    if (at.index + kAhead < items.size()) __builtin_prefetch(items[at.index + kAhead].pair);
  }
  size_t rank_of(const Place& at) const;
  Place place_of(size_t rank) const;
  void next(Place& at) const;
  void previous(Place& at) const;
  void add_page();
  void put(std::vector<ScoredPair>& items, size_t index, const ScoredPair& item);
  void split_chunk(const Place& at);
  void split_page(size_t page);
  void shrink(const Place& at);
  bool merge_chunks(size_t page, size_t chunk);
  void merge_pages(size_t page);
  void copy_first(size_t page, size_t chunk);

  std::vector<Page> pages_;
  size_t size_ = 0;
  uint64_t bytes_ = 0;  // of pages, chunks and items
};

}  // namespace holdfast
