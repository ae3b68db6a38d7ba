// Asks the system for the names of the user and of the machine.
#include "cli/note.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "holdfast/client.h"

namespace holdfast {
namespace {

// Returns the name of the user of this process; its number if the system knows no name.
std::string user_name() {
  const uid_t id = geteuid();
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> texts(size_t{16} << 10U);
  if (getpwuid_r(id, &entry, texts.data(), texts.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(id);
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

}  // namespace

std::string cut_at_character(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t size = most;
  const auto continues = [&] { return (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U; };
  while (size > 0 && continues()) --size;
  return std::string(text.substr(0, size));
}

std::string default_note(std::string_view command) {
  const std::string_view program = command.substr(command.find_last_of('/') + 1);
  return cut_at_character(fmt::format("{}@{}[{}] {}", user_name(), host_name(), getpid(), program),
                          LockOptions::kLongestNote);
}

}  // namespace holdfast
