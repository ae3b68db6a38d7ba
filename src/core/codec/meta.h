// The text of the file `meta`: the state that a data folder keeps beside locks. Small, for people to read,
// and always replaced as a whole. Knows the text only; the shell reads and writes the file.
//
//   meta = "version 5\n" "id " 40 hex digits "\n" "token-reserve " u64 "\n" "token-max " u64 "\n"
//          "horizon-ms " i64 "\n" "boot-id " text "\n" clock "journal-sequence " u64 "\n"
//          "tokens-ahead " n "\n" n times ("ahead " u64 " " key in hex "\n")
//          "tokens-at-us " i64 "\n"
//          "clean " ("yes" | "no") "\n" "crc " 8 hex digits "\n"
//   clock = "clock-boot-id " text "\n" "clock-ms " i64 "\n" "horizon-boot-ms " i64 "\n"
//
// Version 4 has no time of the tokens, and is written if there is none. Version 3 also has no keys whose
// tokens are ahead, and is written if there are none. Version 2 also has no journal sequence, and version 1
// also no clock. Each line occurs once and in this order. Numbers are decimal, with one form for each. The
// last line has the CRC32C of all lines before it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

inline constexpr uint32_t kMetaVersion = 5;  // the newest version
inline constexpr uint32_t kFirstMetaVersion = 1;
inline constexpr uint32_t kSequenceMetaVersion = 3;  // the first version with the journal's sequence
inline constexpr uint32_t kAheadMetaVersion = 4;     // the first version with keys whose tokens are ahead
inline constexpr uint32_t kRestoredMetaVersion = 5;  // the first version with the time of the tokens
inline constexpr size_t kFolderIdDigits = 40;
bool is_folder_id(std::string_view text);

struct Meta {
  uint32_t version = kSequenceMetaVersion;
  std::string id;              // kFolderIdDigits lower-case hex digits, drawn once for the folder
  uint64_t token_reserve = 0;  // no token above it was issued
  uint64_t token_max = 0;      // the largest issued token; exact only after a clean stop
  int64_t horizon_ms = 0;      // wall clock: every hold that may be lost ends by then
  std::string boot_id;         // of the writer's kernel; no newline; empty: not known
  // The start of the machine for which `clock_ms` and `horizon_boot_ms` are valid; empty: for none.
  std::string clock_boot_id;
  int64_t clock_ms = 0;         // how far the wall clock was ahead of the engine's when first read
  int64_t horizon_boot_ms = 0;  // the horizon on the engine's clock, which cannot be set
  // The sequence of the journal's next frame, as the last clean stop left it. 0: not known, because there
  // is no journal or because a start has read all of it.
  uint64_t journal_sequence = 0;
  // Keys whose tokens are far ahead of the clock, in order: for each key, no token above this one was
  // issued.
  std::vector<AheadToken> tokens_ahead;
  // A restored backup: the wall clock of which `token_reserve` and `tokens_ahead` are valid. A server has
  // issued tokens since, up to one in a microsecond. 0: not a restored backup, they are valid now.
  int64_t tokens_at_us = 0;
  bool clean = false;  // written as the last step of an orderly stop

  bool operator==(const Meta&) const = default;
};

// Returns the reserve, or a key's token, of a restored backup at the time `clock_us`: none that was issued
// until then is larger.
uint64_t token_at(const Meta& meta, uint64_t token, int64_t clock_us);

std::string format_meta(const Meta& meta);

// Whether the disk kept all that the writer of `meta` wrote: it stopped cleanly, or the machine has not
// started again since. `boot_id` is that of the running kernel; empty: not known.
bool kept_writes(const Meta& meta, std::string_view boot_id);

// Whether a newer version of Holdfast wrote the text.
bool is_newer_meta(std::string_view text);

// Reads the text into `meta`. Returns the error with its line, or an empty text on success. On an error
// `meta` is unchanged.
[[nodiscard]] std::string parse_meta(std::string_view text, Meta& meta);

}  // namespace holdfast
