// CLIENT PAUSE: requests that come meanwhile are kept with their connections, and run when it is over.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/base/types.h"

namespace holdfast {

struct Command;
struct Conn;
struct Turn;

struct Pause {
  std::optional<TimeMs> until;  // nullopt: none
  bool writes_only = false;
  bool over = false;  // what was kept is to be run before the turn ends
};

// Whether the request has to wait.
bool is_paused(const Turn& t, const Conn& c, const Command& command,
               std::span<const std::string_view> argv);
// Keeps it; the connection is blocked until it has been run.
void postpone(Conn& c, std::span<const std::string_view> argv);

}  // namespace holdfast
