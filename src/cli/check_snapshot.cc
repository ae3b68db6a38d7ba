// Counts the keys of a snapshot.
#include "cli/check_snapshot.h"

#include <fmt/format.h>

#include "core/codec/rdb_reader.h"
#include "io/disk/gunzip.h"

namespace holdfast {
namespace {

class Counter : public RdbSink {
 public:
  SnapshotFacts facts;

 private:
  void string(uint64_t, std::string_view, std::string_view, int64_t) override { ++facts.strings; }
  void begin_collection(RdbCollection kind, uint64_t, std::string_view, int64_t) override {
    ++(kind == RdbCollection::kHash ? facts.hashes : facts.collections);
  }
  void skipped(uint64_t, std::string_view, std::string_view) override { ++facts.others; }
};

}  // namespace

std::string SnapshotFacts::text() const {
  return fmt::format(
      "a snapshot of {} bytes unpacked, with {} strings and locks, {} hashes and locks with several "
      "holders, {} lists, sets and sorted sets, {} keys of unsupported types",
      bytes, strings, hashes, collections, others);
}

Result<SnapshotFacts> read_snapshot(Files& files, const std::string& name) {
  auto file = Gunzip::open(files, name);
  if (!file) return Failure{file.error()};
  Counter counter;
  RdbReader reader(counter, true);
  for (bool first = true;; first = false) {
    auto bytes = (*file)->next();
    if (!bytes) return Failure{bytes.error()};
    if (bytes->empty()) break;
    if (first) counter.facts.journal = peek_journal(*bytes);
    if (!reader.feed(*bytes)) return Failure{reader.error()};
  }
  if (!reader.finish()) return Failure{reader.error()};
  counter.facts.bytes = reader.offset();
  return counter.facts;
}

}  // namespace holdfast
