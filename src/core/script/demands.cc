// Computes the demands of commands, and of the scripts that they name.
#include "core/script/demands.h"

#include <algorithm>

#include "core/script/script.h"
#include "core/state/context.h"

namespace holdfast {

namespace {

// Returns the flags that the script of a request declares. None if its name is not cached.
ScriptFlags declared_flags(const ScriptHost& scripts, const Command& command, std::string_view script) {
  if (command.has(kScriptText)) return ScriptHost::flags_of(script);
  if (command.has(kFunctionName)) {
    const LibraryFunction* function = scripts.libraries().function(script);
    return function == nullptr ? ScriptFlags{} : ScriptHost::flags_of(*function);
  }
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
  if (!command.has(kScript)) return {command.has(kWrite | kPublishes), command.has(kDenyOom)};
  const ScriptFlags flags = declared_flags(s.scripts, command, argv[1]);
  if (!flags.shebang) return {!command.has(kReadOnly), false};
  return {!flags.no_writes, !flags.no_writes && !flags.allow_oom};
}

}  // namespace holdfast
