// Requests as text.
#include "core/events/request_text.h"

#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "core/base/config.h"
#include "core/command/acl.h"
#include "core/command/command.h"
#include "core/state/conn.h"
#include "core/state/request.h"

namespace holdfast {

namespace {

// Whether an argument of ACL SETUSER may be or contain a password or its hash. An argument that is not a
// rule may be a password without its sign.
bool may_be_password(std::string_view rule) {
  constexpr std::string_view kSigns = "+-~%&(";
  constexpr std::string_view kMarks = "><#!";
  static constexpr std::string_view kWords[] = {"on",
                                                "off",
                                                "nopass",
                                                "reset",
                                                "resetpass",
                                                "allkeys",
                                                "resetkeys",
                                                "allchannels",
                                                "allcommands",
                                                "nocommands",
                                                "resetchannels",
                                                "clearselectors",
                                                "sanitize-payload",
                                                "skip-sanitize-payload"};
  if (rule.find_first_of(kMarks) != std::string_view::npos) return true;
  if (!rule.empty() && kSigns.find(rule[0]) != std::string_view::npos) return false;
  return std::ranges::none_of(kWords,
                              [&](std::string_view word) { return equals_ignore_case(rule, word); });
}

// Options whose values are or contain passwords: those of this server and those of Redis. A value is secret
// even if the option is rejected.
bool names_secret(std::string_view option) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"requirepass", "user", "tls-key-file-pass",
                                              "tls-client-key-file-pass", "masterauth", "masteruser"},
      [&](std::string_view name) { return equals_ignore_case(option, name); });
}

// ACL DRYRUN and COMMAND GETKEYS take a request as arguments, from `first` on.
bool is_secret_within(std::span<const std::string_view> argv, size_t first, size_t i) {
  if (i <= first) return false;
  const auto inner = argv.subspan(first);
  const Command* command = find_row(inner);
  return command != nullptr && is_secret(*command, inner, i - first);
}

// HELLO: user and password.
bool follows_auth(std::span<const std::string_view> argv, size_t i) {
  for (size_t at = 2; at < i; ++at) {
    if (equals_ignore_case(argv[at], "AUTH") && i <= at + 2) return true;
  }
  return false;
}

}  // namespace

bool is_secret(const Command& command, std::span<const std::string_view> argv, size_t i) {
  switch (command.secrets) {
    case Secrets::kNone:
      break;
    case Secrets::kAll:
      return i > 0;
    case Secrets::kAfterAuth:
      return follows_auth(argv, i);
    case Secrets::kUserRules:
      return i > 2 && may_be_password(argv[i]);
    case Secrets::kOptionValues:
      return i > 2 && names_secret(argv[i - 1]);  // the order of names and values has not been checked yet
    case Secrets::kOfRequestAt2:
      return is_secret_within(argv, 2, i);
    case Secrets::kOfRequestAt3:
      return is_secret_within(argv, 3, i);
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
