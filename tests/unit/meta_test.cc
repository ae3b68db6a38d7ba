// The text of a folder's meta file: a reader never gets a value that was not written.
#include "core/codec/meta.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/checksum.h"

namespace holdfast {

namespace {

Meta sample() {
  return {.id = "0123456789abcdef0123456789abcdef01234567",
          .token_reserve = UINT64_MAX,
          .token_max = 12,
          .horizon_ms = 1'700'000'000'000,
          .boot_id = "6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e",
          .clock_boot_id = "6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e+7.000000000",
          .clock_ms = -12,
          .horizon_boot_ms = 90'000,
          .journal_sequence = 22,
          .tokens_ahead = {},
          .clean = true};
}

// Adds a valid checksum, so that only the lines can be wrong.
std::string sealed(const std::string& lines) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string crc;
  for (int shift = 28; shift >= 0; shift -= 4) crc += kDigits[(crc32c(lines) >> shift) & 0xFU];
  return lines + "crc " + crc + "\n";
}

// Returns the sample's lines with one text replaced by another.
std::string with(const std::string& old, const std::string& other) {
  std::string text = format_meta(sample());
  text.erase(text.find("crc "));
  REQUIRE(text.find(old) != std::string::npos);
  return sealed(text.replace(text.find(old), old.size(), other));
}

std::string error_of(const std::string& text) {
  Meta meta;
  const std::string error = parse_meta(text, meta);
  CHECK((error.empty() || meta == Meta{}));
  return error;
}

}  // namespace

TEST_CASE("meta: reads back the written values") {
  Meta meta;
  CHECK(parse_meta(format_meta(sample()), meta).empty());
  CHECK(meta == sample());
}

TEST_CASE("meta: extreme and unknown values are read as they were written") {
  Meta written = sample();
  written.token_reserve = 0;
  written.token_max = UINT64_MAX;
  written.boot_id.clear();
  written.clean = false;
  for (const int64_t horizon_ms : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    written.horizon_ms = horizon_ms;
    Meta meta;
    CHECK(parse_meta(format_meta(written), meta).empty());
    CHECK(meta == written);
  }
}

TEST_CASE("meta: the text is that of the grammar") {
  CHECK(format_meta(sample()) ==
        sealed("version 3\nid 0123456789abcdef0123456789abcdef01234567\n"
               "token-reserve 18446744073709551615\ntoken-max 12\n"
               "horizon-ms 1700000000000\n"
               "boot-id 6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e\n"
               "clock-boot-id 6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e+7.000000000\n"
               "clock-ms -12\nhorizon-boot-ms 90000\njournal-sequence 22\nclean yes\n"));
}

TEST_CASE("meta: the first version, which has no clocks, is read and keeps its form") {
  const std::string old = sealed(
      "version 1\nid 0123456789abcdef0123456789abcdef01234567\n"
      "token-reserve 18446744073709551615\ntoken-max 12\n"
      "horizon-ms 1700000000000\n"
      "boot-id 6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e\nclean yes\n");
  Meta expected = sample();
  expected.version = 1;
  expected.clock_boot_id.clear();
  expected.clock_ms = expected.horizon_boot_ms = 0;
  expected.journal_sequence = 0;
  Meta meta;
  CHECK(parse_meta(old, meta).empty());
  CHECK(meta == expected);
  CHECK(format_meta(meta) == old);
}

TEST_CASE("meta: the second version, without the sequence of the journal, is read and keeps its form") {
  const std::string old = sealed(
      "version 2\nid 0123456789abcdef0123456789abcdef01234567\n"
      "token-reserve 18446744073709551615\ntoken-max 12\n"
      "horizon-ms 1700000000000\n"
      "boot-id 6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e\n"
      "clock-boot-id 6f1c0f0e-8f6d-4a52-9d2b-0f2a3b4c5d6e+7.000000000\n"
      "clock-ms -12\nhorizon-boot-ms 90000\nclean yes\n");
  Meta expected = sample();
  expected.version = 2;
  expected.journal_sequence = 0;
  Meta meta;
  CHECK(parse_meta(old, meta).empty());
  CHECK(meta == expected);
  CHECK(format_meta(meta) == old);
}

TEST_CASE("meta: cut at any byte it is rejected, and no value is taken from it") {
  const std::string text = format_meta(sample());
  for (size_t size = 0; size < text.size(); ++size) {
    INFO("cut at " << size);
    REQUIRE(error_of(text.substr(0, size)).starts_with("line "));
  }
}

TEST_CASE("meta: with any bit flipped it is rejected, and no value is taken from it") {
  const std::string text = format_meta(sample());
  for (size_t at = 0; at < text.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      INFO("byte " << at << " bit " << bit);
      std::string bad = text;
      bad[at] = static_cast<char>(static_cast<uint8_t>(bad[at]) ^ (1U << bit));
      REQUIRE(error_of(bad).starts_with("line "));
    }
  }
}

TEST_CASE("meta: keys with tokens ahead make it the fourth version, and are read as they were written") {
  Meta written = sample();
  written.version = kAheadMetaVersion;
  written.tokens_ahead = {{"", 7}, {std::string("a \n\0\xff", 5), UINT64_MAX}};
  const std::string text = format_meta(written);
  CHECK(
      text.find("journal-sequence 22\ntokens-ahead 2\nahead 7 \nahead 18446744073709551615 61200a00ff\n") !=
      std::string::npos);
  Meta meta;
  CHECK(parse_meta(text, meta).empty());
  CHECK(meta == written);
  meta.version = kSequenceMetaVersion;
  CHECK(format_meta(meta) == text);
  const auto changed = [&](const std::string& old, const std::string& other) {
    std::string bad = text.substr(0, text.find("crc "));
    return error_of(sealed(bad.replace(bad.find(old), old.size(), other)));
  };
  const char* const kWrong = "line 12: ahead is not a token and a key in hexadecimal digits";
  CHECK(changed("ahead 7 ", "ahead 7") == kWrong);
  CHECK(changed("ahead 7 ", "ahead 07 ") == kWrong);
  CHECK(changed("ahead 7 ", "ahead 7 6") == kWrong);
  CHECK(changed("ahead 7 ", "ahead 7 6G") == kWrong);
  CHECK(changed("tokens-ahead 2", "tokens-ahead 3") == "line 14: ahead is missing");
  CHECK(changed("tokens-ahead 2", "tokens-ahead 1") == "line 13: clean is missing");
}

TEST_CASE("meta: a newer version is named, whatever text follows it") {
  CHECK(error_of("version 5\nwhatever\n") == "line 1: version 5, written by a newer version of Holdfast");
  CHECK(error_of(with("version 3", "version 4294967295")) ==
        "line 1: version 4294967295, written by a newer version of Holdfast");
  CHECK(error_of(with("version 3", "version 0")) == "line 1: unsupported version 0");
}

TEST_CASE("meta: the error names the line and its fault") {
  CHECK(error_of("") == "line 1: the file is empty");
  CHECK(error_of("version 1\nid 01") == "line 2: the file is incomplete");
  CHECK(error_of("version 1\nid 01\n") ==
        "line 2: the file is incomplete, the line with the checksum is missing");
  CHECK(error_of(sealed("version 1\n").replace(14, 8, "00000000")) ==
        "line 2: the checksum is wrong, the lines before it have " + sealed("version 1\n").substr(10, 12));
  CHECK(error_of(with("version 3", "version one")) == "line 1: version is not a number in range");
  CHECK(error_of(with("id 0", "id A")) == "line 2: id is not 40 hexadecimal digits");
  CHECK(error_of(with("id 01", "id 1")) == "line 2: id is not 40 hexadecimal digits");
  CHECK(error_of(with("token-max ", "token-maximum ")) == "line 4: token-max is missing");
  CHECK(error_of(with("token-max 12\n", "")) == "line 4: token-max is missing");
  CHECK(error_of(with("clean yes", "clean y")) == "line 11: clean is neither yes nor no");
  CHECK(error_of(with("clean yes\n", "clean yes\nclean no\n")) ==
        "line 12: the last line is followed by more");
}

TEST_CASE("meta: a number has exactly one valid spelling") {
  for (const char* number :
       {"012", "+12", "-12", "1e1", " 12", "12 ", "0x12", "", "18446744073709551616"}) {
    INFO("token-max " << number);
    CHECK(error_of(with("token-max 12", std::string("token-max ") + number)) ==
          "line 4: token-max is not a number in range");
  }
}

}  // namespace holdfast
