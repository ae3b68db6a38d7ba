// Computes the demands of commands, and of the scripts that they name.
#include "core/script/demands.h"

#include <algorithm>

#include "core/command/handlers.h"
#include "core/script/script.h"
#include "core/state/context.h"

namespace holdfast {

namespace {

// Returns the flags that the script of a request declares. None if its name is not cached.
ScriptFlags declared_flags(const ScriptHost& scripts, const Command& command, std::string_view script) {
  if (command.handler == cmd_eval || command.handler == cmd_eval_ro) return ScriptHost::flags_of(script);
  ScriptName digits;
  const Script* found = scripts.find(script_name(script, digits));
  return found == nullptr ? ScriptFlags{} : found->flags;
}

}  // namespace

std::string_view script_name(std::string_view name, ScriptName& digits) {
  if (name.size() != digits.size()) return {};
  std::ranges::transform(name, digits.begin(), ascii_lower);
  return {digits.data(), digits.size()};
}

Demands demands_of(const EngineState& s, const Command& command, std::span<const std::string_view> argv) {
  const bool publishes = command.handler == cmd_publish || command.handler == cmd_spublish;
  if ((command.flags & kMovableKeys) == 0) {
    return {(command.flags & kWrite) != 0 || publishes, (command.flags & kDenyOom) != 0};
  }
  const ScriptFlags flags = declared_flags(s.scripts, command, argv[1]);
  if (!flags.shebang) return {(command.flags & kReadOnly) == 0, false};
  return {!flags.no_writes, !flags.no_writes && !flags.allow_oom};
}

}  // namespace holdfast
