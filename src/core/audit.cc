// Requests as text.
#include "core/audit.h"

#include <algorithm>
#include <cstdio>

#include "core/command.h"
#include "core/handlers.h"

namespace holdfast {

bool is_secret(const Command& command, std::span<const std::string_view> argv, size_t i) {
  if (command.handler == cmd_auth) return i > 0;
  if (command.handler == cmd_acl_setuser) {
    return i > 2 && !argv[i].empty() && std::string_view("><#!").find(argv[i][0]) != std::string_view::npos;
  }
  if (command.handler == cmd_config_set) {
    if (i < 3 || i % 2 == 0) return false;
    return equals_ignore_case(argv[i - 1], "requirepass") ||
           equals_ignore_case(argv[i - 1], "tls-key-file-pass");
  }
  if (command.handler != cmd_hello) return false;
  for (size_t at = 2; at < i; ++at) {
    if (equals_ignore_case(argv[at], "AUTH") && i <= at + 2) return true;
  }
  return false;
}

std::string cut_text(std::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most)) + "... (" + std::to_string(text.size() - most) + " more bytes)";
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    static constexpr std::string_view kPlain = "\\\"\n\r\t\a\b";
    static constexpr std::string_view kEscaped = "\\\"nrtab";
    const size_t special = kPlain.find(c);
    if (special != std::string_view::npos) {
      out.append("\\").push_back(kEscaped[special]);
    } else if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      out += hex;
    }
  }
  out += '"';
}

void audit(Request& r) {
  constexpr size_t kMaxArguments = 16;
  if (!r.s().config.audit) return;
  std::string line = "client " + std::to_string(r.c.id.serial) + " (" + r.c.peer + ", user ";
  append_quoted(line, r.c.user->name);
  line += "):";
  for (size_t i = 0; i < std::min(r.argc(), kMaxArguments); ++i) {
    line += ' ';
    append_quoted(line, is_secret(r.command, r.argv, i) ? kRedacted : r.arg(i).substr(0, kShownBytes));
  }
  if (r.argc() > kMaxArguments) line += " ...";
  r.s().config.audit(line);
}

}  // namespace holdfast
