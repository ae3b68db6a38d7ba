// Holdfast's requests as calls of the scripts in redis-scripts/, which do the same on Redis: pure. What the
// scripts take and answer stands in redis-scripts/README.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace holdfast::client {

using Argv = std::vector<std::string>;

std::string lease_key(std::string_view first_key, std::string_view id);

// As it stands in redis-scripts/, by its name without .lua. Empty: there is none.
std::string_view script_file(std::string_view name);

struct ScriptCall {
  std::string script;  // "lock", "lease_grant"
  Argv keys;
  Argv argv;
};

// By the script's digest; -NOSCRIPT where the server does not know it yet.
Argv evalsha_of(const ScriptCall& call);
// With its whole text, which the server then knows.
Argv eval_of(const ScriptCall& call);

// The KEYS that a lease was granted with; null: not known.
using LeaseKeys = std::function<const Argv*(const std::string& id)>;

// How far a LOCKS LIST has come: which node of a cluster, and where its SCAN goes on.
struct ListCursor {
  int slot = 0;      // the node that has it
  std::string node;  // that has given `scan`, which means nothing to another one; empty: none yet
  std::string scan = "0";
};
// As it is shown to whoever pages: "0" is the beginning. nullopt: it is none.
std::optional<ListCursor> read_list_cursor(std::string_view text);
std::string text_of(const ListCursor& cursor);

// What is to be sent for a request.
struct Translation {
  enum class Kind : uint8_t {
    kScript,   // `call`
    kList,     // SCAN from `from` on with `call.argv`, and `call.script` for each key found
    kPlain,    // Redis has it, too: as it is
    kRefused,  // `why`, with its code
  };
  Kind kind = Kind::kPlain;
  ScriptCall call;
  std::string why;
  ListCursor from = {};
};

Translation translate(const Argv& argv, const LeaseKeys& lease_keys);

// A LOCK that may wait: Redis knows no waiting, so its client makes attempts.
struct WaitingLock {
  ScriptCall attempt;  // one, with LEFT
  std::string key, owner;
  Argv mode;          // SHARED, LIMIT n, or nothing: exclusive. Two with the same are admitted alike
  DurationMs wait{};  // 0: for ever
};
// SESSION has no meaning there and is left out. nullopt: it is no LOCK with WAIT.
std::optional<WaitingLock> waiting_lock(const Argv& argv);

ScriptCall unlock_call(const std::string& key, const std::string& owner);

}  // namespace holdfast::client
