// Opens the folder for this one replacement.
#include "io/os/replace_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "io/os/files.h"

namespace holdfast {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<std::string> regular_file(const std::string& path) {
  char* const real = realpath(path.c_str(), nullptr);
  if (real == nullptr && errno == ENOENT) return path;
  if (real == nullptr) return Failure{fmt::format("cannot open {}: {}", path, std::strerror(errno))};
  const std::string target = real;
  std::free(real);
  struct stat found {};
  if (stat(target.c_str(), &found) != 0 || !S_ISREG(found.st_mode))
    return Failure{fmt::format("{} is not a regular file", path)};
  return target;
}

Result<Done> replace_file(const std::string& path, std::string_view bytes) {
  Result<std::string> target = regular_file(path);
  if (!target) return Failure{target.error()};
  Result<std::unique_ptr<Files>> folder = open_folder(folder_of(*target));
  if (!folder) return Failure{folder.error()};
  const std::string name = target->substr(target->rfind('/') + 1);
  // No lock excludes another process, so each process writes a temporary file of its own name.
  return (*folder)->replace(name, bytes, fmt::format("{}.{}.tmp", name, getpid()));
}

}  // namespace holdfast
