// Reads hashes, lists, sets and sorted sets of an RDB file, in all encodings up to those of Redis 7.0, and
// the packed sets of 7.2. A value is one of three: elements one by one, nodes that are packed lists of
// elements, or one packed list.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "core/base/score.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_input.h"
#include "core/codec/rdb_packed.h"
#include "core/codec/rdb_reader.h"

namespace holdfast {

namespace {

using Kind = RdbCollection;

using Form = PackedList::Form;

struct Encoding {
  uint8_t type;
  Kind kind;
  std::optional<Form> packed = {};  // none: elements one by one
  bool nodes = false;               // several packed lists
};

constexpr Encoding kEncodings[] = {
    {rdb::kTypeHash, Kind::kHash},
    {rdb::kTypeHashZipmap, Kind::kHash, Form::kZipmap},
    {rdb::kTypeHashZiplist, Kind::kHash, Form::kZiplist},
    {rdb::kTypeHashListpack, Kind::kHash, Form::kListpack},
    {rdb::kTypeList, Kind::kList},
    {rdb::kTypeListZiplist, Kind::kList, Form::kZiplist},
    {rdb::kTypeListQuicklist, Kind::kList, Form::kZiplist, true},
    {rdb::kTypeListQuicklist2, Kind::kList, Form::kListpack, true},
    {rdb::kTypeSet, Kind::kSet},
    {rdb::kTypeSetIntset, Kind::kSet, Form::kIntset},
    {rdb::kTypeSetListpack, Kind::kSet, Form::kListpack},
    {rdb::kTypeZset, Kind::kZset},
    {rdb::kTypeZset2, Kind::kZset},
    {rdb::kTypeZsetZiplist, Kind::kZset, Form::kZiplist},
    {rdb::kTypeZsetListpack, Kind::kZset, Form::kListpack},
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
  const bool one_text = encoding.packed && !encoding.nodes;
  const std::string_view packed = one_text ? in.text(value_text_) : std::string_view{};
  const uint64_t elements = one_text ? 1 : in.length();
  if (!in.good()) return;
  type_ = type;
  kind_ = encoding.kind;
  left_ = elements;
  if (elements == 0) return static_cast<void>(in.wrong(empty_value()));
  sink_.begin_collection(kind_, db_, key, expire_ms_);
  if (one_text) return begin_packed(*encoding.packed, packed);
  state_ = State::kElements;
}

std::string RdbReader::empty_value() const {
  return "a " + std::string(name_of(kind_)) + " without elements";
}

void RdbReader::begin_packed(Form form, std::string_view packed) {
  packed_ = PackedList(form, packed);
  texts_held_ = 0;
  passed_ = 0;
  state_ = State::kPacked;
}

// Passes the next elements of the packed list to the sink.
void RdbReader::read_packed(Input& in) {
  const size_t texts = has_deadlines(type_) ? 3 : has_pairs(kind_) ? 2 : 1;  // of an element
  while (effort_ > 0) {
    const auto text = packed_.next();
    if (!text) return end_packed(in);
    spend_on(text->size());
    if (texts_held_ + 1 < texts) {
      texts_[texts_held_++] = *text;
      continue;
    }
    if (!pass_element(in, *text)) return;
    texts_held_ = 0;
    ++passed_;
  }
}

void RdbReader::end_packed(Input& in) {
  const bool timed = has_deadlines(type_);
  if (!packed_.good() || texts_held_ > 0 || (timed && passed_ == 0)) {
    return static_cast<void>(in.wrong("a packed " + std::string(name_of(kind_)) + " is damaged"));
  }
  if (passed_ == 0 && !timed && !encoding_of(type_)->nodes)
    return static_cast<void>(in.wrong(empty_value()));
  state_ = State::kElements;
  if (--left_ == 0) end_value();
}

// `text`: the last text of the element; those before it are held.
bool RdbReader::pass_element(Input& in, std::string_view text) {
  if (has_deadlines(type_)) return pass_packed_field(in, text);
  if (!sink_.has_room(text.size())) return in.wrong(Input::kNoRoom), false;
  if (kind_ == Kind::kHash) return sink_.field(texts_[0], text), true;
  if (kind_ != Kind::kZset) return sink_.element(text, 0), true;
  const auto score = parse_score(text);
  if (!score) return in.wrong("a score is not a number"), false;
  return sink_.element(texts_[0], *score), true;
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
    return in.good() ? begin_packed(*encoding.packed, text) : void();
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
