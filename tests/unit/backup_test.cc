// The format of a backup: no byte may be changed, left out, moved or added without an error that names it.
#include "core/codec/backup.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "core/base/bytes.h"

namespace holdfast {
namespace {

BackupHead sample_head(size_t bytes) {
  BackupHead head;
  head.taken_us = 1'700'000'000'000'000;
  head.token_lead_us = 86'400'000'000;
  head.snapshot_bytes = bytes;
  head.meta.version = kAheadMetaVersion;
  head.meta.id = std::string(kFolderIdDigits, 'a');
  head.meta.token_reserve = 1'700'000'060'000'000;
  head.meta.tokens_ahead = {{"far", 1'800'000'000'000'000}};
  return head;
}

// Bytes without a period, so that parts differ.
std::string sample_data(size_t bytes) {
  std::string data;
  uint32_t n = 1;
  while (data.size() < bytes) data.push_back(static_cast<char>((n = n * 1664525 + 1013904223) >> 24U));
  return data;
}

std::string backup_of(const std::string& data) {
  std::string out;
  BackupWriter writer;
  writer.begin(out, sample_head(data.size()));
  writer.add(out, data);
  writer.end(out);
  return out;
}

struct Read {
  std::string data;
  std::string error;
  std::optional<BackupHead> head;
};

Read read(const std::string& bytes, size_t piece) {
  BackupReader reader;
  Read got;
  bool good = true;
  for (size_t at = 0; good && at < bytes.size(); at += piece)
    good = reader.feed(std::string_view(bytes).substr(at, piece), got.data);
  if (good) good = reader.finish();
  CHECK(good == reader.error().empty());
  got.error = reader.error();
  got.head = reader.head();
  return got;
}

Read read(const std::string& bytes) { return read(bytes, std::max<size_t>(bytes.size(), 1)); }

// Positions at which the parts of a good backup begin; the last one is its end.
std::vector<size_t> parts_of(const std::string& backup) {
  std::vector<size_t> parts{std::string_view("HOLDFAST BACKUP 1\n").size()};
  while (parts.back() < backup.size()) {
    const auto size = read_at<uint32_t>(backup, parts.back());
    parts.push_back(parts.back() + 8 + (size == 0 ? 8 : size));
  }
  return parts;
}

// The number behind " byte " in an error.
size_t byte_of(const std::string& error) {
  constexpr std::string_view kBefore = " byte ";
  const size_t at = error.find(kBefore);
  REQUIRE_MESSAGE(at != std::string::npos, error);
  size_t byte = 0;
  std::from_chars(error.data() + at + kBefore.size(), error.data() + error.size(), byte);
  return byte;
}

}  // namespace

TEST_CASE("backup: reads back the head and the data, in pieces of any size") {
  for (const size_t bytes : {size_t{0}, size_t{1}, kBackupPartBytes - 1, kBackupPartBytes,
                             kBackupPartBytes + 1, 3 * kBackupPartBytes}) {
    const std::string data = sample_data(bytes);
    const std::string backup = backup_of(data);
    for (const size_t piece : {size_t{1}, size_t{7}, size_t{4096}, backup.size()}) {
      const Read got = read(backup, piece);
      CHECK(got.error.empty());
      CHECK(got.data == data);
      CHECK(got.head == sample_head(bytes));
    }
  }
}

TEST_CASE("backup: each flipped bit is an error that names the part which has it") {
  const std::string backup = backup_of(sample_data(200));
  const std::vector<size_t> parts = parts_of(backup);
  for (size_t at = 0; at < backup.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string bad = backup;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ (1U << bit));
      const Read got = read(bad);
      const size_t part = at < parts[0] ? at : *std::prev(std::ranges::upper_bound(parts, at));
      // A part whose size has grown may look as if its end were missing.
      const bool cut = got.error.starts_with("cut off at byte " + std::to_string(bad.size()));
      CHECK_MESSAGE((cut ? at < part + 4 : byte_of(got.error) == part), got.error, " flipped at ", at);
    }
  }
}

TEST_CASE("backup: one that ends early is an error that names its last byte, wherever it ends") {
  const std::string backup = backup_of(sample_data(200));
  for (size_t bytes = 0; bytes < backup.size(); ++bytes) {
    const std::string error = read(backup.substr(0, bytes)).error;
    CHECK(error == "cut off at byte " + std::to_string(bytes) + ": the end of the backup is missing");
  }
}

TEST_CASE("backup: bytes after the end are an error") {
  const std::string backup = backup_of("data");
  CHECK(read(backup + "x").error ==
        "damaged at byte " + std::to_string(backup.size()) + ": bytes follow the end");
}

TEST_CASE("backup: a part that is missing, doubled or at another place is an error that names it") {
  const std::string backup = backup_of(sample_data(3 * kBackupPartBytes));
  const std::vector<size_t> parts = parts_of(backup);
  REQUIRE(parts.size() == 6);  // head, three parts of data, end
  const auto part = [&](size_t i) { return backup.substr(parts[i], parts[i + 1] - parts[i]); };
  const std::string start = backup.substr(0, parts[1]);
  CHECK(byte_of(read(start + part(2) + part(3) + part(4)).error) == parts[1]);
  CHECK(byte_of(read(start + part(1) + part(1) + part(2) + part(3) + part(4)).error) == parts[2]);
  CHECK(byte_of(read(start + part(2) + part(1) + part(3) + part(4)).error) == parts[1]);
  CHECK(byte_of(read(start + part(1) + part(2) + part(4)).error) == parts[3]);
}

TEST_CASE("backup: the parts of two backups do not make one") {
  const std::string one = backup_of(sample_data(100));
  std::string other;
  BackupWriter writer;
  writer.begin(other, sample_head(100));
  writer.add(other, std::string(100, 'x'));
  writer.end(other);
  const size_t end = parts_of(one)[2];
  CHECK(byte_of(read(one.substr(0, end) + other.substr(end)).error) == end);
}

TEST_CASE("backup: fewer bytes of the snapshot than the head says are an error") {
  std::string out;
  BackupWriter writer;
  writer.begin(out, sample_head(5));
  writer.add(out, "four");
  writer.end(out);
  CHECK(read(out).error.ends_with(": the snapshot has 4 bytes, and the head says 5"));
}

TEST_CASE("backup: another file, and a newer version, are errors at their first wrong byte") {
  CHECK(read("REDIS0010").error.starts_with("damaged at byte 0: this is not a backup"));
  CHECK(read("HOLDFAST BACKUP 2\n").error.starts_with("damaged at byte 16: "));
  CHECK(read("").error == "cut off at byte 0: the end of the backup is missing");
}

TEST_CASE("backup: a head of the largest possible meta is accepted") {
  BackupHead head = sample_head(0);
  head.meta.tokens_ahead.clear();
  for (int i = 0; i < 256; ++i)
    head.meta.tokens_ahead.push_back({std::string(512, static_cast<char>(i)), kMaxToken});
  std::string out;
  BackupWriter writer;
  writer.begin(out, head);
  writer.end(out);
  const Read got = read(out);
  CHECK(got.error.empty());
  CHECK(got.head == head);
}

}  // namespace holdfast
