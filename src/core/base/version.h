// Versions as the server tells them.
#pragma once

#include <string_view>

namespace holdfast {

inline constexpr std::string_view kHoldfastVersion = "0.1.0";
// The Redis whose commands, replies and errors are followed; clients choose their ways by it.
inline constexpr std::string_view kRedisVersion = "7.2.4";

inline constexpr int kRedisVersionNumber = 0x00070204;

}  // namespace holdfast
