// Reads the value of a payload (payload.h) in steps, as a payload of 1 MB may have a value of 300 MB. The
// value gets its final form at once, so that it needs no other copy of its elements. Until it is complete
// no client sees it; its memory counts as used.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/buffer.h"
#include "core/base/types.h"
#include "core/codec/rdb_reader.h"
#include "core/keyspace/entry.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/value_body.h"
#include "core/state/conn.h"

namespace holdfast {

struct EngineState;

struct DumpedValue {
  EntryType type = EntryType::kNone;
  Buffer string;                                            // of kString
  std::vector<std::pair<std::string, std::string>> fields;  // of kHash, a packed one; no name twice
  std::unique_ptr<ValueBody> body;                          // of all other types
};

// The part of a ValueReader that takes the elements.
class DumpedValueSink final : public RdbSink {
 public:
  DumpedValueSink(const EngineState& s, const Now& now) : s_(s), now_(now) {}

  uint64_t body_bytes() const;
  // The memory of the value, and of texts that were unpacked for it.
  uint64_t bytes() const;

  std::array<Buffer*, 2> texts{};  // RdbReader::text_memory()
  uint64_t most_bytes = 0;         // the limit of bytes()
  DumpedValue value;
  std::unique_ptr<HashBody> hash;  // instead of value.fields: of many or large fields, or with deadlines
  size_t values = 0;
  bool good = true;  // nothing else is there, and no element twice
  mutable bool too_large = false;

 private:
  bool has_room(uint64_t bytes) const override;
  void aux(std::string_view, std::string_view) override { good = false; }
  void library(std::string_view) override { good = false; }
  void string(uint64_t, std::string_view, std::string_view text, int64_t) override;
  void field(std::string_view name, std::string_view text) override;
  void timed_field(std::string_view name, std::string_view text, int64_t deadline_ms) override;
  void begin_collection(RdbCollection kind, uint64_t, std::string_view, int64_t) override;
  void element(std::string_view text, double score) override;
  void end_collection() override;
  bool is_packed(std::string_view name, std::string_view text) const;
  void make_large();

  const EngineState& s_;
  Now now_;
};

class ValueReader final : public ChunkState {
 public:
  // `bytes` is what open_payload() returned, and is copied. The state must outlive the reader.
  ValueReader(EngineState& s, const Now& now, std::string_view bytes);
  // What is still in value() is freed in steps.
  ~ValueReader() override;

  // Reads the next part: see RdbReader::feed_some(). The value may take `room` bytes more. Returns whether
  // the step was the last.
  bool step(uint64_t room, size_t effort);
  // After the last step: an error for the client, or an empty text. It is -OOM if the value does not fit,
  // which is noticed before the memory is used; else the payload is not one value of a known type.
  std::string_view error() const { return error_; }
  // After the last step, if there is no error.
  DumpedValue& value() { return sink_.value; }
  // The memory of the value.
  uint64_t value_bytes() const { return sink_.body_bytes() + sink_.value.string.size(); }
  // Whether the payload still has this value: deadlines of fields are those of the wall clock at the begin.
  bool has_clock_of(const Now& now) const { return now.ahead_ms() == ahead_ms_; }
  // The payload, in two parts.
  std::array<std::string_view, 2> payload() const { return {type_, bytes_}; }

 private:
  std::string_view verdict() const;

  EngineState& s_;
  int64_t ahead_ms_;
  Buffer file_;  // an RDB file that has the value only
  DumpedValueSink sink_;
  RdbReader reader_;
  std::string_view type_;   // the part of the file before the empty key
  std::string_view bytes_;  // the part behind it
  std::string_view rest_;   // what is not read yet
  uint64_t counted_bytes_ = 0;
  std::string_view error_;
};

}  // namespace holdfast
