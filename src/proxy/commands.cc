#include "proxy/commands.h"

#include <algorithm>
#include <array>

#include "core/base/parse.h"

namespace holdfast::proxy {

namespace {

struct Row {
  std::string_view name;
  How how;
};

// In alphabetical order within each kind. All other commands with keys are refused; all others without keys
// run here.
constexpr std::array kRows{
    Row{"del", How::kOnCopy},
    Row{"delex", How::kOnCopy},
    Row{"eval", How::kOnCopy},
    Row{"eval_ro", How::kOnCopy},
    Row{"evalsha", How::kOnCopy},
    Row{"evalsha_ro", How::kOnCopy},
    Row{"exec", How::kOnCopy},
    Row{"exists", How::kOnCopy},
    Row{"expire", How::kOnCopy},
    Row{"expireat", How::kOnCopy},
    Row{"expiretime", How::kOnCopy},
    Row{"fcall", How::kOnCopy},
    Row{"fcall_ro", How::kOnCopy},
    Row{"get", How::kOnCopy},
    Row{"getdel", How::kOnCopy},
    Row{"getex", How::kOnCopy},
    Row{"getset", How::kOnCopy},
    Row{"persist", How::kOnCopy},
    Row{"pexpire", How::kOnCopy},
    Row{"pexpireat", How::kOnCopy},
    Row{"pexpiretime", How::kOnCopy},
    Row{"psetex", How::kOnCopy},
    Row{"pttl", How::kOnCopy},
    Row{"set", How::kOnCopy},
    Row{"setex", How::kOnCopy},
    Row{"setnx", How::kOnCopy},
    Row{"strlen", How::kOnCopy},
    Row{"ttl", How::kOnCopy},
    Row{"type", How::kOnCopy},
    Row{"unlink", How::kOnCopy},

    Row{"lock", How::kHere},  // the engine reads it, and then hands it over
    Row{"renew", How::kRenew},
    Row{"unlock", How::kUnlock},

    // These have no keys in their rows, and concern keys all the same.
    Row{"backup|read", How::kRefused},
    Row{"backup|start", How::kRefused},
    Row{"bgrewriteaof", How::kRefused},
    Row{"bgsave", How::kRefused},
    Row{"client|caching", How::kRefused},  // the proxy does not learn of changes by other proxies
    Row{"client|tracking", How::kRefused},
    Row{"dbsize", How::kRefused},
    Row{"flushall", How::kRefused},
    Row{"flushdb", How::kRefused},
    Row{"keys", How::kRefused},
    Row{"lastsave", How::kRefused},
    Row{"lease|cancel", How::kRefused},
    Row{"lease|confirm", How::kRefused},
    Row{"lease|grant", How::kRefused},
    Row{"lease|info", How::kRefused},
    Row{"lease|renew", How::kRefused},
    Row{"locks|heartbeat", How::kRefused},
    Row{"locks|history", How::kRefused},
    Row{"locks|list", How::kRefused},
    Row{"locks|owned", How::kRefused},
    Row{"locks|top", How::kRefused},
    Row{"randomkey", How::kRefused},
    Row{"save", How::kRefused},
    Row{"scan", How::kRefused},
    Row{"swapdb", How::kRefused},
    Row{"watch", How::kRefused},
};

// Commands without keys that a script or a transaction with a key may run. It may run several times, so
// that PUBLISH is not one of them.
constexpr std::array<std::string_view, 5> kBesides{"discard", "echo", "ping", "time", "unwatch"};
// Commands on a copy whose effect may depend on the TTL of the key.
constexpr std::array<std::string_view, 6> kReadsTtl{"expiretime",  "getex", "persist",
                                                    "pexpiretime", "pttl",  "ttl"};
constexpr std::array<std::string_view, 4> kSetsTtl{"expire", "expireat", "pexpire", "pexpireat"};

const Row* find(std::string_view command) {
  const auto* const row = std::ranges::find(kRows, command, &Row::name);
  return row == kRows.end() ? nullptr : row;
}

}  // namespace

How how_to_run(std::string_view command, bool has_keys) {
  const Row* row = find(command);
  const bool script = command.starts_with("eval") || command.starts_with("fcall") || command == "exec";
  if (script && !has_keys) return How::kHere;
  if (row != nullptr) return row->how;
  return has_keys ? How::kRefused : How::kHere;
}

// Commands with keys that are in a script without keys are refused by their keys.
std::string refuse_in_script(std::string_view command, bool on_copy) {
  const Row* row = find(command);
  if (row != nullptr && row->how == How::kOnCopy) return {};
  if (!on_copy && row == nullptr) return {};
  if (std::ranges::find(kBesides, command) != kBesides.end()) return {};
  return "ERR holdfast-proxy: a script or a transaction cannot call '" + std::string(command) +
         "'; it can read and change one key, as a string";
}

bool depends_on_ttl(std::string_view command, std::span<const std::string_view> argv) {
  if (std::ranges::find(kReadsTtl, command) != kReadsTtl.end()) return true;
  if (std::ranges::find(kSetsTtl, command) != kSetsTtl.end()) return argv.size() > 3;  // NX, XX, GT, LT
  if (command != "set" || argv.size() < 4) return false;
  return std::ranges::any_of(argv.subspan(3),
                             [](std::string_view word) { return equals_ignore_case(word, "keepttl"); });
}

std::string refusal(std::string_view command) {
  return "ERR holdfast-proxy does not have '" + std::string(command) +
         "': it serves locks. Send this command to a server";
}

}  // namespace holdfast::proxy
