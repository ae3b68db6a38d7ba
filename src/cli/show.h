// How the verbs show what servers say: tables and texts for people, JSON for programs.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "cli/servers.h"
#include "client/value.h"

namespace holdfast {

using Json = nlohmann::ordered_json;

// One line, written out at once. What is no UTF-8 in it is replaced by U+FFFD. False: nobody can read it.
bool print_json(const Json& json);
// Writes out what was printed. False: nobody can read it.
bool flush();

// With anything that a terminal could take for an order, as \xNN; a blank, too, where `word`.
std::string printable(std::string_view bytes, bool word = false);
// Of ms: "812 ms", "29.5 s", "5m12s", "3h05m"; -1: "for ever".
std::string time_text(int64_t ms);
// Bold, on a terminal.
std::string heading(const std::string& text);
// The first row is a heading. Columns are as wide as they must be.
void print_table(const std::vector<std::vector<std::string>>& rows);

// Of a map, which is a flat array of names and values: the value, or a null.
const client::Value& field(const client::Value& map, std::string_view name);
// A map as an object; an array in it is one of maps.
Json object_of(const client::Value& map);
// {"server": ...}, with "error" where the answer is not good.
Json row_of(const Answer& answer);

}  // namespace holdfast
