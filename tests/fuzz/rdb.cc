// The loader of RDB files. Any bytes are rejected or give a consistent state, the same for every split
// into pieces. A snapshot of that state restores it. Steps of any effort read the same.
#include <string>

#include "core/codec/rdb.h"
#include "core/codec/rdb_reader.h"
#include "fuzz/engines.h"

namespace holdfast::fuzz {
namespace {

const Now kNow = time_at(0);

void check_pieces(Engine& whole, const std::string& why, std::string_view file, size_t piece) {
  Engine pieces(engine_config());
  must(restore(pieces, file, kNow, piece) == why, "pieces give what the whole gives");
  must(state_text(pieces, kNow) == state_text(whole, kNow), "pieces give the same state");
}

// The calls that a sink gets, as text.
class Calls : public RdbSink {
 public:
  std::string text;

 private:
  void note(std::string_view a, std::string_view b) { text.append(a).append(b).push_back('\n'); }
  void aux(std::string_view name, std::string_view value) override { note(name, value); }
  void string(uint64_t, std::string_view key, std::string_view value, int64_t) override {
    note(key, value);
  }
  void begin_collection(RdbCollection, uint64_t, std::string_view key, int64_t) override { note("+", key); }
  void field(std::string_view name, std::string_view value) override { note(name, value); }
  void element(std::string_view element, double) override { note(element, {}); }
  void end_collection() override { note("-", {}); }
  void library(std::string_view code) override { note("library", code); }
};

std::string calls_in_steps(std::string_view file, size_t effort) {
  Calls calls;
  RdbReader reader(calls, true);
  while (!reader.feed_some(file, effort)) {
  }
  return calls.text + reader.error();
}

void check_snapshot(Engine& whole) {
  Engine again(engine_config());
  must(restore(again, snapshot_of(whole, kNow), kNow).empty(), "a snapshot is read again");
  must(state_text(again, kNow) == state_text(whole, kNow), "a snapshot has the same state");
}

}  // namespace

void fuzz_rdb(std::string_view bytes) {
  Source source(bytes);
  const uint8_t mode = source.byte();
  std::string file(source.rest());
  // Without a checksum, since mutated bytes would never pass it.
  if (mode % 4 != 0) file.append(1, static_cast<char>(rdb::kOpEnd)).append(rdb::kChecksumBytes, '\0');
  Engine whole(engine_config());
  const std::string why = restore(whole, file, kNow);
  if (mode % 3 == 2) {
    must(calls_in_steps(file, 1 + mode / 16) == calls_in_steps(file, SIZE_MAX), "steps read the same");
  }
  if (mode % 3 == 0) check_pieces(whole, why, file, 1 + mode / 16);
  finish_restore(whole, kNow);
  if (why.empty() && mode % 3 == 1) check_snapshot(whole);
  let_expire(whole, 1000000);
}

}  // namespace holdfast::fuzz
