// A list of any size: chunks of packed elements (list_chunk.h) in pages of up to 256 chunks. A search
// counts along the pages, then along the chunks of one page, then along one chunk: about 2 us in a list of
// 10 million elements. An entry of type kList owns the body.
//
// A copy() shares the pages with the original, and takes one step for each page. The first change of a
// shared page copies its handles of chunks, and the first change of a shared chunk copies its bytes.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "core/keyspace/entry.h"
#include "core/keyspace/list_chunk.h"
#include "core/keyspace/value_body.h"

namespace holdfast {

enum class ListEnd : uint8_t { kHead, kTail };

class ListBody final : public ValueBody {
  struct Page {
    size_t elements = 0;
    absl::InlinedVector<ListChunk, 1> chunks;
  };
  struct Place {
    size_t page = 0;
    size_t chunk = 0;
    size_t offset = 0;  // in the chunk
    size_t index = 0;   // in the chunk
  };

 public:
  static constexpr EntryType kType = EntryType::kList;

  // A place in a list that is not changed meanwhile.
  class Cursor {
   public:
    bool valid() const { return valid_; }
    // The view is valid until the cursor moves.
    std::string_view get() { return chunk().get(place_.offset, digits_); }
    bool equals(const PackedElement& e) const { return chunk().equals(place_.offset, e.bytes()); }
    void next();
    void previous();

   private:
    friend class ListBody;
    const ListChunk& chunk() const { return list_->pages_[place_.page]->chunks[place_.chunk]; }
    const ListBody* list_ = nullptr;
    Place place_;
    bool valid_ = false;
    ElementDigits digits_;
  };

  size_t size() const override { return size_; }
  uint64_t bytes() const override;
  std::unique_ptr<ValueBody> copy() const override;
  std::string_view encoding() const override { return "quicklist"; }
  void check_invariants() const override;

  // Indexes count from 0, and must be within the list.
  Cursor at(size_t index) const;
  Cursor first() const;
  void push(ListEnd end, std::string_view element);
  void set(size_t index, std::string_view element);
  // Inserts before the element at `index`; size(): at the end.
  void insert(size_t index, std::string_view element);
  void erase(size_t index, size_t count);
  // Erases elements that are equal to `element`, at most `most`, from this end on. Returns their number.
  size_t erase_equal(std::string_view element, ListEnd from, size_t most);

  bool free_some() override;

  // A snapshot saves a copy, in the order of the list, and frees what only the copy still has page by page.
  bool can_save_in_parts() const override { return true; }
  void begin_save(ElementSink& sink) override;
  bool save_some(size_t count) override;
  void end_save() override { save_.reset(); }
  bool saving() const override { return save_ != nullptr; }

 private:
  static constexpr size_t kMostChunks = 256;  // of a page

  struct Save {
    ElementSink* sink;
    std::unique_ptr<ListBody> copy;
    Cursor at;
  };

  std::unique_ptr<ListBody> shared_copy() const;

  Place place_of(size_t index) const;
  Page& own_page(size_t page);
  template <class Change>
  auto change_chunk(size_t page, size_t chunk, Change change);
  void add_chunk(size_t page, size_t chunk, ListChunk made);
  void remove_chunk(size_t page, size_t chunk);
  void remove_page(size_t page);
  void split_page(size_t page);
  void push_chunk(ListEnd end);
  void split_chunk(const Place& at);
  void erase_in_chunk(const Place& at, size_t count);
  size_t erase_equal_in_page(size_t page, std::string_view entry, ListEnd from, size_t most);
  void merge_around(size_t page, size_t chunk);
  bool merge_chunks(size_t page, size_t chunk);
  void merge_pages(size_t page);

  size_t size_ = 0;
  size_t chunks_ = 0;
  uint64_t block_bytes_ = 0;  // of all chunks, whether or not another list shares them
  absl::InlinedVector<std::shared_ptr<Page>, 1> pages_;
  std::unique_ptr<Save> save_;
};

}  // namespace holdfast
