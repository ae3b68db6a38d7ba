// The sink and the steps of a ValueReader.
#include "core/persist/value_reader.h"

#include <absl/container/flat_hash_set.h>

#include <algorithm>

#include "core/base/config.h"
#include "core/base/deferred_free.h"
#include "core/base/hash.h"
#include "core/codec/hold_codec.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/persist/payload.h"
#include "core/state/context.h"
#include "core/state/memory_use.h"
#include "core/values/set_changes.h"
#include "core/values/zset_changes.h"

namespace holdfast {

namespace {

bool has_twins(const std::vector<std::pair<std::string, std::string>>& fields) {
  absl::flat_hash_set<std::string_view, StringHash> names;
  for (const auto& [name, text] : fields) {
    if (!names.insert(name).second) return true;
  }
  return false;
}

}  // namespace

uint64_t DumpedValueSink::body_bytes() const {
  const ValueBody* const body = hash != nullptr ? hash.get() : value.body.get();
  return body == nullptr ? 0 : body->bytes();
}

uint64_t DumpedValueSink::bytes() const {
  return body_bytes() + texts[0]->capacity() + texts[1]->capacity();
}

bool DumpedValueSink::has_room(uint64_t bytes) const {
  if (!good) return false;
  too_large = this->bytes() + bytes > most_bytes;
  return !too_large;
}

void DumpedValueSink::string(uint64_t, std::string_view, std::string_view text, int64_t) {
  ++values;
  value.type = EntryType::kString;
  Buffer& unpacked = *texts[1];
  if (unpacked.view().data() == text.data()) return value.string.swap(unpacked);
  value.string.set_limit(text.size());  // no room for more
  value.string.append(text);
}

// Whether the field has a place in a packed hash.
bool DumpedValueSink::is_packed(std::string_view name, std::string_view text) const {
  const Limits& limits = s_.config.limits;
  return hash == nullptr && value.fields.size() < limits.hash_packed_entries &&
         name.size() <= limits.hash_packed_value_bytes && text.size() <= limits.hash_packed_value_bytes;
}

void DumpedValueSink::field(std::string_view name, std::string_view text) {
  if (is_packed(name, text)) return static_cast<void>(value.fields.emplace_back(name, text));
  make_large();
  good = hash->set(name, text) && good;
}

void DumpedValueSink::make_large() {
  if (hash != nullptr) return;
  hash = std::make_unique<HashBody>(s_.config.hash_seed);
  for (const auto& [field, old] : std::exchange(value.fields, {})) good = hash->set(field, old) && good;
}

void DumpedValueSink::timed_field(std::string_view name, std::string_view text, int64_t deadline_ms) {
  make_large();
  good = hash->set(name, text) && good;
  hash->set_deadline(name, restored_deadline(deadline_ms, now_), kNever);
}

void DumpedValueSink::begin_collection(RdbCollection kind, uint64_t, std::string_view, int64_t) {
  ++values;
  switch (kind) {
    case RdbCollection::kHash:
      value.type = EntryType::kHash;
      return;
    case RdbCollection::kList:
      value.type = EntryType::kList;
      value.body = std::make_unique<ListBody>();
      return;
    case RdbCollection::kSet:
      value.type = EntryType::kSet;
      value.body = new_set(s_);
      return;
    case RdbCollection::kZset:
      value.type = EntryType::kZset;
      value.body = new_zset(s_);
  }
}

void DumpedValueSink::element(std::string_view text, double score) {
  if (value.type == EntryType::kList) {
    static_cast<ListBody&>(*value.body).push(ListEnd::kTail, text);
  } else if (value.type == EntryType::kSet) {
    good = static_cast<SetBody&>(*value.body).add(text) && good;
  } else {
    const auto change = static_cast<ZsetBody&>(*value.body).set(text, score, loading_zset_limits(s_));
    good = change == ScoreChange::kAdded && good;
  }
}

void DumpedValueSink::end_collection() {
  if (value.type == EntryType::kZset) static_cast<ZsetBody&>(*value.body).drop_minus_zero();
  if (hash == nullptr) return;
  value.type = EntryType::kBigHash;
  value.body = std::move(hash);
}

ValueReader::ValueReader(EngineState& s, const Now& now, std::string_view bytes)
    : s_(s), ahead_ms_(now.ahead_ms()), sink_(s, now), reader_(sink_, false) {
  const std::string head = rdb_head();
  const std::string tail = rdb_tail();
  const std::string_view type = bytes.substr(0, 1);
  bytes.remove_prefix(type.size());
  const size_t size = head.size() + type.size() + kEmptyName.size() + bytes.size() + tail.size();
  file_.count_in(&s.memory.buffer_bytes);
  file_.set_limit(size);  // no room for more
  file_.reserve(size);
  for (const std::string_view part :
       {std::string_view(head), type, kEmptyName, bytes, std::string_view(tail)}) {
    file_.append(part);
  }
  rest_ = file_.view();
  type_ = rest_.substr(head.size(), type.size());
  bytes_ = rest_.substr(head.size() + type.size() + kEmptyName.size(), bytes.size());
  sink_.texts = reader_.text_memory();
  sink_.good = !type.empty();
  for (Buffer* const buffer : {sink_.texts[0], sink_.texts[1], &sink_.value.string}) {
    buffer->count_in(&s.memory.buffer_bytes);
  }
}

ValueReader::~ValueReader() {
  s_.memory.partial_bytes -= counted_bytes_;
  for (Buffer* const buffer : {&file_, sink_.texts[0], sink_.texts[1], &sink_.value.string}) {
    s_.deferred_free.take(*buffer);
  }
  if (sink_.value.body != nullptr) s_.removed.take(std::move(sink_.value.body));
  if (sink_.hash != nullptr) s_.removed.take(std::move(sink_.hash));
}

bool ValueReader::step(uint64_t room, size_t effort) {
  const uint64_t held = sink_.bytes();
  sink_.most_bytes = room > UINT64_MAX - held ? UINT64_MAX : room + held;
  const bool over = reader_.feed_some(rest_, effort) || !sink_.good;
  const uint64_t body_bytes = sink_.body_bytes();
  s_.memory.partial_bytes += body_bytes - counted_bytes_;
  counted_bytes_ = body_bytes;
  if (over) error_ = verdict();
  return over;
}

std::string_view ValueReader::verdict() const {
  if (sink_.too_large) return kOomText;
  const bool good = reader_.error().empty() && sink_.values == 1 && sink_.good;
  return good && !has_twins(sink_.value.fields) ? std::string_view{} : "ERR Bad data format";
}

}  // namespace holdfast
