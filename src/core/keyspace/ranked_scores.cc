// Chunks of scored members in pages; see ranked_scores.h.
#include "core/keyspace/ranked_scores.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace holdfast {

namespace {

template <class T>
auto at_index(std::vector<T>& v, size_t index) {
  return v.begin() + static_cast<std::ptrdiff_t>(index);
}

// Moves the upper half of a vector to a new one.
template <class T>
std::vector<T> take_upper_half(std::vector<T>& from) {
  const auto middle = at_index(from, from.size() / 2);
  std::vector<T> upper(std::make_move_iterator(middle), std::make_move_iterator(from.end()));
  from.erase(middle, from.end());
  return upper;
}

}  // namespace

// A page with an empty chunk.
void RankedScores::add_page() {
  pages_.push_back({{}, 0, std::make_unique<std::vector<Chunk>>(1)});
  bytes_ += sizeof(Page) + sizeof(Chunk);
}

void RankedScores::fill(std::span<const ScoredPair> items) {
  assert(pages_.empty());
  for (; !items.empty(); items = items.subspan(pages_.back().chunks->back().items.size())) {
    if (pages_.empty() || pages_.back().chunks->size() == kPageChunks) {
      add_page();
    } else {
      pages_.back().chunks->emplace_back();
      bytes_ += sizeof(Chunk);
    }
    auto& chunks = *pages_.back().chunks;
    const auto some = items.first(std::min(items.size(), kChunkItems));
    chunks.back().items.assign(some.begin(), some.end());
    bytes_ += chunks.back().items.capacity() * sizeof(ScoredPair);
    pages_.back().items += some.size();
    size_ += some.size();
    copy_first(pages_.size() - 1, chunks.size() - 1);
  }
}

void RankedScores::put(std::vector<ScoredPair>& items, size_t index, const ScoredPair& item) {
  if (items.size() == items.capacity()) {
    items.reserve(items.size() + kChunkStep);
    bytes_ += kChunkStep * sizeof(ScoredPair);
  }
  items.insert(at_index(items, index), item);
}

void RankedScores::copy_first(size_t page, size_t chunk) {
  auto& chunks = *pages_[page].chunks;
  chunks[chunk].first = chunks[chunk].items.front();
  pages_[page].first = chunks.front().first;
}

// A chunk that is full is split in two. At the end of the order an empty one follows it instead, so that
// members that come in the order of their scores fill each chunk.
void RankedScores::insert(const ScoredPair& item) {
  Place at = end_of_prefix([&](const ScoredPair& other) { return other < item; });
  if (pages_.empty()) add_page();
  auto& chunks = *pages_[at.page].chunks;
  if (chunks[at.chunk].items.size() == kChunkItems) {
    const bool last = at.index == kChunkItems && at.chunk + 1 == chunks.size();
    if (last && at.page + 1 == pages_.size()) {
      chunks.emplace_back();
      bytes_ += sizeof(Chunk);
      at = {at.page, at.chunk + 1, 0};
    } else {
      split_chunk(at);
      const size_t lower = chunks[at.chunk].items.size();
      if (at.index > lower) at = {at.page, at.chunk + 1, at.index - lower};
    }
  }
  put(chunks[at.chunk].items, at.index, item);
  ++pages_[at.page].items;
  ++size_;
  copy_first(at.page, at.chunk);
  if (chunks.size() > kPageChunks) split_page(at.page);
}

void RankedScores::split_chunk(const Place& at) {
  auto& chunks = *pages_[at.page].chunks;
  auto upper = take_upper_half(chunks[at.chunk].items);
  const ScoredPair first = upper.front();
  bytes_ += sizeof(Chunk) + upper.capacity() * sizeof(ScoredPair);
  chunks.insert(at_index(chunks, at.chunk + 1), Chunk{first, std::move(upper)});
}

void RankedScores::split_page(size_t page) {
  auto upper = std::make_unique<std::vector<Chunk>>(take_upper_half(*pages_[page].chunks));
  size_t items = 0;
  for (const Chunk& chunk : *upper) items += chunk.items.size();
  pages_[page].items -= items;
  const ScoredPair first = upper->front().first;
  pages_.insert(at_index(pages_, page + 1), Page{first, items, std::move(upper)});
  bytes_ += sizeof(Page);
}

void RankedScores::erase(const ScoredPair& item) {
  Place at = end_of_prefix([&](const ScoredPair& other) { return !(item < other); });
  assert(at.index > 0);
  --at.index;
  auto& items = (*pages_[at.page].chunks)[at.chunk].items;
  assert(items[at.index].pair == item.pair);
  items.erase(at_index(items, at.index));
  --pages_[at.page].items;
  --size_;
  shrink(at);
}

void RankedScores::erase_range(size_t rank, size_t count) {
  while (count > 0) {
    const Place at = place_of(rank);
    auto& items = (*pages_[at.page].chunks)[at.chunk].items;
    const size_t some = std::min(count, items.size() - at.index);
    items.erase(at_index(items, at.index), at_index(items, at.index + some));
    pages_[at.page].items -= some;
    size_ -= some;
    count -= some;
    shrink(at);
  }
}

// Removes a chunk that became empty, or merges it with a neighbour if it became small.
void RankedScores::shrink(const Place& at) {
  auto& chunks = *pages_[at.page].chunks;
  const size_t left = chunks[at.chunk].items.size();
  if (left == 0) {
    bytes_ -= sizeof(Chunk) + chunks[at.chunk].items.capacity() * sizeof(ScoredPair);
    chunks.erase(at_index(chunks, at.chunk));
  } else {
    copy_first(at.page, at.chunk);
    if (left > kChunkItems / 4) return;
    if (!merge_chunks(at.page, at.chunk) && at.chunk > 0) merge_chunks(at.page, at.chunk - 1);
  }
  if (!chunks.empty()) pages_[at.page].first = chunks.front().first;
  merge_pages(at.page);
}

// Appends the chunk behind a chunk to it, if both together are not nearly full.
bool RankedScores::merge_chunks(size_t page, size_t chunk) {
  auto& chunks = *pages_[page].chunks;
  if (chunk + 1 >= chunks.size()) return false;
  auto& to = chunks[chunk].items;
  auto& from = chunks[chunk + 1].items;
  if (to.size() + from.size() > kChunkItems * 3 / 4) return false;
  const size_t capacity = to.capacity() + from.capacity();
  std::vector<ScoredPair> joined;
  joined.reserve(to.size() + from.size());
  joined.insert(joined.end(), to.begin(), to.end());
  joined.insert(joined.end(), from.begin(), from.end());
  to = std::move(joined);
  chunks.erase(at_index(chunks, chunk + 1));
  bytes_ -= (capacity - to.capacity()) * sizeof(ScoredPair) + sizeof(Chunk);
  return true;
}

// Removes a page that became empty, or appends the page behind it if both have few chunks.
void RankedScores::merge_pages(size_t page) {
  auto& chunks = *pages_[page].chunks;
  if (chunks.empty()) {
    pages_.erase(at_index(pages_, page));
    bytes_ -= sizeof(Page);
    return;
  }
  if (page + 1 >= pages_.size()) return;
  auto& from = *pages_[page + 1].chunks;
  if (chunks.size() + from.size() > kPageChunks / 2) return;
  std::ranges::move(from, std::back_inserter(chunks));
  pages_[page].items += pages_[page + 1].items;
  pages_.erase(at_index(pages_, page + 1));
  bytes_ -= sizeof(Page);
}

bool RankedScores::free_some() {
  if (pages_.empty()) return true;
  for (const Chunk& chunk : *pages_.back().chunks)
    bytes_ -= sizeof(Chunk) + chunk.items.capacity() * sizeof(ScoredPair);
  bytes_ -= sizeof(Page);
  size_ -= pages_.back().items;
  pages_.pop_back();
  return pages_.empty();
}

size_t RankedScores::rank_of(const Place& at) const {
  size_t rank = at.index;
  for (size_t p = 0; p < at.page; ++p) rank += pages_[p].items;
  for (size_t c = 0; c < at.chunk; ++c) rank += (*pages_[at.page].chunks)[c].items.size();
  return rank;
}

RankedScores::Place RankedScores::place_of(size_t rank) const {
  assert(rank < size_);
  Place at;
  for (; rank >= pages_[at.page].items; ++at.page) rank -= pages_[at.page].items;
  const auto& chunks = *pages_[at.page].chunks;
  for (; rank >= chunks[at.chunk].items.size(); ++at.chunk) rank -= chunks[at.chunk].items.size();
  at.index = rank;
  return at;
}

void RankedScores::next(Place& at) const {
  const auto& chunks = *pages_[at.page].chunks;
  if (++at.index < chunks[at.chunk].items.size()) return;
  at.index = 0;
  if (++at.chunk < chunks.size()) return;
  at.chunk = 0;
  ++at.page;
}

void RankedScores::previous(Place& at) const {
  if (at.index-- > 0) return;
  if (at.chunk-- == 0) at.chunk = pages_[--at.page].chunks->size() - 1;
  at.index = (*pages_[at.page].chunks)[at.chunk].items.size() - 1;
}

void RankedScores::check_invariants() const {
  size_t size = 0;
  uint64_t bytes = 0;
  const ScoredPair* before = nullptr;
  for (const Page& page : pages_) {
    size_t items = 0;
    bytes += sizeof(Page);
    assert(page.first.pair == page.chunks->front().items.front().pair);
    for (const Chunk& chunk : *page.chunks) {
      assert(!chunk.items.empty() && chunk.items.size() <= kChunkItems);
      assert(chunk.first.pair == chunk.items.front().pair &&
             chunk.first.score == chunk.items.front().score);
      for (const ScoredPair& item : chunk.items) {
        assert(before == nullptr || *before < item);
        before = &item;
      }
      items += chunk.items.size();
      bytes += sizeof(Chunk) + chunk.items.capacity() * sizeof(ScoredPair);
    }
    assert(items == page.items && page.chunks->size() <= kPageChunks);
    size += items;
  }
  assert(size == size_ && bytes == bytes_);
}

}  // namespace holdfast
