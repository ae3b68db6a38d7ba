// A large value of a snapshot, written in parts while clients change it. The elements of hashes and sets
// have no order in the file: one that changes before it is written is kept in memory, with its old content,
// until the file reaches the value. A list saves a copy of itself, in order. Knows the format of the
// elements, not that of the key before them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
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

// Bytes that wait for their place in the file, in pieces, so that no growth copies many bytes. The snapshot
// takes them in parts. Counts the memory of all pieces but the last one.
class WaitingBytes {
 public:
  // `total` must outlive it.
  explicit WaitingBytes(uint64_t& total) : total_(total) {}
  WaitingBytes(const WaitingBytes&) = delete;
  WaitingBytes& operator=(const WaitingBytes&) = delete;
  ~WaitingBytes() { total_ -= counted_; }

  bool empty() const { return pieces_.empty() || pieces_.front().empty(); }
  // The string to append to. Valid until the next call of a function that is not const.
  std::string& end() {
    if (pieces_.empty()) pieces_.emplace_back();
    if (pieces_.back().size() < kPieceBytes) return pieces_.back();
    count(pieces_.back().capacity());
    return pieces_.emplace_back();
  }
  void move_some(std::string& out) {
    if (empty()) return;
    std::string& first = pieces_.front();
    const size_t n = std::min(kPieceBytes, first.size() - moved_);
    out.append(first, moved_, n);
    moved_ += n;
    if (moved_ < first.size()) return;
    moved_ = 0;
    if (pieces_.size() == 1 && first.capacity() <= 2 * kPieceBytes) return first.clear();
    if (pieces_.size() > 1) count(-first.capacity());
    pieces_.pop_front();
  }

 private:
  static constexpr size_t kPieceBytes = size_t{128} << 10U;
  void count(uint64_t bytes) {
    total_ += bytes;
    counted_ += bytes;
  }

  uint64_t& total_;
  uint64_t counted_ = 0;
  std::deque<std::string> pieces_;  // the first is empty only if it is the only one
  size_t moved_ = 0;                // of the first
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
  // destroyed. Its memory counts in `waiting_bytes`.
  LargeValue(const Entry& e, DbIndex number, std::string head, const Now& now, uint64_t& waiting_bytes)
      : body_(*value_body_of(e)), type_(type_of(e)), number_(number), now_(now), waiting_(waiting_bytes) {
    if (const FieldDeadlines* fields = field_deadlines_of(e)) first_deadline_ = fields->first();
    waiting_.end() = std::move(head);
    body_.begin_save(*this);
  }
  ~LargeValue() override { body_.end_save(); }

  DbIndex number() const { return number_; }
  void put(std::string_view element, std::string_view value) override {
    if (type_ == EntryType::kBigHash) return put_field(element, value, kNever);
    RdbWriter rdb(waiting_.end());
    if (type_ == EntryType::kZset) return rdb.scored_member(element, ZsetBody::score_of(value));
    rdb.element(element);
  }
  // A field that got its deadline after the beginning is passed before that, without one.
  void put_field(std::string_view field, std::string_view value, TimeMs deadline) override {
    RdbWriter rdb(waiting_.end());
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
