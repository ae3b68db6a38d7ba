// What is said of requests to people: who did what others may want to know of, and what is not for their
// eyes.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace holdfast {

struct Command;
struct Request;

inline constexpr std::string_view kRedacted = "(redacted)";

// Whether an argument is a password, or may be one.
bool is_secret(const Command& command, std::span<const std::string_view> argv, size_t i);

// What of an argument's bytes SLOWLOG, ACL LOG and the log keep, as Redis does in SLOWLOG; and MONITOR, in
// all of a request.
inline constexpr size_t kShownBytes = 128;
inline constexpr size_t kMonitoredBytes = size_t{1} << 20U;

// The text, or its first bytes and how many more there are.
std::string cut_text(std::string_view text, size_t most = kShownBytes);

// As a person could type it: quoted, with escapes for what cannot be printed.
void append_quoted(std::string& out, std::string_view text);

// A line in the log on a request that changes more than one key's worth: it has been let in, and is about
// to be done.
void audit(Request& r);

}  // namespace holdfast
