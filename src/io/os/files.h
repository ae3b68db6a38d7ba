// The files of one folder, by name: all disk operations of the server's persistence, so that a test can
// replace the disk. Knows no format. PosixFiles is the real implementation.
//
// One thread at a time uses a file, except for sync(). Several threads may use different files and the
// folder concurrently. A crash of the machine may lose bytes written before the next File::sync(), and
// names made, changed or removed before the next sync_folder().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/os/result.h"

namespace holdfast {

// The number of bytes written, and an errno if none was.
struct Written {
  size_t bytes = 0;
  int error = 0;
};

// An open file. The destructor closes it without a sync. Errors are errno values, 0 for none.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  // Appends at least one byte, or returns an error. It may write only a part, for example if the disk gets
  // full; then the next call returns the reason.
  [[nodiscard]] virtual Written write(std::string_view bytes) = 0;
  // Syncs everything written so far to disk. A failure is final: the system has discarded the bytes that it
  // could not write, and a second sync would wrongly succeed. After a failure write all data to another
  // file. ENOENT: the file has no name any more, because it or its folder was removed.
  [[nodiscard]] virtual int sync() = 0;
  // Cuts the file to `size` bytes, at most its present size. Later writes append there.
  [[nodiscard]] virtual int truncate(uint64_t size) = 0;
  // Fills `into` from `offset` on, and returns the number of bytes. It is less than asked only at the end
  // of the file.
  [[nodiscard]] virtual Result<size_t> read(uint64_t offset, std::span<char> into) = 0;
  virtual Result<uint64_t> size() = 0;
};

// Writes all bytes. After an error a part may be in the file: truncate() it to its size before.
[[nodiscard]] int write_all(File& file, std::string_view bytes);
// The whole file.
Result<std::string> read_all(File& file);

class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  // The path of the folder, for error texts.
  virtual const std::string& path() const = 0;

  // Opens a file to read.
  virtual Result<std::unique_ptr<File>> open(const std::string& name) = 0;
  // Opens a file to append and read. Creates it if it does not exist.
  virtual Result<std::unique_ptr<File>> append(const std::string& name) = 0;
  // The same, but empties the file. A new file gets the permissions of the file `like`, if that exists: the
  // caller will replace `like`.
  virtual Result<std::unique_ptr<File>> create(const std::string& name, const std::string& like) = 0;

  // Replaces an existing file of the new name.
  virtual Result<Done> rename(const std::string& from, const std::string& to) = 0;
  // Succeeds too if there is no such file.
  virtual Result<Done> remove(const std::string& name) = 0;
  virtual Result<bool> exists(const std::string& name) = 0;
  // Returns all names, sorted.
  virtual Result<std::vector<std::string>> list() = 0;
  // Syncs the present names to disk.
  virtual Result<Done> sync_folder() = 0;

  // Locks the folder against other servers, until this object or the process ends. Succeeds if this object
  // has locked it already. The error names the process that holds the lock.
  virtual Result<Done> lock() = 0;
  // Whether the path no longer names this folder: it was removed, moved or replaced. Writes to open files
  // still succeed then, so check this before relying on them.
  virtual bool folder_removed() = 0;
  // Opens the folder that is now at the path, without a lock. Open files remain in the old folder. On an
  // error nothing changes.
  virtual Result<Done> reopen_folder() = 0;

  // The whole file.
  Result<std::string> read(const std::string& name);
  // Replaces the content of a file atomically: at any moment, and after a crash, the old or the new file
  // exists. Writes `beside`, syncs it, renames it, and syncs the folder. On an error the file may be
  // either, and `beside` is removed if possible.
  Result<Done> replace(const std::string& name, std::string_view bytes, const std::string& beside);
  Result<Done> replace(const std::string& name, std::string_view bytes) {
    return replace(name, bytes, name + ".tmp");
  }
};

// Opens an existing folder. Errors contain its path.
Result<std::unique_ptr<Files>> open_folder(const std::string& path);

}  // namespace holdfast
