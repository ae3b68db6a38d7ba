// The file of a backup that is being read from a server: checked while it is written. It gets its name when
// all of it is on disk. This file and its users that read servers do not include each other's `Result`.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace holdfast {

class BackupFile {
 public:
  // `path`: "-" stands for standard output.
  explicit BackupFile(std::string path);
  ~BackupFile();  // removes the file unless finish() has succeeded
  BackupFile(const BackupFile&) = delete;
  BackupFile& operator=(const BackupFile&) = delete;

  // These return an error, or an empty text on success. After an error the backup is useless.
  std::string open();
  std::string add(std::string_view bytes);
  std::string finish();

  // Whether the last error is a fault of the disk or of standard output, not of the bytes.
  bool write_failed() const;
  uint64_t bytes() const;           // of the backup, so far
  uint64_t snapshot_bytes() const;  // of the snapshot in it; 0: not known yet
  int64_t taken_us() const;         // wall clock of the server

 private:
  struct Core;
  std::unique_ptr<Core> core_;
};

}  // namespace holdfast
