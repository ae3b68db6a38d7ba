// RDB files: written files are read back, files of stock Redis 7.0 are accepted, and damaged bytes give at
// worst an error.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/base/checksum.h"
#include "core/base/score.h"
#include "core/codec/rdb.h"
#include "core/codec/rdb_packed.h"
#include "core/codec/rdb_reader.h"
#include "core/codec/rdb_writer.h"

namespace holdfast {
namespace {

// Written by SAVE of redis-server 7.0.15. It has strings that are raw, compressed and encoded as integers
// of three sizes; a packed hash and one as a table; a deadline; two databases.
constexpr std::string_view kStock =
    "524544495330303130fa0972656469732d76657206372e302e3135fa0a72656469732d62697473c040fa056374696d65"
    "c20282016bfa08757365642d6d656dc2507b0f00fa08616f662d62617365c000fe00fb08010003693136c1d204040574"
    "61626c65050165c0050163c0030162c0020161c0010164c00400037261770568656c6c6ffc00104769031e0000000574"
    "696d6564017600036c7a66c3094064016161e0570001616100026938c0fb10047061636b1c1c00000006008166020101"
    "8167028374776f04836e656704ded402ff0003693332c2c01dfefffe03fb010000056f74686572026462ff6ae60fbf8c"
    "093c32";
// Lists, sets and sorted sets in their small encodings, and the string `kept`.
constexpr std::string_view kOtherTypes =
    "524544495330303130fa0972656469732d76657206372e302e3135fa0a72656469732d62697473c040fa056374696d65"
    "c20282016bfa08757365642d6d656dc2885b1100fa08616f662d62617365c000fe00fb05000b06696e747365740e0200"
    "00000300000001000200030002037365740301790178c00100046b657074c00111047a73657414140000000400816102"
    "010181620283322e3504ff12046c69737401020d0d0000000200816102816202ffff43978283ee8b537e";
// The same types in their large encodings.
constexpr std::string_view kOtherTypesLarge =
    "524544495330303130fa0972656469732d76657206372e302e3135fa0a72656469732d62697473c040fa056374696d65"
    "c20382016bfa08757365642d6d656dc2a0bf1100fa08616f662d62617365c000fe00fb040005047a7365740201620000"
    "0000000004400161000000000000f03f02037365740301790178c00100046b657074c00112046c69737403020a0a0000"
    "000100816102ff020a0a0000000100816202ff020a0a0000000100816302ffff42eb2d467cb274bb";

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

// The calls that a sink gets, as text.
struct Listener : RdbSink {
  std::string text;
  std::string left_out;

  void string(uint64_t db, std::string_view key, std::string_view value, int64_t expire_ms) override {
    text += std::to_string(db) + " " + std::string(key) + "=" + std::string(value) + until(expire_ms);
  }
  void begin_collection(RdbCollection kind, uint64_t db, std::string_view key, int64_t expire_ms) override {
    constexpr const char* kKinds[] = {"hash", "list", "set", "zset"};
    text += std::to_string(db) + " " + std::string(key) + " is a " + kKinds[static_cast<size_t>(kind)] +
            until(expire_ms);
  }
  void element(std::string_view member, double score) override {
    text += " " + std::string(member) + (score == 0 ? "" : " " + format_score(score)) + "\n";
  }
  void field(std::string_view name, std::string_view value) override {
    text += " " + std::string(name) + "=" + std::string(value) + "\n";
  }
  void end_collection() override { text += " end\n"; }
  void skipped(uint64_t, std::string_view key, std::string_view) override {
    left_out += std::string(key) + "\n";
  }
  static std::string until(int64_t ms) { return ms == kNoExpiry ? "\n" : " @" + std::to_string(ms) + "\n"; }
};

struct Read {
  std::string text;
  std::string error;
  std::string left_out;
};

Read read(std::string_view file, size_t piece = SIZE_MAX, bool skip_unknown = false) {
  Listener listener;
  RdbReader reader(listener, skip_unknown);
  bool good = true;
  for (size_t at = 0; good && at < file.size(); at += std::min(piece, file.size() - at)) {
    good = reader.feed(file.substr(at, piece));
  }
  if (good) good = reader.finish();
  CHECK(good == reader.error().empty());
  return {listener.text, reader.error(), listener.left_out};
}

Read read_in_steps(std::string_view file, size_t effort) {
  Listener listener;
  RdbReader reader(listener, false);
  std::string_view rest = file;
  while (!reader.feed_some(rest, effort)) {
  }
  return {listener.text, reader.error(), listener.left_out};
}

// Returns whether the bytes are a listpack, and `each` returned true for all of its elements.
template <class Each>
bool read_listpack(std::string_view bytes, Each each) {
  PackedList list(PackedList::Form::kListpack, bytes);
  while (const auto element = list.next()) {
    if (!each(*element)) return false;
  }
  return list.good();
}

std::string with_crc(std::string bytes) {
  append_crc(bytes, crc64(0, bytes));
  return bytes;
}

std::string own_file() {
  std::string out;
  RdbWriter writer(out);
  writer.header();
  writer.aux("name", "value");
  writer.select_db(0);
  writer.string("k", "v");
  writer.string("", std::string(70, 'a') + "b");
  writer.expire_ms(33000000000000);
  writer.string("timed", "-123456");
  writer.select_db(15);
  writer.begin_hash("h", 2);
  writer.field("f", "1");
  writer.field("", std::string(20000, 'x'));
  writer.end();
  return with_crc(out);
}

}  // namespace

TEST_CASE("rdb: reads back its own output, in pieces of any size") {
  const std::string file = own_file();
  const std::string text = "0 k=v\n0 =" + std::string(70, 'a') + "b\n0 timed=-123456 @33000000000000\n" +
                           "15 h is a hash\n f=1\n =" + std::string(20000, 'x') + "\n end\n";
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{5}, size_t{1000}}) {
    const Read r = read(file, piece);
    CHECK(r.error.empty());
    CHECK(r.text == text);
  }
}

TEST_CASE("rdb: steps of any effort read what the whole gives, also of cut and damaged files") {
  for (const std::string_view stock : {kStock, kOtherTypes, kOtherTypesLarge}) {
    const std::string good = from_hex(stock);
    for (size_t i = 0; i < 2 * good.size(); ++i) {
      std::string file = good;
      if (i < good.size()) {
        file.resize(i + 1);
      } else {
        char& damaged = file[i - good.size()];
        damaged = static_cast<char>(damaged ^ (1 << (i % 8)));
      }
      const Read whole = read(file);
      for (const size_t effort : {size_t{1}, size_t{2}, SIZE_MAX}) {
        const Read steps = read_in_steps(file, effort);
        if (steps.text != whole.text || steps.error != whole.error)
          FAIL_CHECK("file ", i, ": ", steps.error);
      }
    }
  }
}

TEST_CASE("rdb: a file of stock Redis is read, at once and byte by byte") {
  const std::string file = from_hex(kStock);
  for (const size_t piece : {SIZE_MAX, size_t{1}}) {
    const Read r = read(file, piece);
    CHECK(r.error.empty());
    for (const char* part :
         {"0 raw=hello\n", "0 i8=-5\n", "0 i16=1234\n", "0 i32=-123456\n", "0 timed=v @33000000000000\n",
          "3 other=db\n", " f=1\n", " g=two\n", " neg=-300\n", "0 table is a hash\n", " a=1\n", " e=5\n"}) {
      CAPTURE(part);
      CHECK(r.text.find(part) != std::string::npos);
    }
    CHECK(r.text.find("0 lzf=" + std::string(100, 'a') + "\n") != std::string::npos);
  }
}

TEST_CASE("rdb: cut anywhere it is rejected; with a byte flipped it is rejected or has the same content") {
  for (const std::string_view hex : {kStock, kOtherTypes, kOtherTypesLarge}) {
    const std::string file = from_hex(hex);
    const std::string text = read(file, SIZE_MAX, true).text;
    for (size_t at = 0; at < file.size(); ++at) {
      CHECK_FALSE(read(file.substr(0, at), SIZE_MAX, true).error.empty());
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::string bad = file;
        bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
        const Read r = read(bad, SIZE_MAX, true);
        const bool good = !r.error.empty() || r.text == text;
        CHECK(good);
        bad.resize(bad.size() - 8);
        static_cast<void>(read(with_crc(bad), 3, true));
      }
    }
  }
}

TEST_CASE("rdb: lists, sets and sorted sets of stock Redis are read, small and large") {
  const std::pair<std::string_view, std::string_view> files[] = {
      {kOtherTypes,
       "0 intset is a set\n 1\n 2\n 3\n end\n0 set is a set\n y\n x\n 1\n end\n0 kept=1\n"
       "0 zset is a zset\n a 1\n b 2.5\n end\n0 list is a list\n a\n b\n end\n"},
      {kOtherTypesLarge,
       "0 zset is a zset\n b 2.5\n a 1\n end\n0 set is a set\n y\n x\n 1\n end\n0 kept=1\n"
       "0 list is a list\n a\n b\n c\n end\n"}};
  for (const auto& [hex, text] : files) {
    const std::string file = from_hex(hex);
    for (const size_t piece : {SIZE_MAX, size_t{1}}) {
      const Read r = read(file, piece);
      CHECK(r.error.empty());
      CHECK(r.text == text);
    }
  }
}

TEST_CASE("rdb: the encodings of older and newer versions of Redis are read") {
  // The value of a key `k`, as hexadecimal digits behind its type.
  const auto value = [](const std::string& type, const std::string& hex) {
    return read(with_crc("REDIS0010" + from_hex(type + "016b" + hex) + "\xff"));
  };
  const std::string ziplist = "10100000000d000000020000016103f3ff";  // a, 2
  const std::string listpack = "0d0d0000000200816102816202ff";       // a, b
  struct Sample {
    std::string type;
    std::string hex;
    std::string text;
  };
  const Sample samples[] = {
      {"01", "0201610162", "list\n a\n b\n"},
      {"0a", ziplist, "list\n a\n 2\n"},
      {"0e", "02" + ziplist + ziplist, "list\n a\n 2\n a\n 2\n"},
      {"12",
       "02010178"
       "02" +
           listpack,
       "list\n x\n a\n b\n"},
      {"0b", "100400000002000000ffffffff01000000", "set\n -1\n 1\n"},
      {"0b", "1008000000010000000000000000000080", "set\n -9223372036854775808\n"},
      {"14", listpack, "set\n a\n b\n"},
      {"03",
       "0301610"
       "3312e350162fe0163ff",
       "zset\n a 1.5\n b inf\n c -inf\n"},
      {"0c", ziplist, "zset\n a 2\n"},
  };
  for (const Sample& sample : samples) {
    CAPTURE(sample.text);
    const Read r = value(sample.type, sample.hex);
    CHECK(r.error.empty());
    CHECK(r.text == "0 k is a " + sample.text + " end\n");
  }
  const std::string no_score = "0a0a0000000100816102ff";
  for (const auto& wrong : {std::pair{"01", std::string("00")},
                            {"02", std::string("00")},
                            {"0e", std::string("00")},
                            {"0b", std::string("080200000000000000")},
                            {"0b", std::string("0a03000000010000000100")},
                            {"0b", std::string("0a02000000020000000100")},
                            {"03", std::string("010161fd")},
                            {"05", std::string("010161000000000000f87f")},
                            {"11", no_score},
                            {"11", listpack},
                            {"16", std::string("00")}}) {
    CAPTURE(wrong.second);
    CHECK_FALSE(value(wrong.first, wrong.second).error.empty());
  }
}

TEST_CASE("rdb: module keys and module data are rejected, or skipped on request") {
  // Its parts: a number below 0, one above 0, a float, a double, a text, and the end.
  const std::string parts = from_hex(
      "01812fffffffffffffff"
      "0205"
      "030000803f"
      "04000000000000f03f"
      "0503616263"
      "00");
  const std::string id = from_hex("8140414243444546470a");
  const std::string head = "REDIS0010";
  const std::string kept = from_hex("00016b0176");
  const std::string beside = "\xf7" + id.substr(0, 9) + from_hex("0202") + parts;
  const std::string key = std::string("\x07\x03") + "mod" + id.substr(0, 9) + parts;
  const std::string unknown_part = std::string("\x07\x03") + "mod" + id.substr(0, 9) + "\x06";
  CHECK(read(with_crc(head + beside + kept + "\xff")).error.find("data of a module") != std::string::npos);
  CHECK(read(with_crc(head + key + kept + "\xff")).error.find("module value") != std::string::npos);
  CHECK_FALSE(read(with_crc(head + unknown_part + kept + "\xff"), SIZE_MAX, true).error.empty());
  const std::string file = with_crc(head + beside + key + kept + "\xff");
  for (const size_t piece : {SIZE_MAX, size_t{1}, size_t{3}}) {
    const Read r = read(file, piece, true);
    CHECK(r.error.empty());
    CHECK(r.text == "0 k=v\n");
    CHECK(r.left_out == "mod\n");
  }
  for (size_t size = 0; size < file.size(); ++size)
    CHECK_FALSE(read(file.substr(0, size), SIZE_MAX, true).error.empty());
}

TEST_CASE("rdb: a deadline of -1 means none, and one before 1970 has passed, in either unit") {
  const auto with_deadline = [](const char* hex) {
    return read(with_crc("REDIS0010" + from_hex(hex) + from_hex("00016b0176ff"))).text;
  };
  CHECK(with_deadline("fcffffffffffffffff") == "0 k=v\n");
  CHECK(with_deadline("fcfeffffffffffffff") == "0 k=v @0\n");
  CHECK(with_deadline("fc0000000000000080") == "0 k=v @0\n");
  CHECK(with_deadline("fc0100000000000000") == "0 k=v @1\n");
  CHECK(with_deadline("fdffffff7f") == "0 k=v @2147483647000\n");
}

TEST_CASE(
    "rdb: a listpack is read at the bounds of each encoding of numbers and texts, rejected when cut") {
  std::string body;
  const auto add = [&](const std::string& element) {
    body += element;
    if (element.size() >= 128) {
      body += static_cast<char>(element.size() >> 7U);
      body += static_cast<char>((element.size() & 0x7FU) | 0x80U);
    } else {
      body += static_cast<char>(element.size());
    }
  };
  for (const char* hex : {"00", "7f", "d000", "cfff", "f10080", "f1ff7f", "f2000080", "f2ffff7f",
                          "f300000080", "f3ffffff7f", "f40000000000000080", "f4ffffffffffffff7f", "80"}) {
    add(from_hex(hex));
  }
  const std::string texts_of[] = {std::string(63, 's'), std::string(4095, 't'), std::string(5000, 'u')};
  add(from_hex("bf") + texts_of[0]);
  add(from_hex("efff") + texts_of[1]);
  add(from_hex("f088130000") + texts_of[2]);
  std::string list;
  const size_t size = 6 + body.size() + 1;
  for (unsigned shift = 0; shift < 32; shift += 8) list += static_cast<char>((size >> shift) & 0xFFU);
  list += from_hex("1000") + body + from_hex("ff");
  std::vector<std::string> texts;
  CHECK(read_listpack(list, [&](std::string_view text) { return texts.emplace_back(text), true; }));
  const std::vector<std::string> expected = {"0",
                                             "127",
                                             "-4096",
                                             "4095",
                                             "-32768",
                                             "32767",
                                             "-8388608",
                                             "8388607",
                                             "-2147483648",
                                             "2147483647",
                                             "-9223372036854775808",
                                             "9223372036854775807",
                                             "",
                                             texts_of[0],
                                             texts_of[1],
                                             texts_of[2]};
  CHECK(texts == expected);
  for (size_t cut = 0; cut < list.size(); ++cut) {
    const bool good =
        read_listpack(std::string_view(list).substr(0, cut), [](std::string_view) { return true; });
    if (good) FAIL_CHECK("cut at ", cut);
  }
}

TEST_CASE("rdb: a listpack's element of 16383 bytes ends with a length of three bytes") {
  for (const auto& [number, closing] :
       {std::pair{16382U, "7f fe"}, {16383U, "00 ff ff"}, {16384U, "01 80 80"}}) {
    const unsigned encoded = number;  // clang 14 cannot capture `number`
    CAPTURE(encoded);
    const unsigned size = encoded - 5;
    std::string body = "\xF0";
    for (unsigned shift = 0; shift < 32; shift += 8) body += static_cast<char>((size >> shift) & 0xFFU);
    body += std::string(size, 'x');
    std::string hex = closing;
    std::erase(hex, ' ');
    body += from_hex(hex);
    std::string list;
    const size_t bytes = 6 + body.size() + 1;
    for (unsigned shift = 0; shift < 32; shift += 8) list += static_cast<char>((bytes >> shift) & 0xFFU);
    list += from_hex("0100") + body + from_hex("ff");
    CHECK(read_listpack(list, [&](std::string_view text) { return text.size() == size; }));
  }
}

TEST_CASE(
    "rdb: a newer version, a wrong checksum and trailing bytes are rejected; no checksum is accepted") {
  std::string file = own_file();
  CHECK_FALSE(read(file + "x").error.empty());
  std::string bad = file;
  bad.back() = static_cast<char>(bad.back() ^ 1);
  CHECK_FALSE(read(bad).error.empty());
  std::string none = file.substr(0, file.size() - 8) + std::string(8, '\0');
  CHECK(read(none).error.empty());
  std::string newer = none;
  newer.replace(5, 4, "0013");
  CHECK(read(newer).error.find("13") != std::string::npos);
}

}  // namespace holdfast
