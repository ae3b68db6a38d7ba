// Requests as text for operators: the audit log, quoting, shortening, and the removal of secrets.
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

// Sizes in bytes: of an argument in SLOWLOG, ACL LOG and the log (as in Redis's SLOWLOG), and of a whole
// request in MONITOR.
inline constexpr size_t kShownBytes = 128;
inline constexpr size_t kMonitoredBytes = size_t{1} << 20U;

// Returns the text, or its first `most` bytes and the number of bytes cut off.
std::string cut_text(std::string_view text, size_t most = kShownBytes);

// Appends the text in quotes, with escapes for unprintable bytes.
void append_quoted(std::string& out, std::string_view text);

// Writes an audit log line for a request whose effect goes beyond one key (flush, users, options, broken
// holds, shutdown). Called after the request is admitted and before it runs.
void audit(Request& r);

}  // namespace holdfast
