// Opens the folder for this one replacement.
#include "io/os/replace_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include "io/os/files.h"

namespace holdfast {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<Done> replace_file(const std::string& path, std::string_view bytes) {
  Result<std::unique_ptr<Files>> folder = open_folder(folder_of(path));
  if (!folder) return Failure{folder.error()};
  const std::string name = path.substr(path.rfind('/') + 1);
  // No lock excludes another process, so each process writes a temporary file of its own name.
  return (*folder)->replace(name, bytes, fmt::format("{}.{}.tmp", name, getpid()));
}

}  // namespace holdfast
