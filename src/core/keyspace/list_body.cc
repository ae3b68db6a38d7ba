// Lists as pages of chunks; see list_body.h.
#include "core/keyspace/list_body.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace holdfast {

namespace {

template <class Items>
auto at_index(Items& items, size_t i) {
  return items.begin() + static_cast<std::ptrdiff_t>(i);
}

}  // namespace

uint64_t ListBody::bytes() const {
  constexpr uint64_t kPageBytes = sizeof(Page) + 2 * sizeof(void*) + sizeof(std::shared_ptr<Page>);
  return sizeof(ListBody) + block_bytes_ + chunks_ * sizeof(ListChunk) + pages_.size() * kPageBytes;
}

std::unique_ptr<ValueBody> ListBody::copy() const { return shared_copy(); }

std::unique_ptr<ListBody> ListBody::shared_copy() const {
  auto other = std::make_unique<ListBody>();
  other->size_ = size_;
  other->chunks_ = chunks_;
  other->block_bytes_ = block_bytes_;
  other->pages_ = pages_;
  return other;
}

// Counts from the nearer end. size() is the place behind the last element.
ListBody::Place ListBody::place_of(size_t index) const {
  Place at;
  if (index <= size_ / 2) {
    for (; at.page + 1 < pages_.size() && index >= pages_[at.page]->elements; ++at.page) {
      index -= pages_[at.page]->elements;
    }
  } else {
    at.page = pages_.size() - 1;
    size_t before = size_ - pages_.back()->elements;
    while (index < before) before -= pages_[--at.page]->elements;
    index -= before;
  }
  const Page& page = *pages_[at.page];
  for (; at.chunk + 1 < page.chunks.size() && index >= page.chunks[at.chunk].count(); ++at.chunk) {
    index -= page.chunks[at.chunk].count();
  }
  at.index = index;
  at.offset = page.chunks[at.chunk].offset_of(index);
  return at;
}

ListBody::Cursor ListBody::at(size_t index) const {
  assert(index < size_);
  Cursor c;
  c.list_ = this;
  c.place_ = place_of(index);
  c.valid_ = true;
  return c;
}

ListBody::Cursor ListBody::first() const { return size_ > 0 ? at(0) : Cursor(); }

void ListBody::Cursor::next() {
  place_.offset = chunk().next(place_.offset);
  if (place_.offset < chunk().used()) return;
  place_.offset = 0;
  if (++place_.chunk < list_->pages_[place_.page]->chunks.size()) return;
  place_.chunk = 0;
  valid_ = ++place_.page < list_->pages_.size();
}

void ListBody::Cursor::previous() {
  if (place_.offset == 0) {
    if (place_.chunk == 0) {
      valid_ = place_.page-- > 0;
      if (!valid_) return;
      place_.chunk = list_->pages_[place_.page]->chunks.size();
    }
    --place_.chunk;
    place_.offset = chunk().used();
  }
  place_.offset = chunk().previous(place_.offset);
}

// Returns the page, which no other list shares any more.
ListBody::Page& ListBody::own_page(size_t page) {
  std::shared_ptr<Page>& p = pages_[page];
  if (p.use_count() > 1) p = std::make_shared<Page>(*p);
  return *p;
}

// Calls `change(chunk)`, and counts what it changed.
template <class Change>
auto ListBody::change_chunk(size_t page, size_t chunk, Change change) {
  Page& p = own_page(page);
  ListChunk& c = p.chunks[chunk];
  const size_t count = c.count();
  const uint64_t memory = c.memory();
  const auto result = change(c);
  p.elements += c.count() - count;
  size_ += c.count() - count;
  block_bytes_ += c.memory() - memory;
  return result;
}

void ListBody::add_chunk(size_t page, size_t chunk, ListChunk made) {
  Page& p = own_page(page);
  ++chunks_;
  size_ += made.count();
  p.elements += made.count();
  block_bytes_ += made.memory();
  p.chunks.insert(at_index(p.chunks, chunk), std::move(made));
}

void ListBody::remove_chunk(size_t page, size_t chunk) {
  Page& p = own_page(page);
  const ListChunk& c = p.chunks[chunk];
  --chunks_;
  size_ -= c.count();
  p.elements -= c.count();
  block_bytes_ -= c.memory();
  p.chunks.erase(at_index(p.chunks, chunk));
  if (p.chunks.empty()) pages_.erase(at_index(pages_, page));
}

void ListBody::remove_page(size_t page) {
  const Page& p = *pages_[page];
  chunks_ -= p.chunks.size();
  size_ -= p.elements;
  for (const ListChunk& c : p.chunks) block_bytes_ -= c.memory();
  pages_.erase(at_index(pages_, page));
}

// Divides a full page into two.
void ListBody::split_page(size_t page) {
  Page& p = own_page(page);
  auto half = std::make_shared<Page>();
  const auto middle = at_index(p.chunks, p.chunks.size() / 2);
  for (auto it = middle; it != p.chunks.end(); ++it) {
    half->elements += it->count();
    half->chunks.push_back(std::move(*it));
  }
  p.elements -= half->elements;
  p.chunks.erase(middle, p.chunks.end());
  pages_.insert(at_index(pages_, page + 1), std::move(half));
}

// Adds an empty chunk at an end. The chunk that was there will not grow any more.
void ListBody::push_chunk(ListEnd end) {
  const bool head = end == ListEnd::kHead;
  if (!pages_.empty()) {
    const size_t page = head ? 0 : pages_.size() - 1;
    const size_t chunk = head ? 0 : pages_[page]->chunks.size() - 1;
    change_chunk(page, chunk, [](ListChunk& c) { return c.shrink(), true; });
  }
  const auto edge = head || pages_.empty() ? pages_.begin() : std::prev(pages_.end());
  if (pages_.empty() || (*edge)->chunks.size() >= kMostChunks) {
    pages_.insert(head ? pages_.begin() : pages_.end(), std::make_shared<Page>());
  }
  const size_t page = head ? 0 : pages_.size() - 1;
  add_chunk(page, head ? 0 : pages_[page]->chunks.size(), {});
}

void ListBody::push(ListEnd end, std::string_view element) {
  const PackedElement e(element);
  const bool head = end == ListEnd::kHead;
  const auto has_room = [&] {
    const auto& chunks = (head ? pages_.front() : pages_.back())->chunks;
    return (head ? chunks.front() : chunks.back()).has_room_for(e.bytes().size());
  };
  if (pages_.empty() || !has_room()) push_chunk(end);
  const size_t page = head ? 0 : pages_.size() - 1;
  const size_t chunk = head ? 0 : pages_[page]->chunks.size() - 1;
  change_chunk(page, chunk, [&](ListChunk& c) { return c.insert(head ? 0 : c.used(), e.bytes()), true; });
}

// Divides a chunk before the element at this place.
void ListBody::split_chunk(const Place& at) {
  if (pages_[at.page]->chunks.size() >= kMostChunks) {
    const size_t half = pages_[at.page]->chunks.size() / 2;
    split_page(at.page);
    if (at.chunk >= half) return split_chunk({at.page + 1, at.chunk - half, at.offset, at.index});
  }
  ListChunk behind;
  const ListChunk& whole = pages_[at.page]->chunks[at.chunk];
  const size_t count = whole.count() - at.index;
  behind.insert(0, whole.entries().substr(at.offset), count);
  behind.shrink();
  change_chunk(at.page, at.chunk, [&](ListChunk& c) { return c.erase(at.offset, c.used(), count), true; });
  add_chunk(at.page, at.chunk + 1, std::move(behind));
}

void ListBody::insert(size_t index, std::string_view element) {
  if (index == 0) return push(ListEnd::kHead, element);
  if (index == size_) return push(ListEnd::kTail, element);
  const PackedElement e(element);
  Place at = place_of(index);
  const auto room_in = [&](const Place& place) {
    return pages_[place.page]->chunks[place.chunk].has_room_for(e.bytes().size());
  };
  if (!room_in(at) && at.offset > 0) {
    split_chunk(at);
    at = place_of(index);  // the first element of the part behind
  }
  // Before the first element of a full chunk there is room at the end of the chunk before, or in a new one.
  if (!room_in(at)) {
    at = place_of(index - 1);
    if (pages_[at.page]->chunks.size() >= kMostChunks) {
      split_page(at.page);
      at = place_of(index - 1);
    }
    if (!room_in(at)) add_chunk(at.page, ++at.chunk, {});
    at.offset = pages_[at.page]->chunks[at.chunk].used();
  }
  change_chunk(at.page, at.chunk, [&](ListChunk& c) { return c.insert(at.offset, e.bytes()), true; });
}

void ListBody::set(size_t index, std::string_view element) {
  const PackedElement e(element);
  const Place at = place_of(index);
  const ListChunk& c = pages_[at.page]->chunks[at.chunk];
  const size_t end = c.next(at.offset);
  if (c.count() > 1 && c.used() - (end - at.offset) + e.bytes().size() > ListChunk::kMostBytes) {
    erase(index, 1);
    return insert(index, element);
  }
  change_chunk(at.page, at.chunk, [&](ListChunk& chunk) {
    chunk.erase(at.offset, end, 1);
    chunk.insert(at.offset, e.bytes());
    return true;
  });
}

void ListBody::erase_in_chunk(const Place& at, size_t count) {
  change_chunk(at.page, at.chunk, [&](ListChunk& c) {
    const size_t end = c.count() == at.index + count ? c.used() : [&] {
      size_t offset = at.offset;
      for (size_t i = 0; i < count; ++i) offset = c.next(offset);
      return offset;
    }();
    return c.erase(at.offset, end, count), true;
  });
}

void ListBody::erase(size_t index, size_t count) {
  assert(index + count <= size_);
  while (count > 0) {
    const Place at = place_of(index);
    const Page& page = *pages_[at.page];
    const size_t here = std::min(count, page.chunks[at.chunk].count() - at.index);
    if (at.chunk == 0 && at.index == 0 && count >= page.elements) {
      count -= page.elements;
      remove_page(at.page);
    } else if (here == page.chunks[at.chunk].count()) {
      count -= here;
      remove_chunk(at.page, at.chunk);
    } else {
      count -= here;
      erase_in_chunk(at, here);
      if (count == 0) merge_around(at.page, at.chunk);
    }
  }
}

size_t ListBody::erase_equal_in_page(size_t page, std::string_view entry, ListEnd from, size_t most) {
  size_t erased = 0;
  const size_t chunks = pages_[page]->chunks.size();
  for (size_t i = 0; i < chunks && erased < most; ++i) {
    const size_t chunk = from == ListEnd::kHead ? i : chunks - 1 - i;
    const size_t found = pages_[page]->chunks[chunk].count_equal(entry);
    if (found == 0) continue;
    const size_t here = std::min(found, most - erased);
    const size_t skip = from == ListEnd::kHead ? 0 : found - here;
    erased += change_chunk(page, chunk, [&](ListChunk& c) { return c.erase_equal(entry, skip, here); });
  }
  return erased;
}

size_t ListBody::erase_equal(std::string_view element, ListEnd from, size_t most) {
  const PackedElement e(element);
  size_t erased = 0;
  size_t page = from == ListEnd::kHead ? 0 : pages_.size();
  const auto is_over = [&] {
    return erased == most || page == (from == ListEnd::kHead ? pages_.size() : 0);
  };
  while (!is_over()) {
    if (from == ListEnd::kTail) --page;
    const size_t here = erase_equal_in_page(page, e.bytes(), from, most - erased);
    erased += here;
    const size_t pages = pages_.size();
    for (size_t chunk = here > 0 ? pages_[page]->chunks.size() : 0; chunk-- > 0;) {
      if (pages_[page]->chunks[chunk].count() == 0) {
        remove_chunk(page, chunk);
      } else {
        merge_chunks(page, chunk);
      }
    }
    if (from == ListEnd::kHead && pages_.size() == pages) ++page;
  }
  return erased;
}

// Joins a chunk and the one behind it if they are small, so that a list with many removals does not consist
// of nearly empty chunks.
bool ListBody::merge_chunks(size_t page, size_t chunk) {
  const auto& chunks = pages_[page]->chunks;
  if (chunk + 1 >= chunks.size()) return false;
  const ListChunk behind = chunks[chunk + 1];
  if (chunks[chunk].used() + behind.used() > ListChunk::kMostBytes / 2) return false;
  change_chunk(page, chunk,
               [&](ListChunk& c) { return c.insert(c.used(), behind.entries(), behind.count()), true; });
  remove_chunk(page, chunk + 1);
  return true;
}

void ListBody::merge_around(size_t page, size_t chunk) {
  merge_chunks(page, chunk);
  if (chunk > 0) merge_chunks(page, chunk - 1);
  merge_pages(page);
  if (page > 0) merge_pages(page - 1);
}

// Joins a page and the one behind it if both have few chunks.
void ListBody::merge_pages(size_t page) {
  if (page + 1 >= pages_.size()) return;
  const std::shared_ptr<Page> behind = pages_[page + 1];
  if (pages_[page]->chunks.size() + behind->chunks.size() > kMostChunks / 2) return;
  Page& p = own_page(page);
  p.elements += behind->elements;
  p.chunks.insert(p.chunks.end(), behind->chunks.begin(), behind->chunks.end());
  pages_.erase(at_index(pages_, page + 1));
}

bool ListBody::free_some() {
  if (pages_.empty()) return true;
  remove_page(pages_.size() - 1);
  return pages_.empty();
}

void ListBody::begin_save(ElementSink& sink) {
  save_ = std::make_unique<Save>(Save{&sink, shared_copy(), {}});
  save_->at = save_->copy->first();
}

bool ListBody::save_some(size_t count) {
  Cursor& at = save_->at;
  for (size_t i = 0; i < count && at.valid(); ++i) {
    const size_t page = at.place_.page;
    save_->sink->put(at.get(), {});
    at.next();
    if (at.place_.page != page) save_->copy->pages_[page].reset();
  }
  return !at.valid();
}

void ListBody::check_invariants() const {
  size_t size = 0;
  size_t chunks = 0;
  uint64_t block_bytes = 0;
  for (const auto& page : pages_) {
    assert(!page->chunks.empty() && page->chunks.size() <= kMostChunks);
    size_t elements = 0;
    for (const ListChunk& c : page->chunks) {
      assert(c.count() > 0);
      c.check_invariants();
      elements += c.count();
      block_bytes += c.memory();
    }
    assert(elements == page->elements);
    size += elements;
    chunks += page->chunks.size();
  }
  assert(size == size_ && chunks == chunks_ && block_bytes == block_bytes_);
}

}  // namespace holdfast
