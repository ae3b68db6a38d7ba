// A value is written and read as an RDB file with one key, whose name is empty.
#include "core/persist/payload.h"

#include <absl/container/flat_hash_set.h>

#include "core/base/checksum.h"
#include "core/base/config.h"
#include "core/base/hash.h"
#include "core/codec/hold_codec.h"
#include "core/codec/rdb.h"
#include "core/events/run_command.h"
#include "core/keyspace/hash_view.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"
#include "core/lock/set_changes.h"
#include "core/lock/zset_changes.h"
#include "core/state/context.h"

namespace holdfast {

namespace {

constexpr size_t kVersionBytes = 2;
constexpr std::string_view kEmptyName("\0", 1);

uint64_t low_first(std::string_view bytes) {
  uint64_t n = 0;
  for (size_t i = bytes.size(); i-- > 0;) n = (n << 8U) | static_cast<uint8_t>(bytes[i]);
  return n;
}

class OneValue : public RdbSink {
 public:
  OneValue(const EngineState& s, const Now& now, uint64_t room) : s_(s), now_(now), room_(room) {}

  DumpedValue value;
  size_t values = 0;
  bool good = true;  // nothing else is there, and no element twice
  mutable bool too_large = false;

 private:
  bool has_room(uint64_t bytes) const override {
    if (!good) return false;
    const ValueBody* const body = hash_ != nullptr ? hash_.get() : value.body.get();
    too_large = (body == nullptr ? 0 : body->bytes()) + bytes > room_;
    return !too_large;
  }
  void aux(std::string_view, std::string_view) override { good = false; }
  void library(std::string_view) override { good = false; }
  void string(uint64_t, std::string_view, std::string_view text, int64_t) override {
    ++values;
    value.type = EntryType::kString;
    value.string = text;
  }
  void field(std::string_view name, std::string_view text) override {
    if (hash_ == nullptr && value.fields.size() >= s_.config.limits.hash_packed_entries) make_large();
    if (hash_ == nullptr) {
      value.fields.emplace_back(name, text);
    } else {
      good = hash_->set(name, text) && good;
    }
  }
  void make_large() {
    hash_ = std::make_unique<HashBody>(s_.config.hash_seed);
    for (const auto& [field, old] : std::exchange(value.fields, {})) good = hash_->set(field, old) && good;
  }
  void timed_field(std::string_view name, std::string_view text, int64_t deadline_ms) override {
    if (hash_ == nullptr) make_large();
    good = hash_->set(name, text) && good;
    hash_->set_deadline(name, restored_deadline(deadline_ms, now_), kNever);
  }
  void begin_collection(RdbCollection kind, uint64_t, std::string_view, int64_t) override {
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
  void element(std::string_view text, double score) override {
    if (value.type == EntryType::kList) {
      static_cast<ListBody&>(*value.body).push(ListEnd::kTail, text);
    } else if (value.type == EntryType::kSet) {
      good = static_cast<SetBody&>(*value.body).add(text) && good;
    } else {
      const auto change = static_cast<ZsetBody&>(*value.body).set(text, score, loading_zset_limits(s_));
      good = change == ScoreChange::kAdded && good;
    }
  }
  void end_collection() override {
    if (value.type == EntryType::kZset) static_cast<ZsetBody&>(*value.body).drop_minus_zero();
    if (hash_ == nullptr) return;
    value.type = EntryType::kBigHash;
    value.body = std::move(hash_);
  }

  const EngineState& s_;
  Now now_;
  uint64_t room_;
  std::unique_ptr<HashBody> hash_;  // if it has many fields, or fields with deadlines
};

bool has_twins(const std::vector<std::pair<std::string, std::string>>& fields) {
  absl::flat_hash_set<std::string_view, StringHash> names;
  for (const auto& [name, text] : fields) {
    if (!names.insert(name).second) return true;
  }
  return false;
}

}  // namespace

void seal_payload(std::string& payload) {
  payload.push_back(static_cast<char>(rdb::kVersion));
  payload.push_back('\0');
  append_crc(payload, crc64(0, payload));
}

std::optional<std::string_view> open_payload(std::string_view payload) {
  constexpr size_t kFooter = kVersionBytes + rdb::kChecksumBytes;
  if (payload.size() < kFooter) return std::nullopt;
  const std::string_view body = payload.substr(0, payload.size() - kFooter);
  const std::string_view checked = payload.substr(0, payload.size() - rdb::kChecksumBytes);
  if (low_first(checked.substr(body.size())) > rdb::kLatestVersion) return std::nullopt;
  if (low_first(payload.substr(checked.size())) != crc64(0, checked)) return std::nullopt;
  return body;
}

std::string rdb_head() {
  std::string head;
  RdbWriter(head).header();
  return head;
}

std::string rdb_tail() {
  std::string tail;
  RdbWriter(tail).end();
  append_crc(tail, 0);  // none: open_payload() has checked the bytes
  return tail;
}

void begin_hash_value(RdbWriter& rdb, std::string_view key, const Entry& e, size_t fields, const Now& now) {
  const FieldDeadlines* const deadlines = field_deadlines_of(e);
  if (deadlines == nullptr) return rdb.begin_hash(key, fields);
  rdb.begin_timed_hash(key, fields, saved_deadline(deadlines->first(), now));
}

void put_fields(RdbWriter& rdb, const Entry& e, const Now& now) {
  const FieldDeadlines* const deadlines = field_deadlines_of(e);
  if (deadlines == nullptr) {
    return HashView(e).for_each(
        [&](std::string_view field, std::string_view value) { rdb.field(field, value); });
  }
  const int64_t first_ms = saved_deadline(deadlines->first(), now);
  hash_body_of(e)->for_each([&](std::string_view field, std::string_view value, TimeMs deadline) {
    rdb.timed_field(field, value, saved_deadline(deadline, now), first_ms);
  });
}

std::string dump_value(const Entry& e, const Now& now) {
  std::string out;
  RdbWriter rdb(out);
  if (type_of(e) == EntryType::kSet) {
    const auto& set = body_of<SetBody>(e);
    rdb.begin_set({}, set.size());
    set.for_each([&](std::string_view member) { rdb.element(member); });
  } else if (type_of(e) == EntryType::kList) {
    const auto& list = body_of<ListBody>(e);
    rdb.begin_list({}, list.size());
    for (auto at = list.first(); at.valid(); at.next()) rdb.element(at.get());
  } else if (type_of(e) == EntryType::kZset) {
    const auto& zset = body_of<ZsetBody>(e);
    rdb.begin_zset({}, zset.size());
    zset.for_each([&](std::string_view member, double score) { rdb.scored_member(member, score); });
  } else if (is_hash(e)) {
    begin_hash_value(rdb, {}, e, HashView(e).size(), now);
    put_fields(rdb, e, now);
  } else {
    rdb.string({}, value_of(e));
  }
  out.erase(1, kEmptyName.size());  // behind the type
  seal_payload(out);
  return out;
}

std::string_view read_dumped_value(const EngineState& s, const Now& now, std::string_view bytes,
                                   uint64_t room, DumpedValue& value) {
  constexpr std::string_view kBad = "ERR Bad data format";
  if (bytes.empty()) return kBad;
  OneValue sink(s, now, room);
  RdbReader reader(sink, false);
  const std::string head = rdb_head().append(bytes.substr(0, 1)).append(kEmptyName);
  const bool good =
      reader.feed(head) && reader.feed(bytes.substr(1)) && reader.feed(rdb_tail()) && reader.finish();
  if (sink.too_large) return kOomText;
  if (!good || sink.values != 1 || !sink.good || has_twins(sink.value.fields)) return kBad;
  value = std::move(sink.value);
  return {};
}

}  // namespace holdfast
