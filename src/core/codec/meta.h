// The text of the file `meta`: what a data folder remembers beside locks. Small, for people to read, and
// always replaced whole. Knows the text only; the shell reads and writes it.
//
//   meta = "version 4\n" "id " 40 hex digits "\n" "token-reserve " u64 "\n" "token-max " u64 "\n"
//          "horizon-ms " i64 "\n" "boot-id " text "\n" clock "journal-sequence " u64 "\n"
//          "tokens-ahead " n "\n" n times ("ahead " u64 " " key in hex "\n")
//          "clean " ("yes" | "no") "\n" "crc " 8 hex digits "\n"
//   clock = "clock-boot-id " text "\n" "clock-ms " i64 "\n" "horizon-boot-ms " i64 "\n"
//
// Version 3 is the same without the keys whose tokens are ahead, and is written where there are none;
// version 2 without the journal's sequence too, version 1 without the clock too. Each line once and in this
// order; numbers in decimal, one way to write each. The last line has the CRC32C of all lines before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

inline constexpr uint32_t kMetaVersion = 4;  // the newest
inline constexpr uint32_t kFirstMetaVersion = 1;
inline constexpr uint32_t kSequenceMetaVersion = 3;  // the first with the journal's sequence
inline constexpr uint32_t kAheadMetaVersion = 4;     // the first with keys whose tokens are ahead
inline constexpr size_t kFolderIdDigits = 40;

struct Meta {
  uint32_t version = kSequenceMetaVersion;
  std::string id;              // kFolderIdDigits lower-case hex digits, made once for the folder
  uint64_t token_reserve = 0;  // no token above it was issued
  uint64_t token_max = 0;      // the largest that was issued, exact only after a clean stop
  int64_t horizon_ms = 0;      // wall clock: no hold that may have been lost lasts longer
  std::string boot_id;         // of the kernel that the writer ran on; no newline; empty where not known
  // Since this start of the machine `clock_ms` and `horizon_boot_ms` mean something; empty: none does.
  std::string clock_boot_id;
  int64_t clock_ms = 0;  // how far the wall clock was ahead of the engine's at this start's first reading
  int64_t horizon_boot_ms = 0;  // the horizon on the engine's clock, which nobody sets
  // Where the last clean stop has left the journal: the sequence that its next frame is due to have. 0: not
  // known, without a journal or once a start has read all of it.
  uint64_t journal_sequence = 0;
  // Keys whose tokens are far ahead of the clock, in their order: no token of them above these was issued.
  std::vector<AheadToken> tokens_ahead;
  bool clean = false;  // written as the last act of a stop that was in order

  bool operator==(const Meta&) const = default;
};

std::string format_meta(const Meta& meta);

// What is wrong with the text and in which line; empty: nothing, and `meta` has what it says. On an error
// `meta` is as it was.
[[nodiscard]] std::string parse_meta(std::string_view text, Meta& meta);

}  // namespace holdfast
