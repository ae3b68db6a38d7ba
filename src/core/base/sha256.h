// SHA-256, the only form in which passwords are stored. Uses OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Returns 64 hex digits in lower case.
std::string sha256_hex(std::string_view bytes);

}  // namespace holdfast
