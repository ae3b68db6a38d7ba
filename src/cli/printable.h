// Text of servers and users for a terminal: names, owners and error texts may contain any bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast {

// Returns the bytes with each backslash and each byte that a terminal could execute as \xNN: control
// characters, marks that change the direction of text, and bytes that are not UTF-8. With `word`, a blank
// becomes \x20 too, and an empty text becomes "".
std::string printable(std::string_view bytes, bool word = false);

// Returns a whole message as one line that is safe for a terminal: printable(), but backslashes stay, so
// that parts of the message may be printable() already. Keeps the first `most` bytes of the message, and
// says how many more there are.
std::string safe_line(std::string_view message, size_t most = 4000);

}  // namespace holdfast
