// The demands of a request: what it may do, as far as that is known before it runs.
#pragma once

#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/script/script.h"
#include "core/state/context.h"

namespace holdfast {

// The demands of a request before it runs. If a script declares flags ("#!lua flags=..."), they count.
struct Demands {
  bool write = false;  // writes or publishes
  bool grow = false;   // may need more memory
};
Demands demands_of(const EngineState& s, const Command& command, std::span<const std::string_view> argv);

// Writes a script's name in lower case, the form of the cache, to `digits`. Returns a view of it; empty if
// it is no valid name.
std::string_view script_name(std::string_view name, ScriptName& digits);

}  // namespace holdfast
