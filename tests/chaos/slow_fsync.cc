// For LD_PRELOAD: each fsync and fdatasync of the process takes longer, by the milliseconds in the file
// that HOLDFAST_FSYNC_DELAY names. The file may change at any time.
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>

namespace {

long delay_ms() {
  const char* path = std::getenv("HOLDFAST_FSYNC_DELAY");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[16] = {};
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  return size > 0 ? std::strtol(text, nullptr, 10) : 0;
}

// Calls the system directly: libfaketime changes the meaning of the library's sleep.
int sync_late(long number, int fd) {
  const long ms = delay_ms();
  timespec left{ms / 1000, ms % 1000 * 1000000};
  while (ms > 0 && syscall(SYS_nanosleep, &left, &left) != 0 && errno == EINTR) {
  }
  return static_cast<int>(syscall(number, fd));
}

}  // namespace

extern "C" int fsync(int fd) { return sync_late(SYS_fsync, fd); }
extern "C" int fdatasync(int fd) { return sync_late(SYS_fdatasync, fd); }
