// What a command does with each of its keys: read it, write it, or only look whether it is there. By this
// go key patterns of ACL users, and what COMMAND tells of keys.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast {

struct Command;

// As the flags of Redis's key specifications: "RW access update". `nth` counts the request's keys from 0.
// Empty: the command has no keys, or what stands in their place is none ("not_key": names of channels).
std::string_view key_flags(const Command& command, std::span<const std::string_view> argv, size_t nth);
// The same of any request: what SET does depends on its options, so that this is the most it may do.
std::string_view widest_key_flags(const Command& command, size_t nth);

enum KeyAccess : uint8_t { kSeen = 0, kRead = 1, kWritten = 2, kReadAndWritten = 3 };
// What a user needs to be allowed: to see values, to change or end them; kSeen: either.
uint8_t access_needed(std::string_view flags);

}  // namespace holdfast
