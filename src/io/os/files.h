// The files of one folder, by name: what the server's persistence does to a disk, and all of it, so that a
// test can put another disk in its place. Knows no format. PosixFiles is the real one.
//
// A file is used by one thread at a time, but for sync(); different files and the folder by any threads at
// once. Nothing of what is written survives the machine's crash before File::sync(), no name that is made,
// changed or removed before sync_folder().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/os/result.h"

namespace holdfast {

// How much of it is written, and an errno where nothing is.
struct Written {
  size_t bytes = 0;
  int error = 0;
};

// An open file; closed when it is destroyed, which syncs nothing. Errors are errno values, 0 for none.
class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  // Appends; at least one byte, or an error. It may be less than all where the disk gets full or the system
  // likes it so; the next call then tells why.
  [[nodiscard]] virtual Written write(std::string_view bytes) = 0;
  // All that is written so far is on disk. Once it has failed it fails for good: what the system could not
  // write it has forgotten, and a second try would promise it nevertheless. Write all of it to another
  // file. ENOENT: the file has no name any more, somebody removed it or its folder.
  [[nodiscard]] virtual int sync() = 0;
  // Cuts the file; what is written next comes behind that. `size` is at most the file's.
  [[nodiscard]] virtual int truncate(uint64_t size) = 0;
  // Reads up to so many bytes at `offset`; fewer, or none, only at the end of the file.
  [[nodiscard]] virtual Result<size_t> read(uint64_t offset, std::span<char> into) = 0;
  virtual Result<uint64_t> size() = 0;
};

// Writes all of it. On an error some of it may be there: truncate() to where it began.
[[nodiscard]] int write_all(File& file, std::string_view bytes);
// The whole file.
Result<std::string> read_all(File& file);

class Files {
 public:
  Files() = default;
  Files(const Files&) = delete;
  Files& operator=(const Files&) = delete;
  virtual ~Files() = default;

  // For errors: of the folder.
  virtual const std::string& path() const = 0;

  // To read.
  virtual Result<std::unique_ptr<File>> open(const std::string& name) = 0;
  // To write and read, at its end; made where it is not there.
  virtual Result<std::unique_ptr<File>> append(const std::string& name) = 0;
  // The same, and empty; made with the permissions of the file `like`, which it is going to replace, if
  // there is one.
  virtual Result<std::unique_ptr<File>> create(const std::string& name, const std::string& like) = 0;

  // A file of the new name is replaced.
  virtual Result<Done> rename(const std::string& from, const std::string& to) = 0;
  // Done too where there is no such file.
  virtual Result<Done> remove(const std::string& name) = 0;
  virtual Result<bool> exists(const std::string& name) = 0;
  // All names, sorted.
  virtual Result<std::vector<std::string>> list() = 0;
  // The names are on disk as they are now.
  virtual Result<Done> sync_folder() = 0;

  // Keeps other servers away for as long as this object, and the process, live; done too where it has been.
  // The error names the process that was first.
  virtual Result<Done> lock() = 0;
  // Whether the path names this folder no more: it was removed, moved or replaced. Files that are open can
  // still be written then: ask before believing.
  virtual bool folder_gone() = 0;
  // Takes up the folder that is now where the one removed was, without a lock. Files that are open remain
  // in the old one. On an error all is as it was.
  virtual Result<Done> reopen_folder() = 0;

  // The whole file.
  Result<std::string> read(const std::string& name);
  // Puts `bytes` in the place of a file, so that at any moment, and after a crash, there is the old file or
  // the new one: written as `beside`, synced, renamed, and the folder synced. On an error it may still be
  // either, and `beside` is gone if it can be removed.
  Result<Done> replace(const std::string& name, std::string_view bytes, const std::string& beside);
  Result<Done> replace(const std::string& name, std::string_view bytes) {
    return replace(name, bytes, name + ".tmp");
  }
};

// A folder that is there. Errors have its path in them.
Result<std::unique_ptr<Files>> open_folder(const std::string& path);

}  // namespace holdfast
