// Hashes with deadlines of fields in RDB files: the four types of Redis 7.4, in pieces, damaged and cut.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/codec/hold_codec.h"
#include "core/codec/rdb_reader.h"
#include "core/codec/rdb_writer.h"

namespace holdfast {
namespace {

struct Listener : RdbSink {
  std::string text;
  void begin_collection(RdbCollection kind, uint64_t, std::string_view key, int64_t) override {
    CHECK(kind == RdbCollection::kHash);
    text.append(key);
  }
  void field(std::string_view name, std::string_view value) override {
    text.append(" ").append(name).append("=").append(value);
  }
  void timed_field(std::string_view name, std::string_view value, int64_t deadline_ms) override {
    field(name, value);
    text.append("@").append(std::to_string(deadline_ms));
  }
  void end_collection() override { text.append(";"); }
};

std::string low_first(uint64_t n) {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8) bytes += static_cast<char>((n >> shift) & 0xFFU);
  return bytes;
}

std::string text(std::string_view bytes) {
  return std::string(1, static_cast<char>(bytes.size())).append(bytes);
}

std::string file_of(char type, const std::string& value) {
  std::string file = "REDIS0012";
  file += type;
  return file + text("h") + value + "\xFF" + std::string(8, '\0');
}

// What the sink hears, or the error.
std::string read(std::string_view file, size_t piece = SIZE_MAX) {
  Listener sink;
  RdbReader reader(sink, false);
  for (size_t at = 0; at < file.size(); at += std::min(piece, file.size() - at)) {
    if (!reader.feed(file.substr(at, piece))) return "error " + reader.error();
  }
  return reader.finish() ? sink.text : "error " + reader.error();
}

std::string listpack(const std::vector<std::string>& elements) {
  std::string body;
  for (const std::string& element : elements) {
    body += static_cast<char>(0x80U | element.size());
    body += element + static_cast<char>(element.size() + 1);
  }
  const auto size = static_cast<char>(7 + body.size());
  std::string list{size, 0, 0, 0, static_cast<char>(elements.size()), 0};
  return list + body + "\xFF";
}

const std::string kCounted = low_first(1700000000000) + "\x03" + '\x01' + text("a") + text("1") + '\0' +
                             text("b") + text("2") + "\x40\xC8" + text("c") + text("3");

}  // namespace

TEST_CASE("rdb: deadlines of fields count from the first one, in pieces of any size") {
  const std::string file = file_of(24, kCounted);
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{3}}) {
    CHECK(read(file, piece) == "h a=1@1700000000000 b=2 c=3@1700000000199;");
  }
  for (size_t cut = 9; cut + 9 < file.size(); ++cut) {
    CHECK(read(file.substr(0, cut)).starts_with("error "));
  }
}

TEST_CASE("rdb: the types of release candidates have absolute deadlines") {
  const std::string late = "\x81" + std::string("\0\0\x01\x8b\xcf\xe5\x68\x00", 8);
  CHECK(read(file_of(22, "\x02" + late + text("a") + text("1") + '\0' + text("b") + text("2"))) ==
        "h a=1@1700000000000 b=2;");
  const std::string packed = text(listpack({"a", "1", "1700000000000", "b", "2", "0"}));
  CHECK(read(file_of(23, packed)) == "h a=1@1700000000000 b=2;");
}

TEST_CASE("rdb: a packed hash has fields, values and absolute deadlines in turn") {
  const std::string first = low_first(1700000000000);
  CHECK(read(file_of(25, first + text(listpack({"a", "1", "1700000000000", "b", "2", "0"})))) ==
        "h a=1@1700000000000 b=2;");
  const std::vector<std::vector<std::string>> damaged = {
      {}, {"a"}, {"a", "1"}, {"a", "1", "x"}, {"a", "1", "-1"}, {"a", "1", "0", "b"}};
  for (const auto& elements : damaged) {
    CHECK(read(file_of(25, first + text(listpack(elements)))).find("a packed hash is damaged") !=
          std::string::npos);
  }
}

TEST_CASE("rdb: a deadline beyond the range becomes the latest one, and none before 1970 stays") {
  const std::string far = "\x81" + std::string(8, '\xFF');
  const std::string latest = "70368744177663";  // 2^46 - 1
  CHECK(read(file_of(22, "\x01" + far + text("a") + text("1"))) == "h a=1@" + latest + ";");
  CHECK(read(file_of(24, low_first(UINT64_MAX) + "\x01" + far + text("a") + text("1"))) ==
        "h a=1@" + latest + ";");
  CHECK(read(file_of(24, low_first(0) + "\x01" + '\x01' + text("a") + text("1"))) == "h a=1@1;");
  CHECK(read(file_of(24, low_first(5) + '\0')).find("without elements") != std::string::npos);
}

TEST_CASE("rdb: the written form is that of Redis 7.4") {
  std::string value;
  RdbWriter rdb(value);
  rdb.begin_timed_hash("h", 3, 1700000000000);
  rdb.timed_field("a", "1", 1700000000000, 1700000000000);
  rdb.timed_field("b", "2", kNoDeadline, 1700000000000);
  rdb.timed_field("c", "3", 1700000000199, 1700000000000);
  CHECK(value == "\x18" + text("h") + kCounted);
}

}  // namespace holdfast
