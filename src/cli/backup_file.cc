// Writes FILE.tmp, syncs it and renames it. A lock on FILE.tmp keeps a second backup from writing to it.
#include "cli/backup_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "cli/output.h"
#include "core/codec/backup.h"
#include "io/os/files.h"
#include "io/os/replace_file.h"

namespace holdfast {

struct BackupFile::Core {
  std::string path;
  std::string target;  // the path without links
  std::string name;    // in its folder
  std::unique_ptr<Files> folder;
  std::unique_ptr<File> file;
  BackupReader reader;
  std::string data;  // not used: the snapshot's bytes are checked only
  uint64_t bytes = 0;
  bool write_failed = false;
  int lock = -1;  // the descriptor of FILE.tmp that has the lock

  ~Core() {
    if (lock >= 0) close(lock);
  }
  bool to_output() const { return path == "-"; }
  std::string beside() const { return name + ".tmp"; }
  std::string find_target();
  std::string lock_file();
  std::string check_locked() const;
  std::string fail(const std::string& why) {
    write_failed = true;
    return why;
  }
  std::string fail_file(std::string_view what, int error) {
    return fail(fmt::format("{}.tmp cannot be {}: {}", target, what, std::strerror(error)));
  }
};

// A link stays, and the file behind it is replaced. A device or a pipe is never replaced.
std::string BackupFile::Core::find_target() {
  target = path;
  struct stat found {};
  if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    return fmt::format("{} is not a regular file; name another file, or - for standard output", path);
  if (lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode)) {
    char* const real = realpath(path.c_str(), nullptr);
    if (real == nullptr) return fmt::format("cannot follow the link {}: {}", path, std::strerror(errno));
    target = real;
    std::free(real);
  }
  const size_t slash = target.find_last_of('/');
  name = slash == std::string::npos ? target : target.substr(slash + 1);
  return "";
}

// A former FILE.tmp may be of a command that was killed. It gets the permissions of a new file.
std::string BackupFile::Core::lock_file() {
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  lock = ::open((target + ".tmp").c_str(), kFlags, S_IRUSR | S_IWUSR);
  if (lock < 0) return fmt::format("cannot create {}.tmp: {}", target, std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return fmt::format("another backup is being written to {}", path);
  return check_locked();
}

std::string BackupFile::Core::check_locked() const {
  struct stat locked {};
  struct stat named {};
  const bool own = fstat(lock, &locked) == 0 && S_ISREG(locked.st_mode) && locked.st_nlink == 1 &&
                   locked.st_uid == geteuid() && fchmod(lock, S_IRUSR | S_IWUSR) == 0;
  if (!own) return fmt::format("{}.tmp is not a file of this user alone: remove it", target);
  // The other backup may have renamed the file before this one got the lock.
  const bool same = lstat((target + ".tmp").c_str(), &named) == 0 && named.st_ino == locked.st_ino;
  return same ? "" : fmt::format("another backup was written to {} meanwhile", path);
}

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
  std::signal(SIGXFSZ, SIG_IGN);  // a file at the limit of RLIMIT_FSIZE is an error, as on a full disk
  if (c.to_output()) return "";
  if (const std::string why = c.find_target(); !why.empty()) return c.fail(why);
  if (const std::string why = c.lock_file(); !why.empty()) return c.fail(why);
  auto folder = open_folder(folder_of(c.target));
  if (!folder) return c.fail(folder.error());
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
