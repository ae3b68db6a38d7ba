// A connection as text, for CLIENT LIST and ACL LOG.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

struct Conn;
struct Context;

// The largest size in bytes of a name that a client sets (its own or its library's). Redis has no limit;
// libraries send a few dozen bytes.
inline constexpr size_t kMaxNameBytes = 512;

// Checks a client's name, or that of its library. Returns the error, or an empty string if the name is
// valid. `what` names the field in the error.
std::string wrong_name(std::string_view text, std::string_view what);

// One line of CLIENT LIST: the fields of Redis 7.2 in their order, then Holdfast's own.
std::string describe_client(const Context& ctx, const Conn& c);

}  // namespace holdfast
