// A backup: the size of the pieces does not matter, and what is written reads back.
#include "core/codec/backup.h"

#include <algorithm>

#include "fuzz/targets.h"

namespace holdfast::fuzz {
namespace {

struct Read {
  bool good = true;
  std::string data;
  std::string error;
  bool operator==(const Read&) const = default;
};

Read read(std::string_view bytes, size_t piece) {
  BackupReader reader;
  Read got;
  while (got.good && !bytes.empty()) {
    got.good = reader.feed(bytes.substr(0, piece), got.data);
    bytes.remove_prefix(std::min(piece, bytes.size()));
  }
  got.good = got.good && reader.finish();
  got.error = reader.error();
  must(got.good == got.error.empty(), "an error has a reason");
  return got;
}

}  // namespace

void fuzz_backup(std::string_view bytes) {
  must(read(bytes, 3) == read(bytes, bytes.size() + 1), "the size of the pieces does not matter");
  std::string whole;
  BackupWriter writer;
  BackupHead head;
  head.meta.id = std::string(kFolderIdDigits, '0');
  head.snapshot_bytes = bytes.size();
  writer.begin(whole, head);
  writer.add(whole, bytes);
  writer.end(whole);
  const Read back = read(whole, whole.size());
  must(back.good && back.data == bytes, "what is written reads back");
}

}  // namespace holdfast::fuzz
