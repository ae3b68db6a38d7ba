// A large value of a snapshot, written in parts while clients change it. The elements of hashes and sets
// have no order in the file: one that changes before its turn is kept in memory, with its old content,
// until the file reaches the value. A list saves a copy of itself, in order. Knows the format of the
// elements, not that of the key before them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/types.h"
#include "core/codec/hold_codec.h"
#include "core/codec/rdb_writer.h"
#include "core/keyspace/entry.h"
#include "core/keyspace/hash_body.h"
#include "core/keyspace/value_body.h"
#include "core/keyspace/zset_body.h"

namespace holdfast {

// Bytes that wait for their place in the file. They move there in parts.
class WaitingBytes {
 public:
  std::string& bytes() { return bytes_; }
  bool empty() const { return bytes_.empty(); }
  void move_some(std::string& out) {
    constexpr size_t kStepBytes = size_t{128} << 10U;
    const size_t n = std::min(kStepBytes, bytes_.size() - moved_);
    out.append(bytes_, moved_, n);
    moved_ += n;
    if (moved_ < bytes_.size()) return;
    bytes_.clear();
    if (bytes_.capacity() > kStepBytes) bytes_.shrink_to_fit();
    moved_ = 0;
  }

 private:
  std::string bytes_;
  size_t moved_ = 0;
};

class LargeValue final : public ElementSink {
 public:
  // Values of at least this size are written in parts, if their body can do so.
  static constexpr size_t kLeastElements = 1000;
  static bool is_large(const Entry& e) {
    if (!has_value_body(e)) return false;
    const ValueBody& body = *value_body_of(e);
    return body.size() >= kLeastElements && body.can_save_in_parts();
  }

  // `head` begins with the key. The body must live until the last step, or until the LargeValue is
  // destroyed.
  LargeValue(const Entry& e, DbIndex number, std::string head, const Now& now)
      : body_(*value_body_of(e)), type_(type_of(e)), number_(number), now_(now) {
    if (const FieldDeadlines* fields = field_deadlines_of(e)) first_deadline_ = fields->first();
    waiting_.bytes() = std::move(head);
    body_.begin_save(*this);
  }
  ~LargeValue() override { body_.end_save(); }

  DbIndex number() const { return number_; }
  void put(std::string_view element, std::string_view value) override {
    RdbWriter rdb(waiting_.bytes());
    if (type_ == EntryType::kBigHash) return put_field(element, value, kNever);
    if (type_ == EntryType::kZset) return rdb.scored_member(element, ZsetBody::score_of(value));
    rdb.element(element);
  }
  // A field that got its deadline after the beginning is passed before that, without one.
  void put_field(std::string_view field, std::string_view value, TimeMs deadline) override {
    RdbWriter rdb(waiting_.bytes());
    if (!first_deadline_) return rdb.field(field, value);
    rdb.timed_field(field, value, saved_deadline(deadline, now_), saved_deadline(*first_deadline_, now_));
  }
  // Writes the next part. Returns true if it was the last.
  bool step(std::string& out) {
    constexpr size_t kStepElements = 256;
    if (waiting_.empty() && !complete_) complete_ = body_.save_some(kStepElements);
    waiting_.move_some(out);
    return complete_ && waiting_.empty();
  }

 private:
  ValueBody& body_;
  EntryType type_;
  DbIndex number_;
  Now now_;
  std::optional<TimeMs> first_deadline_;  // of a hash that had deadlines of fields at the beginning
  bool complete_ = false;
  WaitingBytes waiting_;
};

}  // namespace holdfast
