// The table of commands: what the proxy does with each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace holdfast::proxy {

enum class How : uint8_t {
  kHere,     // the proxy's engine runs it: it concerns the connection or the proxy, and no key
  kOnCopy,   // runs on a copy of its one key; a change is made on the servers, if the key is still the same
  kRenew,    // renews a hold of the owner
  kUnlock,   // releases a hold of the owner
  kRefused,  // gets an error
};

// `command` is a name in the command table, in lower case; `has_keys`: whether the request names keys.
How how_to_run(std::string_view command, bool has_keys);

// Returns the error for a command that a script or a transaction may not run; empty if it may. `on_copy`:
// it runs on the copy of a key; else it has no key.
std::string refuse_in_script(std::string_view command, bool on_copy);

// Whether the effect of a command that runs on a copy depends on the TTL that the key has.
bool depends_on_ttl(std::string_view command, std::span<const std::string_view> argv);

// The error for a command that the proxy does not have.
std::string refusal(std::string_view command);

}  // namespace holdfast::proxy
