// The log: one line for each event, with time and level, to stdout or a file, as text, as JSON
// or as the journal of systemd reads it. Hides the library that writes it.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

class LineLimit;
struct SlowWait;

// From the most to the least talkative, by Redis's names.
enum class LogLevel { kDebug, kVerbose, kNotice, kWarning };

// kText: "time level text". kJson: an object with the members time, level, message and the fields.
// kJournald: "<N>text", N is the priority of syslog; the journal adds the time. See sd-daemon(3).
enum class LogFormat : uint8_t { kText, kJson, kJournald };

// A detail of a line for programs. In the text format it is not written: the text has it already.
struct LogField {
  std::string_view name;  // not time, level or message
  std::string_view text;
  int64_t number = 0;
  bool is_number = false;

  LogField(std::string_view n, std::string_view t) : name(n), text(t) {}
  template <std::integral T>
  LogField(std::string_view n, T value) : name(n), number(static_cast<int64_t>(value)), is_number(true) {}
};
using LogFields = std::initializer_list<LogField>;

// Sets the level and the file: lines below `level` are left out. An empty `file` means stdout. Before the
// call the log writes notice and above to stdout.
Result<Done> open_log(LogLevel level, const std::string& file);

void set_log_level(LogLevel level);

// From the next line on. The format is kText before the first call.
void set_log_format(LogFormat format);

// Reopens the file by its name, after a program such as logrotate has moved it. On a failure the old file
// stays in use.
void reopen_log();

// Whether a line of this level is written. Call it before formatting a frequent line.
bool logs(LogLevel level);

// `line` may have any bytes. A JSON line is valid UTF-8 in any case: see append_json_string().
void log_line(LogLevel level, std::string_view line, LogFields fields = {});

// Whether a line about `what` may be written now. If not, the log says that lines are dropped, and later
// how many.
bool may_log(LineLimit& limit, LogLevel level, std::string_view what);

// Prints the reason why the server does not start on stderr, in the format of the log.
void print_start_failure(std::string_view line);

// Logs a line of a script. Lines over the limits of line_limit.h are truncated or left out, and the log
// says how many were left out.
void log_script_line(LogLevel level, std::string_view text);

// Logs a wait for a lock that took long, with the same limits.
void log_slow_wait(const SlowWait& wait);

}  // namespace holdfast
