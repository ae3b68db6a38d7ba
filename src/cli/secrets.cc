// Reads the file byte by byte: the rest of standard input belongs to the command that `run` starts.
#include "cli/secrets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "client/base/login.h"

namespace holdfast {
namespace {

constexpr size_t kMaxPasswordBytes = 16384;  // the limit of a server for a client before its login

class File {
 public:
  explicit File(const std::string& name)
      : own_(name != "-"), fd_(own_ ? open(name.c_str(), O_RDONLY | O_CLOEXEC) : STDIN_FILENO) {}
  ~File() {
    if (own_ && fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  int fd() const { return fd_; }

 private:
  bool own_;
  int fd_;
};

// Reads the next byte. Returns 1; 0 at the end of the file; -1 after an error, with its reason in errno.
ssize_t read_byte(int fd, char& byte) {
  ssize_t got = 0;
  do got = read(fd, &byte, 1);
  while (got < 0 && errno == EINTR);
  return got;
}

}  // namespace

void hide_arguments(int argc, char** argv) {
  bool is_address = false;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const bool names_servers = std::string_view(argv[i]) == "--servers";
    client::hide_logins({argv[i], std::strlen(argv[i])}, is_address);
    is_address = names_servers;
  }
}

std::string read_password(const std::string& file) {
  const File input(file);
  const std::string name = file == "-" ? "standard input" : file;
  std::string line;
  char byte = 0;
  ssize_t got = input.fd() < 0 ? -1 : 1;
  while (got > 0 && line.size() <= kMaxPasswordBytes) {
    got = read_byte(input.fd(), byte);
    if (got <= 0 || byte == '\n') break;
    line += byte;
  }
  if (got < 0)
    refuse(fmt::format("--password-file: cannot read {}: {}; check the path and its permissions", name,
                       std::strerror(errno)));
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty())
    refuse(fmt::format("--password-file: the first line of {} is empty; it must be the password", name));
  if (line.size() > kMaxPasswordBytes)
    refuse(fmt::format("--password-file: the first line of {} is longer than {} bytes", name,
                       kMaxPasswordBytes));
  return line;
}

std::string with_login(const std::string& servers, const Given& given) {
  const bool has_user = given.contains("user");
  const bool has_file = given.contains("password-file");
  if (!has_user && !has_file) return servers;
  client::Login login = client::environment_login();
  if (has_user) login.user = given["user"].as<std::string>();
  if (has_file) login.password = read_password(given["password-file"].as<std::string>());
  if (login.password.empty())
    refuse("--user needs a password: give --password-file FILE, or set the variable HOLDFAST_PASSWORD");
  std::string all = with_setting(servers, "password", login.password);
  return login.user.empty() ? all : with_setting(all, "user", login.user);
}

}  // namespace holdfast
