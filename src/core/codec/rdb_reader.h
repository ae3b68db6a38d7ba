// Reads an RDB file, of Redis up to 7.0 or an own one, as its bytes come, in pieces of any size, and tells
// a sink what is in it. Damaged bytes give an error that says where; memory grows with what has arrived,
// not with what is announced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

// Views live during the call.
class RdbSink {
 public:
  static constexpr int64_t kNoExpiry = -1;

  RdbSink() = default;
  RdbSink(const RdbSink&) = delete;
  RdbSink& operator=(const RdbSink&) = delete;
  virtual ~RdbSink() = default;

  virtual void aux(std::string_view, std::string_view) {}
  // `expire_ms`: by the wall clock, or kNoExpiry.
  virtual void string(uint64_t, std::string_view, std::string_view, int64_t) {}
  virtual void begin_hash(uint64_t, std::string_view, int64_t, uint64_t) {}
  virtual void field(std::string_view, std::string_view) {}
  virtual void end_hash() {}
  // A key of a type that only Redis has was left out.
  virtual void skipped(uint64_t, std::string_view, std::string_view) {}
};

class RdbReader {
 public:
  static constexpr uint64_t kMaxTextBytes = 512ULL << 20U;

  // `skip_unknown`: leave out keys of other types than strings and hashes, instead of an error.
  RdbReader(RdbSink& sink, bool skip_unknown) : sink_(sink), skip_unknown_(skip_unknown) {}

  // False: error() says what is wrong, and where; there is no going on.
  bool feed(std::string_view bytes);
  // There are no more bytes. False: there should be.
  bool finish();
  const std::string& error() const { return error_; }
  uint64_t offset() const { return offset_; }  // of what comes next

 private:
  enum class State { kHeader, kItem, kFields, kSkipped, kChecksum, kEnd };
  class Input;

  bool step(Input& in);
  void read_header(Input& in);
  void read_item(Input& in);
  void read_key(Input& in, uint8_t type);
  void read_packed_hash(Input& in, uint8_t type, std::string_view key);
  void read_field(Input& in);
  void begin_skipping(Input& in, uint8_t type, std::string_view key);
  void skip_element(Input& in);
  void skip_module_data(Input& in);
  bool skip_module_part(Input& in);
  void read_checksum(Input& in);
  void end_key();
  void fail(const std::string& why);

  RdbSink& sink_;
  bool skip_unknown_;
  State state_ = State::kHeader;
  std::string pending_;  // an item that has not come whole
  size_t wanted_ = 0;    // so many bytes of it are needed at least
  uint64_t offset_ = 0;
  uint64_t crc_ = 0;
  std::string error_;
  int version_ = 0;
  uint64_t db_ = 0;
  int64_t expire_ms_ = RdbSink::kNoExpiry;
  uint64_t left_ = 0;     // of fields, or of elements to skip
  uint8_t skipped_ = 0;   // the type that is being skipped
  std::string key_text_;  // of a key that was packed
  std::string value_text_;
};

}  // namespace holdfast
