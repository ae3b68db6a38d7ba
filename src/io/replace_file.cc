// Write, sync, rename, sync the folder.
#include "io/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace holdfast {

namespace {

// Closed by whoever holds it last.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

Result<Done> replace_file(const std::string& path, std::string_view bytes) {
  const std::string beside = fmt::format("{}.{}.tmp", path, getpid());
  struct stat old {};
  const mode_t mode = stat(path.c_str(), &old) == 0 ? old.st_mode & 07777U : 0644;
  const auto fail = [&beside](const char* what) {
    const std::string why = fmt::format("cannot {} {}: {}", what, beside, std::strerror(errno));
    unlink(beside.c_str());
    return Failure{why};
  };
  {
    const File file(open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
    if (file.fd() < 0) return fail("create");
    if (!write_all(file.fd(), bytes)) return fail("write");
    if (fsync(file.fd()) != 0) return fail("sync");
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) return fail("rename");
  const File folder(open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.fd() >= 0) fsync(folder.fd());
  return Done{};
}

}  // namespace holdfast
