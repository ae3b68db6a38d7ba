// Holds the folder by a descriptor, and looks every name up from there. So a change of the path never makes
// the server touch a file of another folder.
#include "io/os/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <mutex>

namespace holdfast {

namespace {

constexpr const char* kLockName = "lock";
constexpr mode_t kMode = 0644;

// Owns a descriptor, and closes it in the destructor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() { reset(-1); }

  int get() const { return fd_; }
  bool ok() const { return fd_ >= 0; }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

// Repeats the call while a signal interrupts it.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

Failure failure(std::string_view what, const std::string& path, int error) {
  return {fmt::format("cannot {} {}: {}", what, path, std::strerror(error))};
}

int open_folder_descriptor(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

class PosixFile : public File {
 public:
  PosixFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  Written write(std::string_view bytes) override {
    const ssize_t n = retry([&] { return ::write(fd_.get(), bytes.data(), bytes.size()); });
    return n < 0 ? Written{0, errno} : Written{static_cast<size_t>(n), 0};
  }

  int sync() override {
    const std::scoped_lock guard(sync_mutex_);
    if (sync_error_ != 0) return sync_error_;
    if (retry([&] { return fdatasync(fd_.get()); }) != 0) return sync_error_ = errno;
    struct stat facts {};
    if (fstat(fd_.get(), &facts) != 0) return sync_error_ = errno;
    return sync_error_ = facts.st_nlink == 0 ? ENOENT : 0;
  }

  int truncate(uint64_t size) override {
    return retry([&] { return ftruncate(fd_.get(), static_cast<off_t>(size)); }) == 0 ? 0 : errno;
  }

  Result<size_t> read(uint64_t offset, std::span<char> into) override {
    size_t done = 0;
    while (done < into.size()) {
      const auto at = static_cast<off_t>(offset + done);
      const ssize_t n = retry([&] { return pread(fd_.get(), &into[done], into.size() - done, at); });
      if (n < 0) return failure("read", path_, errno);
      if (n == 0) break;
      done += static_cast<size_t>(n);
    }
    return done;
  }

  Result<uint64_t> size() override {
    struct stat facts {};
    if (fstat(fd_.get(), &facts) != 0) return failure("inspect", path_, errno);
    return static_cast<uint64_t>(facts.st_size);
  }

 private:
  Descriptor fd_;
  std::string path_;
  std::mutex sync_mutex_;  // a stop may sync concurrently with a job
  int sync_error_ = 0;
};

class PosixFiles : public Files {
 public:
  PosixFiles(int fd, std::string path) : folder_(fd), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }

  Result<std::unique_ptr<File>> open(const std::string& name) override {
    return open_file("open", name, O_RDONLY, 0);
  }
  Result<std::unique_ptr<File>> append(const std::string& name) override {
    return open_file("open", name, O_RDWR | O_APPEND | O_CREAT, kMode);
  }
  Result<std::unique_ptr<File>> create(const std::string& name, const std::string& like) override {
    struct stat old {};
    const bool is_there = fstatat(folder_.get(), like.c_str(), &old, 0) == 0;
    auto file = open_file("create", name, O_RDWR | O_APPEND | O_CREAT | O_TRUNC | O_NOFOLLOW,
                          is_there ? old.st_mode & 07777U : kMode);
    // Only root may give a file away. For others the file remains one of their own.
    if (file && is_there &&
        fchownat(folder_.get(), name.c_str(), old.st_uid, old.st_gid, AT_SYMLINK_NOFOLLOW) != 0)
      errno = 0;
    return file;
  }

  Result<Done> rename(const std::string& from, const std::string& to) override {
    if (renameat(folder_.get(), from.c_str(), folder_.get(), to.c_str()) == 0) return Done{};
    return failure("rename", at(from), errno);
  }
  Result<Done> remove(const std::string& name) override {
    if (unlinkat(folder_.get(), name.c_str(), 0) == 0 || errno == ENOENT) return Done{};
    return failure("remove", at(name), errno);
  }
  Result<bool> exists(const std::string& name) override {
    struct stat facts {};
    if (fstatat(folder_.get(), name.c_str(), &facts, 0) == 0) return true;
    if (errno == ENOENT) return false;
    return failure("inspect", at(name), errno);
  }
  Result<std::vector<std::string>> list() override;

  Result<Done> sync_folder() override {
    if (retry([&] { return fsync(folder_.get()); }) == 0) return Done{};
    // A file system that cannot sync folders returns EINVAL.
    if (errno == EINVAL) return Done{};
    return failure("sync", path_, errno);
  }

  Result<Done> lock() override;
  bool folder_removed() override {
    struct stat here {};
    struct stat there {};
    if (fstat(folder_.get(), &here) != 0 || here.st_nlink == 0) return true;
    if (stat(path_.c_str(), &there) != 0) return errno == ENOENT || errno == ENOTDIR;
    return here.st_dev != there.st_dev || here.st_ino != there.st_ino;
  }
  Result<Done> reopen_folder() override;

 private:
  std::string at(std::string_view name) const { return fmt::format("{}/{}", path_, name); }
  Result<std::unique_ptr<File>> open_file(const char* what, const std::string& name, int flags,
                                          mode_t mode) {
    const int fd = retry([&] { return openat(folder_.get(), name.c_str(), flags | O_CLOEXEC, mode); });
    if (fd < 0) return failure(what, at(name), errno);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(fd, at(name)));
  }

  Descriptor folder_;  // its number never changes: see reopen_folder()
  Descriptor lock_;
  std::string path_;
};

Result<std::vector<std::string>> PosixFiles::list() {
  // Uses another descriptor, because reading moves its position.
  Descriptor fd(openat(folder_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  DIR* folder = fd.ok() ? fdopendir(fd.get()) : nullptr;
  if (folder == nullptr) return failure("list", path_, errno);
  fd.release();
  std::vector<std::string> names;
  errno = 0;
  for (const dirent* entry = readdir(folder); entry != nullptr; entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  const int error = errno;
  closedir(folder);
  if (error != 0) return failure("list", path_, error);
  std::sort(names.begin(), names.end());
  return names;
}

// Returns the process that the lock file names, as text. It is for people, and may not be written yet.
std::string owner_of(int lock) {
  char digits[16];
  const ssize_t n = pread(lock, digits, sizeof digits, 0);
  const std::string_view text(digits, n > 0 ? static_cast<size_t>(n) : 0);
  const std::string_view pid = text.substr(0, text.find_first_not_of("0123456789"));
  return pid.empty() ? "another process" : fmt::format("process {}", pid);
}

Result<Done> PosixFiles::lock() {
  if (lock_.ok()) return Done{};
  const int fd = openat(folder_.get(), kLockName, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, kMode);
  if (fd < 0) return failure("open", at(kLockName), errno);
  Descriptor lock(fd);
  if (retry([&] { return flock(fd, LOCK_EX | LOCK_NB); }) != 0) {
    if (errno != EWOULDBLOCK) return failure("lock", at(kLockName), errno);
    return Failure{
        fmt::format("the folder {} is in use by {}; each server needs its own", path_, owner_of(fd))};
  }
  // If the disk is full, the error of the next server lacks the process id.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(fd, 0) != 0 || pwrite(fd, pid.data(), pid.size(), 0) < 0) errno = 0;
  lock_.reset(lock.release());
  return Done{};
}

Result<Done> PosixFiles::reopen_folder() {
  const Descriptor now(open_folder_descriptor(path_));
  // dup3() replaces the folder behind the old number atomically, because other threads use that number.
  if (!now.ok() || dup3(now.get(), folder_.get(), O_CLOEXEC) < 0) return failure("open", path_, errno);
  lock_.reset(-1);
  return Done{};
}

}  // namespace

int write_all(File& file, std::string_view bytes) {
  while (!bytes.empty()) {
    const Written written = file.write(bytes);
    if (written.error != 0) return written.error;
    bytes.remove_prefix(written.bytes);
  }
  return 0;
}

Result<std::string> read_all(File& file) {
  Result<uint64_t> size = file.size();
  if (!size) return Failure{size.error()};
  std::string bytes(*size, '\0');
  Result<size_t> read = file.read(0, bytes);
  if (!read) return Failure{read.error()};
  bytes.resize(*read);
  return bytes;
}

Result<std::string> Files::read(const std::string& name) {
  Result<std::unique_ptr<File>> file = open(name);
  if (!file) return Failure{file.error()};
  return read_all(**file);
}

Result<Done> Files::replace(const std::string& name, std::string_view bytes, const std::string& beside) {
  // A file left by a crash may have other permissions.
  static_cast<void>(remove(beside));
  Result<std::unique_ptr<File>> file = create(beside, name);
  if (!file) return Failure{file.error()};
  int error = write_all(**file, bytes);
  if (error == 0) error = (*file)->sync();
  file->reset();
  Result<Done> done = error == 0 ? rename(beside, name) : failure("write", path() + "/" + beside, error);
  if (!done) {
    // The first failure is the one to report.
    static_cast<void>(remove(beside));
    return done;
  }
  return sync_folder();
}

Result<std::unique_ptr<Files>> open_folder(const std::string& path) {
  const int fd = open_folder_descriptor(path);
  if (fd < 0) return failure("open", path, errno);
  return std::unique_ptr<Files>(std::make_unique<PosixFiles>(fd, path));
}

}  // namespace holdfast
