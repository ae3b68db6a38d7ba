// The access of a command to each of its keys: read, write, or only a test for existence. Key patterns of
// ACL users and the key specifications of COMMAND use it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace holdfast {

struct Command;

// Returns the flags of Redis's key specifications: "RW access update". `nth` counts the request's keys from
// 0. Returns an empty string if the command has no keys, or if the arguments in their place are not keys
// ("not_key": channel names).
std::string_view key_flags(const Command& command, std::span<const std::string_view> argv, size_t nth);
// The widest flags over all requests: the access of SET, for example, depends on its options.
std::string_view widest_key_flags(const Command& command, size_t nth);

enum KeyAccess : uint8_t { kSeen = 0, kRead = 1, kWritten = 2, kReadAndWritten = 3 };
// The access that a user needs: kRead to see values, kWritten to change or remove them; kSeen: either of
// them.
uint8_t access_needed(std::string_view flags);

}  // namespace holdfast
