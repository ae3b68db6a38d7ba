// The text of the file `meta`: what a data folder remembers beside locks. Small, for people to read, and
// always replaced whole. Knows the text only; the shell reads and writes it.
//
//   meta = "version 1\n" "id " 40 hex digits "\n" "token-reserve " u64 "\n" "token-max " u64 "\n"
//          "horizon-ms " i64 "\n" "boot-id " text "\n" "clean " ("yes" | "no") "\n" "crc " 8 hex digits
//          "\n"
//
// Each line once and in this order; numbers in decimal, one way to write each. The last line has the CRC32C
// of all lines before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast {

inline constexpr uint32_t kMetaVersion = 1;
inline constexpr size_t kFolderIdDigits = 40;

struct Meta {
  uint32_t version = kMetaVersion;
  std::string id;              // kFolderIdDigits lower-case hex digits, made once for the folder
  uint64_t token_reserve = 0;  // no token above it was issued
  uint64_t token_max = 0;      // the largest that was issued, exact only after a clean stop
  int64_t horizon_ms = 0;      // wall clock: no hold that may have been lost lasts longer
  std::string boot_id;         // of the kernel that the writer ran on; no newline; empty where not known
  bool clean = false;          // written as the last act of a stop that was in order

  bool operator==(const Meta&) const = default;
};

std::string format_meta(const Meta& meta);

// What is wrong with the text and in which line; empty: nothing, and `meta` has what it says. On an error
// `meta` is as it was.
[[nodiscard]] std::string parse_meta(std::string_view text, Meta& meta);

}  // namespace holdfast
