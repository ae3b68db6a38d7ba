// Formats the replies of servers: tables and texts for people, JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/printable.h"
#include "cli/servers.h"
#include "client/base/value.h"

namespace holdfast {

using Json = nlohmann::ordered_json;

// Returns the JSON text on one line. Bytes that are not UTF-8 become U+FFFD.
std::string json_line(const Json& json);
// Writes that line and flushes. Returns false if standard output cannot be written.
bool print_json(const Json& json);
// Formats a duration in ms: "812 ms", "29.5 s", "5m12s", "3h05m"; -1 means no end.
std::string time_text(int64_t ms);
// Returns the wall clock time in UTC: 2026-11-21T17:38:26.123Z.
std::string time_now();
// Returns the text in bold if standard output is a terminal, unless it is dumb or the variable NO_COLOR is
// set. The command uses no other colour or style.
std::string heading(const std::string& text);
// Prints the rows; the first row is the heading. Each column is as wide as its widest cell, up to 60
// bytes.
void print_table(const std::vector<std::vector<std::string>>& rows);

using client::field;
// Return one line about a holder or a waiter of LOCKS INFO, without the fields that the reply does not
// have: "held by alice  token 12  ttl 58.3 s  held for 1.6 s  from 10.0.0.7:51234 web  (nightly report)".
std::string hold_text(const client::Value& holder);
std::string waiter_text(const client::Value& waiter);
// Returns "exclusive", "shared" or, for example, "limit 3": the mode of a lock, a hold or a waiter.
std::string mode_text(const client::Value& map);
// Returns a map as an object. Each array in it must be an array of maps.
Json object_of(const client::Value& map);
// Returns {"server": ...}, with "error" if the answer is not good.
Json row_of(const Answer& answer);

}  // namespace holdfast
