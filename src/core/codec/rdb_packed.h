// Lists of texts that Redis packs into one string: listpack, intset, and the older ziplist and zipmap. They
// are read element by element, so that the reader can stop at each. Input is not trusted: damaged bytes
// give an error, never a read beyond them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast {

// The decimal texts of the last three numbers that were passed to it.
class DecimalTexts {
 public:
  std::string_view text_of(int64_t n);

 private:
  static constexpr size_t kTexts = 3;
  char bytes_[kTexts][20] = {};  // as many as the longest has
  size_t next_ = 0;
};

// Reads bytes from the front. After a read beyond the end, good() is false and values are 0.
class PackedBytes {
 public:
  explicit PackedBytes(std::string_view bytes = {}) : rest_(bytes) {}

  bool good() const { return good_; }
  size_t left() const { return rest_.size(); }
  uint8_t peek() { return rest_.empty() ? bad() : static_cast<uint8_t>(rest_[0]); }
  std::string_view take(uint64_t n);
  uint64_t low_first(size_t n);
  uint64_t high_first(size_t n);
  int64_t integer(size_t n);
  uint8_t bad() {
    good_ = false;
    rest_ = {};
    return 0;
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

class PackedList {
 public:
  enum class Form : uint8_t { kListpack, kZiplist, kIntset, kZipmap };

  PackedList() = default;  // no list
  // The bytes must outlive it.
  PackedList(Form form, std::string_view bytes);

  // Returns the next element, a number as decimal text. Returns nullopt behind the last one, and where the
  // bytes are damaged. The view stays valid during the next two calls.
  std::optional<std::string_view> next();
  // After next() returned nullopt: whether all bytes are such a list.
  bool good() const { return complete_; }

 private:
  using Element = std::optional<std::string_view>;

  Element listpack_next();
  Element ziplist_next();
  Element intset_next();
  Element zipmap_next();
  Element number(int64_t n) { return texts_.text_of(n); }
  Element listpack_element();
  Element ziplist_element();
  bool at_end();

  Form form_ = Form::kListpack;
  PackedBytes in_;
  uint64_t count_ = 0;      // of elements, as the head says
  uint64_t met_ = 0;        // of them
  size_t number_size_ = 0;  // intset
  Element value_;           // zipmap: the one that belongs to the last element
  bool complete_ = false;
  DecimalTexts texts_;
};

}  // namespace holdfast
