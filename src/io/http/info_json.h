// The state of the server as JSON: /api/v1/info, and the event "info".
#pragma once

#include <cstdint>
#include <string>

#include "core/base/types.h"

namespace holdfast {

class Engine;
struct AclUser;

// Facts of the process.
struct ServerFacts {
  TimeMs started;
  int64_t port = 0;
};

// The part of the object that is the same for all users, without braces.
std::string common_info(const Engine& engine, Now now, const ServerFacts& facts);
// The whole object.
std::string info_of(const AclUser& user, const std::string& common);

}  // namespace holdfast
