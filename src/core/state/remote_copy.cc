// The rules for commands on the copy of a remote key.
#include "core/state/remote_copy.h"

#include <algorithm>

namespace holdfast {

std::vector<std::string_view> keys_in(const Command& command, std::span<const std::string_view> argv) {
  std::vector<std::string_view> keys;
  for (const size_t at : key_positions(command, argv).value_or(std::vector<size_t>{}))
    keys.push_back(argv[at]);
  return keys;
}

std::string refuse_remote(const EngineState& s, const Command& command,
                          std::span<const std::string_view> argv) {
  std::string why = s.config.remote.refuse(command.name, argv, s.remote_key != nullptr);
  if (!why.empty()) return why;
  const auto keys = keys_in(command, argv);
  if (s.remote_key == nullptr && !keys.empty())
    return "ERR '" + std::string(command.name) + "' names a key that is not in KEYS of the script";
  if (s.remote_key == nullptr) return {};
  if (std::ranges::all_of(keys, [&](std::string_view key) { return key == *s.remote_key; })) return {};
  return "ERR '" + std::string(command.name) +
         "' names another key: the proxy runs a script or a transaction on one key only";
}

}  // namespace holdfast
