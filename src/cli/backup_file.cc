// Writes FILE.tmp, syncs it and renames it.
#include "cli/backup_file.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "cli/output.h"
#include "core/codec/backup.h"
#include "io/os/files.h"
#include "io/os/replace_file.h"

namespace holdfast {

struct BackupFile::Core {
  std::string path;
  std::string name;  // in its folder
  std::unique_ptr<Files> folder;
  std::unique_ptr<File> file;
  BackupReader reader;
  std::string data;  // not used: the snapshot's bytes are checked only
  uint64_t bytes = 0;
  bool write_failed = false;

  bool to_output() const { return path == "-"; }
  std::string beside() const { return name + ".tmp"; }
  std::string fail(const std::string& why) {
    write_failed = true;
    return why;
  }
  std::string fail_file(std::string_view what, int error) {
    return fail(fmt::format("{}.tmp cannot be {}: {}", path, what, std::strerror(error)));
  }
};

BackupFile::BackupFile(std::string path) : core_(std::make_unique<Core>()) {
  core_->path = std::move(path);
}

BackupFile::~BackupFile() {
  if (core_->file == nullptr) return;
  core_->file.reset();
  static_cast<void>(core_->folder->remove(core_->beside()));
}

bool BackupFile::write_failed() const { return core_->write_failed; }
uint64_t BackupFile::bytes() const { return core_->bytes; }
uint64_t BackupFile::snapshot_bytes() const {
  return core_->reader.head() ? core_->reader.head()->snapshot_bytes : 0;
}
int64_t BackupFile::taken_us() const { return core_->reader.head() ? core_->reader.head()->taken_us : 0; }

// Only the user may read a backup: it has all keys and values.
std::string BackupFile::open() {
  Core& c = *core_;
  if (c.to_output()) return "";
  const size_t slash = c.path.find_last_of('/');
  c.name = slash == std::string::npos ? c.path : c.path.substr(slash + 1);
  auto folder = open_folder(folder_of(c.path));
  if (!folder) return c.fail(folder.error());
  umask(S_IRWXG | S_IRWXO);
  auto file = (*folder)->create(c.beside(), c.beside());
  if (!file) return c.fail(file.error());
  c.folder = std::move(*folder);
  c.file = std::move(*file);
  return "";
}

std::string BackupFile::add(std::string_view bytes) {
  Core& c = *core_;
  c.bytes += bytes.size();
  c.data.clear();
  if (!c.reader.feed(bytes, c.data)) return c.reader.error();
  if (c.to_output()) {
    put(bytes);
    return flush() ? "" : c.fail("standard output cannot be written");
  }
  const int error = write_all(*c.file, bytes);
  return error == 0 ? "" : c.fail_file("written", error);
}

std::string BackupFile::finish() {
  Core& c = *core_;
  if (!c.reader.finish()) return c.reader.error();
  if (c.to_output()) return "";
  if (const int error = c.file->sync(); error != 0) return c.fail_file("synced", error);
  if (Result<Done> done = c.folder->rename(c.beside(), c.name); !done) return c.fail(done.error());
  c.file.reset();
  Result<Done> synced = c.folder->sync_folder();
  return synced ? "" : c.fail(synced.error());
}

}  // namespace holdfast
