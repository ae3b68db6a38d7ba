// The format of a backup: a snapshot in checked parts, so that a cut or damaged file is rejected with the
// position of the fault. Knows bytes only.
//
//   backup = "HOLDFAST BACKUP 1\n" head { data } end
//   head   = u32 size  u32 crc  text       data = u32 size  u32 crc  bytes       end = u32 0  u32 crc  u64
//   sum text   = "taken-us " i64 "\n"  "token-lead-us " u64 "\n"  "snapshot-bytes " u64 "\n"  meta
//
// Integers have their low byte first. A size counts the bytes after the crc; it is 0 in the end alone. The
// crc is the CRC32C of the part's position in the file (u64), its size, and the bytes after the crc. So a
// part that was moved, left out or doubled is detected. `sum` is the CRC64 of all bytes of the snapshot:
// the file `dump.rdb.gz` or `dump.rdb`, whose first bytes tell which. `meta` is the text of the server's
// meta file (meta.h), with the token reserve and the keys with tokens ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/codec/meta.h"

namespace holdfast {

inline constexpr size_t kBackupPartBytes = size_t{16} << 10U;   // of data in a part, at most
inline constexpr size_t kBackupHeadBytes = size_t{512} << 10U;  // of text, at most

struct BackupHead {
  int64_t taken_us = 0;  // wall clock of the server
  // How far the server's tokens may grow faster than the clock after that: its max-token-lead.
  uint64_t token_lead_us = 0;
  uint64_t snapshot_bytes = 0;
  Meta meta;
  bool operator==(const BackupHead&) const = default;
};

// Writes the parts, in this order: begin(), then add() for all bytes of the snapshot, then end().
class BackupWriter {
 public:
  void begin(std::string& out, const BackupHead& head);
  void add(std::string& out, std::string_view bytes);
  void end(std::string& out);

 private:
  void append_part(std::string& out, std::string_view bytes, bool last);

  uint64_t position_ = 0;
  uint64_t sum_ = 0;
};

// Reads a backup in pieces of any size. Keeps at most one part in memory.
class BackupReader {
 public:
  // Reads the next bytes, and appends the snapshot's bytes in all complete parts to `data`. Returns false
  // on an error: error() has the reason and the position of the fault, and no more can be read.
  [[nodiscard]] bool feed(std::string_view bytes, std::string& data);
  // Ends the input. Returns false if the backup is not complete.
  [[nodiscard]] bool finish();

  const std::string& error() const { return error_; }
  // Set once the head is read.
  const std::optional<BackupHead>& head() const { return head_; }
  bool ended() const { return ended_; }
  uint64_t data_bytes() const { return data_bytes_; }  // of the snapshot, so far

 private:
  bool read_next(std::string& data);
  bool read_magic();
  bool take_part(std::string_view bytes, std::string& data);
  bool read_head(std::string_view text);
  bool read_end(std::string_view bytes);
  bool fail(const std::string& why);

  std::string rest_;       // bytes of the part that is not complete yet
  uint64_t position_ = 0;  // of rest_ in the file
  uint64_t data_bytes_ = 0;
  uint64_t sum_ = 0;
  bool has_magic_ = false;
  bool ended_ = false;
  std::optional<BackupHead> head_;
  std::string error_;
};

}  // namespace holdfast
