// Settings of Redis that clients read or set, and that have one value here.
#pragma once

#include <string>
#include <string_view>

#include "core/base/config.h"
#include "io/config/options.h"

namespace holdfast {

// Their names and values, as CONFIG GET shows them.
ConfigChanges fixed_settings(const Options& options);
bool is_fixed_setting(std::string_view name);
// Returns why CONFIG SET refuses the value, in Redis's words if Redis refuses it, too. Empty if it is the
// value that the setting has.
std::string fixed_refusal(std::string_view name, std::string_view value);

}  // namespace holdfast
