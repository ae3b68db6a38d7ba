// Reads an RDB file, from Redis up to 7.0 or from Holdfast, in pieces of any size, and passes the content
// to a sink. Damaged bytes give an error with their position. Memory grows with the bytes received, not
// with announced sizes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/buffer.h"
#include "core/codec/lzf.h"
#include "core/codec/rdb_packed.h"

namespace holdfast {

// The kinds of values whose elements come one by one.
enum class RdbCollection : uint8_t { kHash, kList, kSet, kZset };

// Receives the content of an RDB file. Views are valid during the call only.
class RdbSink {
 public:
  static constexpr int64_t kNoExpiry = -1;

  RdbSink() = default;
  RdbSink(const RdbSink&) = delete;
  RdbSink& operator=(const RdbSink&) = delete;
  virtual ~RdbSink() = default;

  // Whether it can take that many bytes more. Asked before compressed text is unpacked, and between the
  // elements of a packed value. If it cannot, the reader stops with an error.
  virtual bool has_room(uint64_t) const { return true; }
  virtual void aux(std::string_view, std::string_view) {}
  // `expire_ms`: wall-clock milliseconds, or kNoExpiry.
  virtual void string(uint64_t, std::string_view, std::string_view, int64_t) {}
  // A hash, list, set or sorted set. Its fields (of a hash) or elements follow, then end_collection(). An
  // element has a score in a sorted set, else 0. The parts of a set or hash may repeat.
  virtual void begin_collection(RdbCollection, uint64_t, std::string_view, int64_t) {}
  virtual void field(std::string_view, std::string_view) {}
  // The same for a field with a deadline, in wall-clock milliseconds.
  virtual void timed_field(std::string_view name, std::string_view value, int64_t) { field(name, value); }
  virtual void element(std::string_view, double) {}
  virtual void end_collection() {}
  // The code of a library of functions.
  virtual void library(std::string_view) {}
  // A key of a type that only Redis has was skipped.
  virtual void skipped(uint64_t, std::string_view, std::string_view) {}
};

class RdbReader {
 public:
  static constexpr uint64_t kMaxTextBytes = 512ULL << 20U;

  // `skip_unknown`: skip the values and data of modules, instead of an error.
  RdbReader(RdbSink& sink, bool skip_unknown) : sink_(sink), skip_unknown_(skip_unknown) {}

  // Reads the next bytes. Returns false on an error: error() gives the fault and its position, and no more
  // can be read.
  bool feed(std::string_view bytes);
  // The same in steps, for a file whose bytes are all there and stay in place: `rest` has those that are
  // not read yet. A step ends when about this effort is used up: 1 for each element, for each KiB of it,
  // and for each LzfText::kUnitBytes that are unpacked. The sink gets an element at once, whatever its
  // size. Returns whether the step was the last: error() is empty if the file is good.
  bool feed_some(std::string_view& rest, size_t effort);
  // Ends the input. Returns false if the file is not complete.
  bool finish();
  const std::string& error() const { return error_; }
  uint64_t offset() const { return offset_; }  // position of the next item in the file

  // The memory of compressed texts that were unpacked: of a key or an element, and of a value. Within
  // RdbSink::string() the sink may take the second one, if it has the text.
  std::array<Buffer*, 2> text_memory() { return {&key_text_.memory(), &value_text_.memory()}; }

 private:
  enum class State { kHeader, kItem, kElements, kPacked, kModule, kChecksum, kEnd };
  class Input;

  size_t read_items(std::string_view bytes);
  void spend_on(size_t bytes);
  bool step(Input& in);
  void read_header(Input& in);
  void read_item(Input& in);
  void read_key(Input& in, uint8_t type);
  void end_key();
  void read_checksum(Input& in);
  // In rdb_values.cc.
  static bool begins_value(uint8_t type);
  void read_value(Input& in, uint8_t type);
  void read_element(Input& in);
  double read_score(Input& in);
  void begin_packed(PackedList::Form form, std::string_view packed);
  void read_packed(Input& in);
  void end_packed(Input& in);
  bool pass_element(Input& in, std::string_view text);
  std::string empty_value() const;
  void end_value();
  // In rdb_deadlines.cc.
  static bool has_deadlines(uint8_t type);
  void read_timed_hash(Input& in, uint8_t type);
  void read_packed_timed_hash(Input& in, std::string_view key);
  void read_timed_field(Input& in);
  bool pass_packed_field(Input& in, std::string_view deadline);
  void pass_field(std::string_view name, std::string_view value, uint64_t deadline_ms);
  // In rdb_skip.cc.
  void skip_value(Input& in, uint8_t type);
  void skip_module_data(Input& in);
  void skip_module_part(Input& in);
  void fail(const std::string& why);

  RdbSink& sink_;
  bool skip_unknown_;
  State state_ = State::kHeader;
  std::string pending_;    // the received part of an incomplete item
  size_t wanted_ = 0;      // the least number of bytes that the item needs
  uint64_t offset_ = 0;    // position of the present item
  uint64_t position_ = 0;  // of the next byte
  uint64_t crc_ = 0;
  size_t effort_ = 0;  // that is left of this step
  std::string error_;
  int version_ = 0;
  uint64_t db_ = 0;
  int64_t expire_ms_ = RdbSink::kNoExpiry;
  uint8_t type_ = 0;  // of the value that is being read
  RdbCollection kind_{};
  uint64_t left_ = 0;          // its elements to read
  uint64_t first_ms_ = 0;      // the earliest deadline of its fields
  PackedList packed_;          // the value, or a node of it
  std::string_view texts_[2];  // of an element of it that is not complete yet
  size_t texts_held_ = 0;
  uint64_t passed_ = 0;  // elements of it
  LzfText key_text_;     // compressed texts of the item
  LzfText value_text_;
  DecimalTexts numbers_;
};

}  // namespace holdfast
