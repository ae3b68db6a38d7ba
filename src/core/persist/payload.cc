// A value is written and read as an RDB file with one key, whose name is empty.
#include "core/persist/payload.h"

#include "core/base/checksum.h"
#include "core/codec/hold_codec.h"
#include "core/codec/rdb.h"
#include "core/keyspace/hash_view.h"
#include "core/keyspace/list_body.h"
#include "core/keyspace/set_body.h"
#include "core/keyspace/zset_body.h"

namespace holdfast {

namespace {

constexpr size_t kVersionBytes = 2;

uint64_t low_first(std::string_view bytes) {
  uint64_t n = 0;
  for (size_t i = bytes.size(); i-- > 0;) n = (n << 8U) | static_cast<uint8_t>(bytes[i]);
  return n;
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

}  // namespace holdfast
