// A value is written and read as an RDB file with one key, whose name is empty.
#include "core/persist/payload.h"

#include <absl/container/flat_hash_set.h>

#include "core/base/checksum.h"
#include "core/base/hash.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_writer.h"
#include "core/keyspace/hash_view.h"

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
  DumpedValue value;
  size_t values = 0;
  bool alone = true;  // nothing else is there

 private:
  void aux(std::string_view, std::string_view) override { alone = false; }
  void string(uint64_t, std::string_view, std::string_view text, int64_t) override {
    ++values;
    value.type = EntryType::kString;
    value.string = text;
  }
  void begin_hash(uint64_t, std::string_view, int64_t, uint64_t) override {
    ++values;
    value.type = EntryType::kHash;
  }
  void field(std::string_view name, std::string_view text) override {
    value.fields.emplace_back(name, text);
  }
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
  if (low_first(checked.substr(body.size())) > rdb::kVersion) return std::nullopt;
  if (low_first(payload.substr(checked.size())) != crc64(0, checked)) return std::nullopt;
  return body;
}

std::string dump_value(const Entry& e) {
  std::string out;
  RdbWriter rdb(out);
  if (is_hash(e)) {
    const HashView hash(e);
    rdb.begin_hash({}, hash.size());
    hash.for_each([&](std::string_view field, std::string_view value) { rdb.field(field, value); });
  } else {
    rdb.string({}, value_of(e));
  }
  out.erase(1, kEmptyName.size());  // behind the type
  seal_payload(out);
  return out;
}

std::optional<DumpedValue> read_dumped_value(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  OneValue sink;
  RdbReader reader(sink, false);
  std::string head;
  RdbWriter(head).header();
  head.append(bytes.substr(0, 1)).append(kEmptyName);
  std::string tail;
  RdbWriter(tail).end();
  append_crc(tail, 0);  // none: open_payload() has checked the bytes
  const bool good = reader.feed(head) && reader.feed(bytes.substr(1)) && reader.feed(tail) && reader.finish();
  if (!good || sink.values != 1 || !sink.alone || has_twins(sink.value.fields)) return std::nullopt;
  return std::move(sink.value);
}

}  // namespace holdfast
