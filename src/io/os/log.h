// The log: one line for each event, with time and level, to stdout or a file. Hides the library that writes
// it.
#pragma once

#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

// From the most to the least talkative, by Redis's names.
enum class LogLevel { kDebug, kVerbose, kNotice, kWarning };

// Sets the level and the file: lines below `level` are left out. An empty `file` means stdout. Before the
// call the log writes notice and above to stdout.
Result<Done> open_log(LogLevel level, const std::string& file);

void set_log_level(LogLevel level);

// Reopens the file by its name, after a program such as logrotate has moved it. On a failure the old file
// stays in use.
void reopen_log();

// Whether a line of this level is written. Call it before formatting a frequent line.
bool logs(LogLevel level);

void log_line(LogLevel level, std::string_view line);

// Logs a line of a script. Lines over the limits of line_limit.h are truncated or left out, and the log
// says how many were left out.
void log_script_line(LogLevel level, std::string_view text);

}  // namespace holdfast
