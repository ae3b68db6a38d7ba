// Reads the file item by item. An incomplete item is read again when more bytes have come, or when another
// step unpacks the next part of its text.
#include "core/codec/rdb_reader.h"

#include <algorithm>
#include <utility>

#include "core/base/checksum.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_input.h"

namespace holdfast {

bool RdbReader::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  std::string joined;
  if (!pending_.empty()) {
    pending_.append(bytes);
    // To read a long text again after every piece would take quadratic time.
    if (pending_.size() < wanted_) return true;
    joined = std::exchange(pending_, {});
    bytes = joined;
  }
  effort_ = SIZE_MAX;
  bytes.remove_prefix(read_items(bytes));
  if (error_.empty()) pending_ = bytes;
  return error_.empty();
}

bool RdbReader::feed_some(std::string_view& rest, size_t effort) {
  effort_ = effort;
  rest.remove_prefix(read_items(rest));
  if (state_ != State::kEnd && effort_ > 0) fail("the file is incomplete");
  return !error_.empty() || (state_ == State::kEnd && rest.empty());
}

// Returns the number of bytes that complete items have used.
size_t RdbReader::read_items(std::string_view bytes) {
  size_t used = 0;
  while (error_.empty() && effort_ > 0 && (used < bytes.size() || state_ == State::kPacked)) {
    if (state_ == State::kEnd) {
      fail("bytes follow the end of the file");
      break;
    }
    Input in(*this, bytes.substr(used));
    if (!step(in)) {
      wanted_ = in.wanted();
      break;
    }
    if (state_ != State::kEnd) crc_ = crc64(crc_, bytes.substr(used, in.used()));
    used += in.used();
    position_ += in.used();
    spend_on(in.used());
    if (state_ == State::kPacked) continue;  // which is a part of the item, and has a view of its text
    offset_ = position_;
    key_text_.clear();
    value_text_.clear();
  }
  return used;
}

void RdbReader::spend_on(size_t bytes) { effort_ -= std::min(effort_, 1 + bytes / 1024); }

// Reads one item. Returns false if it is incomplete or wrong.
bool RdbReader::step(Input& in) {
  const State before = state_;
  switch (before) {
    case State::kHeader:
      read_header(in);
      break;
    case State::kItem:
      read_item(in);
      break;
    case State::kElements:
      read_element(in);
      break;
    case State::kPacked:
      read_packed(in);
      break;
    case State::kModule:
      skip_module_part(in);
      break;
    case State::kChecksum:
      read_checksum(in);
      break;
    case State::kEnd:
      break;
  }
  if (!in.wrong().empty()) fail(in.wrong());
  return error_.empty() && !in.short_of_bytes();
}

bool RdbReader::finish() {
  if (error_.empty() && state_ != State::kEnd) fail("the file is incomplete");
  return error_.empty();
}

void RdbReader::fail(const std::string& why) {
  if (error_.empty()) error_ = "at byte " + std::to_string(offset_) + ": " + why;
}

void RdbReader::read_header(Input& in) {
  const std::string_view magic = in.take(rdb::kMagic.size());
  if (!in.short_of_bytes() && magic != rdb::kMagic) return static_cast<void>(in.wrong("not an RDB file"));
  int version = 0;
  for (const char c : in.take(4)) {
    if (c < '0' || c > '9') return static_cast<void>(in.wrong("not an RDB file"));
    version = version * 10 + (c - '0');
  }
  if (in.short_of_bytes()) return;
  if (version < 1) return static_cast<void>(in.wrong("not an RDB file"));
  if (version > rdb::kLatestVersion) {
    return static_cast<void>(in.wrong("written by a newer Redis: RDB version " + std::to_string(version) +
                                      ", " + std::to_string(rdb::kLatestVersion) +
                                      " is the newest supported"));
  }
  version_ = version;
  state_ = State::kItem;
}

void RdbReader::read_item(Input& in) {
  const uint8_t op = in.u8();
  switch (op) {
    case rdb::kOpAux: {
      const std::string_view name = in.text(key_text_);
      const std::string_view value = in.text(value_text_);
      if (in.good()) sink_.aux(name, value);
      return;
    }
    case rdb::kOpResizeDb:
      in.length();
      in.length();
      return;
    case rdb::kOpSelectDb: {
      const uint64_t db = in.length();
      if (!in.short_of_bytes()) db_ = db;
      return;
    }
    case rdb::kOpExpireMs:
    case rdb::kOpExpire: {
      const uint64_t n = in.low_first(op == rdb::kOpExpireMs ? 8 : 4);
      if (in.short_of_bytes()) return;
      // Like Redis: -1 is no deadline. Another deadline before 1970 is over, and not in a far future.
      const auto ms = static_cast<int64_t>(op == rdb::kOpExpireMs ? n : n * 1000);
      expire_ms_ = ms == RdbSink::kNoExpiry ? ms : std::max<int64_t>(ms, 0);
      return;
    }
    case rdb::kOpFreq:
      in.take(1);
      return;
    case rdb::kOpIdle:
      in.length();
      return;
    case rdb::kOpFunction2:
      if (const std::string_view code = in.text(value_text_); !in.short_of_bytes() && in.wrong().empty()) {
        sink_.library(code);
      }
      return;
    case rdb::kOpEnd:
      // Versions below 5 have no checksum.
      if (!in.short_of_bytes()) state_ = version_ >= 5 ? State::kChecksum : State::kEnd;
      return;
    default:
      return read_key(in, op);
  }
}

void RdbReader::read_key(Input& in, uint8_t type) {
  if (in.short_of_bytes()) return;
  if (type == rdb::kOpModuleAux) return skip_module_data(in);
  if (type != rdb::kTypeString) return begins_value(type) ? read_value(in, type) : skip_value(in, type);
  const std::string_view key = in.text(key_text_);
  const std::string_view value = in.text(value_text_);
  if (!in.good()) return;
  sink_.string(db_, key, value, expire_ms_);
  end_key();
}

void RdbReader::end_key() {
  expire_ms_ = RdbSink::kNoExpiry;
  state_ = State::kItem;
}

// A checksum of 0 means that none was computed.
void RdbReader::read_checksum(Input& in) {
  const uint64_t crc = in.low_first(rdb::kChecksumBytes);
  if (in.short_of_bytes()) return;
  if (crc != 0 && crc != crc_)
    return static_cast<void>(in.wrong("the checksum of the file does not match"));
  state_ = State::kEnd;
}

}  // namespace holdfast
