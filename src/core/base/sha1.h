// SHA-1, which names scripts. Uses OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// Returns 40 hex digits in lower case.
std::string sha1_hex(std::string_view bytes);

}  // namespace holdfast
