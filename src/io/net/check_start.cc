// The rights are those of the user of this process, so run the check as the user of the server.
#include "io/net/check_start.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "io/config/acl_file.h"
#include "io/config/tls_setup.h"
#include "io/net/listen.h"
#include "io/os/host_info.h"
#include "io/os/replace_file.h"

namespace holdfast {
namespace {

bool may(const std::string& path, int rights) {
  return faccessat(AT_FDCWD, path.c_str(), rights, AT_EACCESS) == 0;
}

Result<Done> check_data_folder(const std::string& path) {
  struct stat found {};
  const bool exists = stat(path.c_str(), &found) == 0;
  if (!exists && errno != ENOENT)
    return Failure{fmt::format("cannot make the data folder {}: {}", path, std::strerror(errno))};
  if (exists && !S_ISDIR(found.st_mode))
    return Failure{fmt::format("the data folder {} is not a folder; check --dir", path)};
  if (exists && !may(path, R_OK | W_OK | X_OK))
    return Failure{fmt::format("cannot write the data folder {}: {}", path, std::strerror(errno))};
  if (!exists && !may(folder_of(path), W_OK | X_OK))
    return Failure{fmt::format("cannot make the data folder {}: {}", path, std::strerror(errno))};
  return Done{};
}

Result<Done> check_log(const std::string& path) {
  struct stat found {};
  const bool exists = stat(path.c_str(), &found) == 0;
  if (exists && S_ISDIR(found.st_mode)) errno = EISDIR;
  const bool missing = !exists && errno == ENOENT;
  const bool good = (exists && !S_ISDIR(found.st_mode) && may(path, W_OK)) ||
                    (missing && may(folder_of(path), W_OK | X_OK));
  if (good) return Done{};
  return Failure{fmt::format("cannot write the log {}: {}; check --logfile", path, std::strerror(errno))};
}

template <typename T>
void keep_error(const Result<T>& result, std::vector<std::string>& errors) {
  if (!result) errors.push_back(result.error());
}

}  // namespace

Result<uint32_t> make_room(const Options& options) {
  const uint64_t http = has_http(options) ? options.http_max_clients : 0;
  return make_room_for_clients(static_cast<uint32_t>(options.maxclients), static_cast<uint32_t>(http));
}

std::vector<std::string> check_start(const Options& options) {
  std::vector<std::string> errors;
  if (!options.logfile.empty()) keep_error(check_log(options.logfile), errors);
  keep_error(read_users(options), errors);
  keep_error(make_tls(options), errors);
  keep_error(make_room(options), errors);
  keep_error(check_listeners(options), errors);
  if (!options.dir.empty()) keep_error(check_data_folder(options.dir), errors);
  return errors;
}

}  // namespace holdfast
