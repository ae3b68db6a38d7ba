// A connection in words, for people.
#pragma once

#include <string>

namespace holdfast {

struct Conn;
struct Turn;

// One line of CLIENT LIST: the fields of Redis 7.2 in their order, then Holdfast's own.
std::string describe_client(const Turn& t, const Conn& c);

}  // namespace holdfast
