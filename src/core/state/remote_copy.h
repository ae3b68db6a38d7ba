// What a script or a transaction may do on a proxy: see base/remote_keys.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/command/command.h"
#include "core/state/context.h"

namespace holdfast {

// The keys that a request names.
std::vector<std::string_view> keys_in(const Command& command, std::span<const std::string_view> argv);

// Why a script or a transaction must not run this command, as an error. Empty if it may.
std::string refuse_remote(const EngineState& s, const Command& command,
                          std::span<const std::string_view> argv);

}  // namespace holdfast
