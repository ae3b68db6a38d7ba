// Reads hashes, lists, sets and sorted sets of an RDB file, in all encodings up to those of Redis 7.0, and
// the packed sets of 7.2. A value is one of three: elements one by one, nodes that are packed lists of
// elements, or one packed list.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/score.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_input.h"
#include "core/codec/rdb_packed.h"
#include "core/codec/rdb_reader.h"

namespace holdfast {

namespace {

using Kind = RdbCollection;

struct Encoding {
  uint8_t type;
  Kind kind;
  bool (*unpack)(std::string_view, const EachText&);  // null: elements one by one
  bool nodes = false;                                 // several packed lists
};

constexpr Encoding kEncodings[] = {
    {rdb::kTypeHash, Kind::kHash, nullptr},
    {rdb::kTypeHashZipmap, Kind::kHash, read_zipmap},
    {rdb::kTypeHashZiplist, Kind::kHash, read_ziplist},
    {rdb::kTypeHashListpack, Kind::kHash, read_listpack},
    {rdb::kTypeList, Kind::kList, nullptr},
    {rdb::kTypeListZiplist, Kind::kList, read_ziplist},
    {rdb::kTypeListQuicklist, Kind::kList, read_ziplist, true},
    {rdb::kTypeListQuicklist2, Kind::kList, read_listpack, true},
    {rdb::kTypeSet, Kind::kSet, nullptr},
    {rdb::kTypeSetIntset, Kind::kSet, read_intset},
    {rdb::kTypeSetListpack, Kind::kSet, read_listpack},
    {rdb::kTypeZset, Kind::kZset, nullptr},
    {rdb::kTypeZset2, Kind::kZset, nullptr},
    {rdb::kTypeZsetZiplist, Kind::kZset, read_ziplist},
    {rdb::kTypeZsetListpack, Kind::kZset, read_listpack},
};

const Encoding* encoding_of(uint8_t type) {
  const auto* found = std::ranges::find(kEncodings, type, &Encoding::type);
  return found == std::end(kEncodings) ? nullptr : found;
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {"hash", "list", "set", "sorted set"};
  return kNames[static_cast<size_t>(kind)];
}

// Whether elements come in pairs: field and value, or member and score.
bool has_pairs(Kind kind) { return kind == Kind::kHash || kind == Kind::kZset; }

}  // namespace

bool RdbReader::begins_value(uint8_t type) { return encoding_of(type) != nullptr || has_deadlines(type); }

void RdbReader::read_value(Input& in, uint8_t type) {
  if (has_deadlines(type)) return read_timed_hash(in, type);
  const Encoding& encoding = *encoding_of(type);
  const std::string_view key = in.text(key_text_);
  const bool one_text = encoding.unpack != nullptr && !encoding.nodes;
  const std::string_view packed = one_text ? in.text(value_text_) : std::string_view{};
  const uint64_t elements = one_text ? 1 : in.length();
  if (!in.good()) return;
  type_ = type;
  kind_ = encoding.kind;
  left_ = elements;
  if (elements == 0) return static_cast<void>(in.wrong(empty_value()));
  if (one_text) {
    sink_.begin_collection(kind_, db_, key, expire_ms_);
    if (pass_packed(in, packed) == 0) in.wrong(empty_value());
    return in.good() ? end_value() : void();
  }
  sink_.begin_collection(kind_, db_, key, expire_ms_);
  state_ = State::kElements;
}

std::string RdbReader::empty_value() const {
  return "a " + std::string(name_of(kind_)) + " without elements";
}

// Passes the elements of a packed list to the sink. Returns their number.
uint64_t RdbReader::pass_packed(Input& in, std::string_view packed) {
  std::string first;
  bool half = false;
  uint64_t passed = 0;
  const bool good = encoding_of(type_)->unpack(packed, [&](std::string_view text) {
    half = has_pairs(kind_) && !half;
    if (half) return first = text, true;
    ++passed;
    return pass_element(in, first, text);
  });
  if (in.good() && (!good || half)) in.wrong("a packed " + std::string(name_of(kind_)) + " is damaged");
  return passed;
}

// `first`: the field of a hash, or the member of a sorted set.
bool RdbReader::pass_element(Input& in, std::string_view first, std::string_view text) {
  if (!sink_.has_room(text.size())) return in.wrong(Input::kNoRoom), false;
  if (kind_ == Kind::kHash) return sink_.field(first, text), true;
  if (kind_ != Kind::kZset) return sink_.element(text, 0), true;
  const auto score = parse_score(text);
  if (!score) return in.wrong("a score is not a number"), false;
  return sink_.element(first, *score), true;
}

// Reads a score behind its member. The first byte of a text is its size, or one of three special scores.
double RdbReader::read_score(Input& in) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (type_ == rdb::kTypeZset2) return std::bit_cast<double>(in.low_first(sizeof(double)));
  switch (const uint8_t size = in.u8()) {
    case 255:
      return -kInfinity;
    case 254:
      return kInfinity;
    case 253:
      return std::nan("");
    default:
      return parse_score(in.take(size)).value_or(std::nan(""));
  }
}

// One element, or a node of a list.
void RdbReader::read_element(Input& in) {
  if (has_deadlines(type_)) return read_timed_field(in);
  constexpr uint64_t kPlainNode = 1;
  const Encoding& encoding = *encoding_of(type_);
  const bool plain_node = type_ == rdb::kTypeListQuicklist2 && in.length() == kPlainNode;
  const std::string_view text = in.text(key_text_);
  if (encoding.kind == Kind::kHash) {
    const std::string_view value = in.text(value_text_);
    if (in.good()) sink_.field(text, value);
  } else if (encoding.kind == Kind::kZset) {
    const double score = read_score(in);
    if (std::isnan(score)) in.wrong("a score is not a number");
    if (in.good()) sink_.element(text, score);
  } else if (encoding.nodes && !plain_node) {
    if (in.good()) pass_packed(in, text);
  } else if (in.good()) {
    sink_.element(text, 0);
  }
  if (in.good() && --left_ == 0) end_value();
}

void RdbReader::end_value() {
  sink_.end_collection();
  end_key();
}

}  // namespace holdfast
