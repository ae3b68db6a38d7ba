// The descriptors 0, 1 and 2, which a caller may have closed.
#pragma once

#include <fcntl.h>

#include <cerrno>

namespace holdfast {

// What happens to text for a standard output that the caller closed: it is discarded, or each write fails
// with EBADF.
enum class ClosedOutput { kDiscards, kFails };

// Opens /dev/null for each standard stream that is closed. Without this the next socket or file would get
// its number, and messages for the standard stream would go there. Call it before any other descriptor is
// opened.
inline void open_closed_streams(ClosedOutput output) noexcept {
  const int modes[] = {O_RDONLY, output == ClosedOutput::kFails ? O_RDONLY : O_WRONLY, O_WRONLY};
  for (int fd = 0; fd < 3; ++fd) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    [[maybe_unused]] const int opened = open("/dev/null", modes[fd]);  // it gets the lowest free number: fd
  }
}

}  // namespace holdfast
