// Reads the file item by item. An incomplete item is read again when more bytes have come.
#include "core/codec/rdb_reader.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/base/checksum.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_packed.h"

namespace holdfast {

namespace {

constexpr std::array<std::string_view, 22> kTypeNames{
    "string",       "list",         "set",  "sorted set", "hash", "sorted set",
    "module value", "module value", "",     "hash",       "list", "set",
    "sorted set",   "hash",         "list", "stream",     "hash", "sorted set",
    "list",         "stream",       "set",  "stream"};

std::string_view type_name(uint8_t type) {
  return type < kTypeNames.size() && !kTypeNames[type].empty() ? kTypeNames[type]
                                                               : "value of an unknown type";
}

// Returns the parts of each element of a value that is skipped. Empty if the type needs much more knowledge
// of Redis.
constexpr char kText = 't', kDouble = 'd', kDoubleText = 'D', kNumber = 'n', kModulePart = 'm';
std::string_view element_parts(uint8_t type) {
  switch (type) {
    case 14:  // list of ziplists
      return "t";
    case 3:
      return "tD";
    case 5:
      return "td";
    case rdb::kTypeModule:
      return "m";
    case 18:  // list of listpacks
      return "nt";
    default:
      return "";
  }
}
// Whether the whole value is one packed text.
bool is_one_text(uint8_t type) { return (type >= 10 && type <= 12) || type == 17 || type == 20; }

bool is_hash(uint8_t type) {
  return type == rdb::kTypeHash || type == rdb::kTypeHashZipmap || type == rdb::kTypeHashZiplist ||
         type == rdb::kTypeHashListpack;
}

}  // namespace

// The received bytes of the present item. A read beyond them sets short_of_bytes(); an invalid value sets
// wrong().
class RdbReader::Input {
 public:
  explicit Input(std::string_view bytes) : bytes_(bytes) {}

  bool short_of_bytes() const { return short_; }
  const std::string& wrong() const { return wrong_; }
  size_t used() const { return used_; }
  size_t wanted() const { return wanted_; }  // bytes needed in all, if they are short

  std::string_view take(uint64_t n) {
    if (!short_ && n > bytes_.size() - used_) wanted_ = used_ + n;
    if (short_ || wanted_ > 0) return short_ = true, std::string_view{};
    used_ += n;
    return bytes_.substr(used_ - n, n);
  }
  uint8_t u8() {
    const std::string_view byte = take(1);
    return byte.empty() ? uint8_t{0} : static_cast<uint8_t>(byte[0]);
  }
  uint64_t low_first(size_t n) {
    const std::string_view bytes = take(n);
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = (value << 8U) | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  // Reads a length or, if it sets `special`, the encoding of a text without a length.
  uint64_t length(bool& special) {
    const uint8_t first = u8();
    special = (first >> 6U) == 3;
    if (special || (first >> 6U) == 0) return first & 0x3FU;
    if ((first >> 6U) == 1) return (uint64_t{first & 0x3FU} << 8U) | u8();
    if (first == 0x80) return high_first(4);
    if (first == 0x81) return high_first(8);
    wrong("unknown encoding of a length");
    return 0;
  }
  uint64_t length() {
    bool special = false;
    const uint64_t n = length(special);
    if (special) wrong("expected a length");
    return n;
  }
  // Reads a text. `scratch` holds it if it had to be unpacked.
  std::string_view text(std::string& scratch) {
    bool special = false;
    const uint64_t n = length(special);
    if (short_ || !wrong_.empty()) return {};
    if (!special) return n > kMaxTextBytes ? wrong("a string of more than 512 MiB") : take(n);
    if (n == 3) return packed_text(scratch);
    if (n > 3) return wrong("unknown encoding of a string");
    const unsigned bytes = 1U << static_cast<unsigned>(n);
    const unsigned unused = 64 - 8 * bytes;
    scratch = std::to_string(static_cast<int64_t>(low_first(bytes) << unused) >> unused);
    return scratch;
  }
  std::string_view wrong(std::string_view why) {
    if (wrong_.empty() && !short_) wrong_ = why;
    return {};
  }

 private:
  uint64_t high_first(size_t n) {
    uint64_t value = 0;
    for (const char c : take(n)) value = (value << 8U) | static_cast<uint8_t>(c);
    return value;
  }
  std::string_view packed_text(std::string& scratch) {
    const uint64_t packed = length();
    const uint64_t size = length();
    if (packed > kMaxTextBytes || size > kMaxTextBytes) return wrong("a string of more than 512 MiB");
    const std::string_view bytes = take(packed);
    if (short_) return {};
    if (!unpack_lzf(bytes, size, scratch)) return wrong("a compressed string is damaged");
    return scratch;
  }

  std::string_view bytes_;
  size_t used_ = 0;
  size_t wanted_ = 0;
  bool short_ = false;
  std::string wrong_;
};

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
  while (!bytes.empty() && error_.empty()) {
    if (state_ == State::kEnd) {
      fail("bytes follow the end of the file");
      break;
    }
    Input in(bytes);
    if (!step(in)) {
      wanted_ = in.wanted();
      break;
    }
    if (state_ != State::kEnd) crc_ = crc64(crc_, bytes.substr(0, in.used()));
    offset_ += in.used();
    bytes.remove_prefix(in.used());
  }
  if (error_.empty()) pending_ = bytes;
  return error_.empty();
}

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
    case State::kFields:
      read_field(in);
      break;
    case State::kElements:
      read_element(in);
      break;
    case State::kSkipped:
      skip_element(in);
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
  if (version > rdb::kVersion) {
    return static_cast<void>(in.wrong("written by a newer Redis: RDB version " + std::to_string(version) +
                                      ", " + std::to_string(rdb::kVersion) + " is the newest supported"));
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
      if (!in.short_of_bytes() && in.wrong().empty()) sink_.aux(name, value);
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
      in.text(value_text_);
      if (!skip_unknown_)
        in.wrong("unsupported: a library of functions (--skip-unsupported-types yes skips it)");
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
  if (type_name(type).starts_with("value"))
    return static_cast<void>(in.wrong("an item of an unknown type"));
  const std::string_view key = in.text(key_text_);
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  if (type == rdb::kTypeString) {
    const std::string_view value = in.text(value_text_);
    if (in.short_of_bytes() || !in.wrong().empty()) return;
    sink_.string(db_, key, value, expire_ms_);
    return end_key();
  }
  if (type == rdb::kTypeSet) return begin_elements(in, RdbCollection::kSet, key);
  if (type == rdb::kTypeList) return begin_elements(in, RdbCollection::kList, key);
  if (!is_hash(type)) return begin_skipping(in, type, key);
  if (type != rdb::kTypeHash) return read_packed_hash(in, type, key);
  const uint64_t fields = in.length();
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  if (fields == 0) return static_cast<void>(in.wrong("a hash without fields"));
  sink_.begin_hash(db_, key, expire_ms_, fields);
  left_ = fields;
  state_ = State::kFields;
}

void RdbReader::end_key() {
  expire_ms_ = RdbSink::kNoExpiry;
  state_ = State::kItem;
}

void RdbReader::read_field(Input& in) {
  const std::string_view name = in.text(key_text_);
  const std::string_view value = in.text(value_text_);
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  sink_.field(name, value);
  if (--left_ > 0) return;
  sink_.end_hash();
  end_key();
}

void RdbReader::begin_elements(Input& in, RdbCollection kind, std::string_view key) {
  const uint64_t elements = in.length();
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  if (elements == 0) return static_cast<void>(in.wrong("a value without elements"));
  sink_.begin_collection(kind, db_, key, expire_ms_, elements);
  left_ = elements;
  state_ = State::kElements;
}

void RdbReader::read_element(Input& in) {
  const std::string_view text = in.text(value_text_);
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  sink_.element(text, 0);
  if (--left_ > 0) return;
  sink_.end_collection();
  end_key();
}

void RdbReader::read_packed_hash(Input& in, uint8_t type, std::string_view key) {
  const std::string_view bytes = in.text(value_text_);
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  std::vector<std::string> texts;
  const auto keep = [&](std::string_view text) { texts.emplace_back(text); };
  const bool good = type == rdb::kTypeHashListpack  ? read_listpack(bytes, keep)
                    : type == rdb::kTypeHashZiplist ? read_ziplist(bytes, keep)
                                                    : read_zipmap(bytes, keep);
  if (!good || texts.empty() || texts.size() % 2 != 0) {
    return static_cast<void>(in.wrong("the hash '" + std::string(key) + "' is damaged"));
  }
  sink_.begin_hash(db_, key, expire_ms_, texts.size() / 2);
  for (size_t i = 0; i < texts.size(); i += 2) sink_.field(texts[i], texts[i + 1]);
  sink_.end_hash();
  end_key();
}

void RdbReader::begin_skipping(Input& in, uint8_t type, std::string_view key) {
  const std::string what = "the key '" + std::string(key) + "' is a " + std::string(type_name(type));
  if (!skip_unknown_) {
    return static_cast<void>(in.wrong(what + ", an unsupported type; only strings and hashes can be loaded "
                                             "(--skip-unsupported-types yes skips other types)"));
  }
  if (!is_one_text(type) && element_parts(type).empty()) {
    return static_cast<void>(
        in.wrong(what + ", an unsupported type that cannot be skipped: delete the key in Redis first"));
  }
  left_ = 0;
  if (is_one_text(type)) {
    in.text(value_text_);
  } else {
    left_ = in.length();
    if (type == rdb::kTypeModule) left_ = 1;  // the length was the module's id; an end mark follows
  }
  if (in.short_of_bytes() || !in.wrong().empty()) return;
  sink_.skipped(db_, key, type_name(type));
  end_key();
  skipped_ = type;
  if (left_ > 0) state_ = State::kSkipped;
}

// Skips the data that a module keeps beside the keys.
void RdbReader::skip_module_data(Input& in) {
  if (!skip_unknown_)
    return static_cast<void>(
        in.wrong("unsupported: data of a module (--skip-unsupported-types yes skips it)"));
  in.length();  // the module's id
  in.length();
  in.length();  // the time at which Redis loads it: before or after the keys
  if (in.short_of_bytes()) return;
  skipped_ = rdb::kTypeModule;
  left_ = 1;
  state_ = State::kSkipped;
}

// Reads a number that names a part's kind, and the part. Returns false at the end mark.
bool RdbReader::skip_module_part(Input& in) {
  switch (in.length()) {
    case 0:
      return false;
    case 1:
    case 2:
      in.length();
      return true;
    case 3:
      in.take(4);
      return true;
    case 4:
      in.take(8);
      return true;
    case 5:
      in.text(value_text_);
      return true;
    default:
      return in.wrong("a module's value has a part of an unknown type"), false;
  }
}

void RdbReader::skip_element(Input& in) {
  constexpr uint8_t kSpecialDouble = 253;  // and above: NaN, infinities
  for (const char part : element_parts(skipped_)) {
    if (part == kText) in.text(value_text_);
    if (part == kDouble) in.take(8);
    if (part == kNumber) in.length();
    if (part == kModulePart && skip_module_part(in) && !in.short_of_bytes()) ++left_;  // another follows
    if (part != kDoubleText) continue;
    const uint8_t size = in.u8();
    if (size < kSpecialDouble) in.take(size);
  }
  if (!in.short_of_bytes() && --left_ == 0) state_ = State::kItem;
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
