// SHA-1, by which scripts are named. OpenSSL's.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

// 40 hex digits in lower case.
std::string sha1_hex(std::string_view bytes);

}  // namespace holdfast
