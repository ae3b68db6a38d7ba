// The programs that have options. Each has its own rows of the table (options_table.h).
#pragma once

#include <cstdint>

namespace holdfast {

enum class Program : uint8_t { kServer, kProxy };

// Chooses the program, once, before any function that reads options. Without it: the server.
void set_program(Program program);
// "holdfast-server", "holdfast proxy".
const char* program_name();

}  // namespace holdfast
