// What a request may do, as far as that is known before it runs.
#pragma once

#include <array>
#include <span>
#include <string_view>

#include "core/command/command.h"
#include "core/script/script.h"
#include "core/state/state.h"

namespace holdfast {

// What a request may do, as far as it tells before it runs. A script's own flags ("#!lua flags=...") count
// where it has them.
struct Demands {
  bool write = false;  // also: publish
  bool grow = false;   // memory
};
Demands demands_of(const EngineState& s, const Command& command, std::span<const std::string_view> argv);

using ScriptName = std::array<char, ScriptHost::kShaDigits>;
// A script's name in lower case, which is how it is kept, written to `digits`. Empty: it can be no name.
std::string_view script_name(std::string_view name, ScriptName& digits);

}  // namespace holdfast
