// How the verbs show what servers say: tables and texts for people, JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/servers.h"
#include "client/base/value.h"

namespace holdfast {

using Json = nlohmann::ordered_json;

// On one line. What is no UTF-8 in it is replaced by U+FFFD.
std::string json_line(const Json& json);
// That line, written out at once. False: nobody can read it.
bool print_json(const Json& json);
// With anything that a terminal could take for an order, as \xNN; a blank, too, where `word`.
std::string printable(std::string_view bytes, bool word = false);
// Of ms: "812 ms", "29.5 s", "5m12s", "3h05m"; -1: "for ever".
std::string time_text(int64_t ms);
// Of the wall clock: 2026-11-21T17:38:26.123Z.
std::string time_now();
// Bold, on a terminal, unless that is dumb or the variable NO_COLOR is set. There is no other colour.
std::string heading(const std::string& text);
// The first row is a heading. Columns are as wide as they must be.
void print_table(const std::vector<std::vector<std::string>>& rows);

using client::field;
// A map as an object; an array in it is one of maps.
Json object_of(const client::Value& map);
// {"server": ...}, with "error" where the answer is not good.
Json row_of(const Answer& answer);

}  // namespace holdfast
