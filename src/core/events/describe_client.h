// A connection in words, for people.
#pragma once

#include <string>
#include <string_view>

namespace holdfast {

struct Conn;
struct Context;

// Of what a client says of itself. Redis has no limit; libraries send some dozens of bytes.
inline constexpr size_t kMaxNameBytes = 512;

// Why a client's name, or that of its library, is refused; `what` is what the error calls it. Empty: it is
// not.
std::string wrong_name(std::string_view text, std::string_view what);

// One line of CLIENT LIST: the fields of Redis 7.2 in their order, then Holdfast's own.
std::string describe_client(const Context& ctx, const Conn& c);

}  // namespace holdfast
