// Reads hashes with deadlines of fields, in the four encodings of Redis 7.4.
#include <algorithm>
#include <string>

#include "core/base/parse.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_input.h"
#include "core/codec/rdb_packed.h"
#include "core/codec/rdb_reader.h"

namespace holdfast {

bool RdbReader::has_deadlines(uint8_t type) {
  return type >= rdb::kTypeHashDeadlinesRc && type <= rdb::kTypeHashListpackDeadlines;
}

// In front of the fields stands the earliest deadline, except in the types of release candidates.
void RdbReader::read_timed_hash(Input& in, uint8_t type) {
  const bool packed = type == rdb::kTypeHashListpackDeadlines || type == rdb::kTypeHashListpackDeadlinesRc;
  const bool counted = type == rdb::kTypeHashDeadlines || type == rdb::kTypeHashListpackDeadlines;
  const std::string_view key = in.text(key_text_);
  const uint64_t first_ms = counted ? in.low_first(8) : 1;
  type_ = type;
  kind_ = RdbCollection::kHash;
  if (packed) return read_packed_timed_hash(in, key);
  left_ = in.length();
  if (!in.good()) return;
  if (left_ == 0) return static_cast<void>(in.wrong(empty_value()));
  first_ms_ = std::min<uint64_t>(first_ms, rdb::kMaxFieldDeadlineMs);
  sink_.begin_collection(kind_, db_, key, expire_ms_);
  state_ = State::kElements;
}

// 0 is no deadline.
void RdbReader::pass_field(std::string_view name, std::string_view value, uint64_t deadline_ms) {
  if (deadline_ms == 0) return sink_.field(name, value);
  sink_.timed_field(name, value,
                    static_cast<int64_t>(std::min<uint64_t>(deadline_ms, rdb::kMaxFieldDeadlineMs)));
}

// The first number is 0 for no deadline, 1 for the first one, 2 for one that is 1 ms later.
void RdbReader::read_timed_field(Input& in) {
  const uint64_t after = std::min<uint64_t>(in.length(), rdb::kMaxFieldDeadlineMs);
  const std::string_view name = in.text(key_text_);
  const std::string_view value = in.text(value_text_);
  if (!in.good()) return;
  pass_field(name, value, after == 0 ? 0 : std::max<uint64_t>(first_ms_ + after - 1, 1));
  if (--left_ == 0) end_value();
}

// Field, value, deadline, field, value ...
void RdbReader::read_packed_timed_hash(Input& in, std::string_view key) {
  const std::string_view bytes = in.text(value_text_);
  if (!in.good()) return;
  left_ = 1;
  sink_.begin_collection(kind_, db_, key, expire_ms_);
  begin_packed(PackedList::Form::kListpack, bytes);
}

// The deadline is absolute.
bool RdbReader::pass_packed_field(Input& in, std::string_view deadline) {
  const auto deadline_ms = parse_int_in(deadline, 0, INT64_MAX);
  if (!deadline_ms) return in.wrong("a packed hash is damaged"), false;
  if (!sink_.has_room(texts_[1].size())) return in.wrong(Input::kNoRoom), false;
  return pass_field(texts_[0], texts_[1], static_cast<uint64_t>(*deadline_ms)), true;
}

}  // namespace holdfast
