// The versions that the server reports.
#pragma once

#include <string_view>

namespace holdfast {

inline constexpr std::string_view kHoldfastVersion = "0.1.0";
// The version of Redis whose commands, replies and errors the server follows. Clients adapt to it.
inline constexpr std::string_view kRedisVersion = "7.2.4";

inline constexpr int kRedisVersionNumber = 0x00070204;

}  // namespace holdfast
