// The log: one line an event, with time and level, to stdout or a file. Hides the library that writes it.
#pragma once

#include <string>
#include <string_view>

#include "io/os/result.h"

namespace holdfast {

// From the most to the least talkative, by Redis's names.
enum class LogLevel { kDebug, kVerbose, kNotice, kWarning };

// Lines below `level` are left out from now on. An empty `file` is stdout. Before the call: notice, to
// stdout.
Result<Done> open_log(LogLevel level, const std::string& file);

void set_log_level(LogLevel level);

// Opens the file anew by its name, for whoever has moved it away. On failure the old one stays in use.
void reopen_log();

// Whether a line of this level is written: ask before formatting a line that comes often.
bool logs(LogLevel level);

void log_line(LogLevel level, std::string_view line);

// A line of a script. Beyond line_limit.h's limits it is cut or left out, and the log says how many were.
void log_script_line(LogLevel level, std::string_view text);

}  // namespace holdfast
