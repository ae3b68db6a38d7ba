// The stored form of the libraries of functions: their code. script/functions.cc implements these
// functions; they are declared here, because snapshot and journal come before the scripts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

struct EngineState;

// Loads a stored library; replaces one with the same name. Returns an empty text, or why it cannot be
// loaded.
std::string restore_library(EngineState& s, std::string_view code);
// Removes a library, if it is there; an empty name: all of them.
void remove_library(EngineState& s, std::string_view name);
// The code of each library, in the order of their names. Valid until a library changes.
std::vector<std::string_view> library_codes(const EngineState& s);

}  // namespace holdfast
