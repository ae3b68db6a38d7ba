// Translates Holdfast's requests to calls of the scripts in redis-scripts/, which do the same on Redis.
// Pure functions. redis-scripts/README.md has the arguments and answers of the scripts.
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

// Returns the text of a script in redis-scripts/, by its name without .lua; empty if there is none.
std::string_view script_file(std::string_view name);

struct ScriptCall {
  std::string script;  // "lock", "lease_grant"
  Argv keys;
  Argv argv;
};

// Returns a call by the script's digest. The server answers -NOSCRIPT if it does not know the script yet.
Argv evalsha_of(const ScriptCall& call);
// Returns a call with the script's whole text, which the server then remembers.
Argv eval_of(const ScriptCall& call);

// Returns the KEYS with which a lease was granted; null if the lease is unknown.
using LeaseKeys = std::function<const Argv*(const std::string& id)>;

// The position of a LOCKS LIST: the node of a cluster, and the cursor of its SCAN.
struct ListCursor {
  int slot = 0;      // a slot of the node
  std::string node;  // the node that gave `scan`, which is valid only there; empty: none yet
  std::string scan = "0";
};
// Parses and formats the cursor in requests and replies: "0" is the beginning. nullopt: not a cursor.
std::optional<ListCursor> read_list_cursor(std::string_view text);
std::string text_of(const ListCursor& cursor);

// The translation of a request.
struct Translation {
  enum class Kind : uint8_t {
    kScript,   // run `call`
    kList,     // SCAN from `from` on with `call.argv`, and `call.script` for each key found
    kPlain,    // Redis has the same command: send the request unchanged
    kRefused,  // not possible on Redis; `why` is the error with its code
  };
  Kind kind = Kind::kPlain;
  ScriptCall call;
  std::string why;
  ListCursor from = {};
};

Translation translate(const Argv& argv, const LeaseKeys& lease_keys);

// A LOCK that may wait. Redis cannot wait for a lock, so its client makes attempts.
struct WaitingLock {
  ScriptCall attempt;  // the call of one attempt, with LEFT
  std::string key, owner;
  Argv mode;          // SHARED, LIMIT n, or empty: exclusive. Waits with the same mode are admitted alike
  DurationMs wait{};  // 0: no time limit
};
// Parses a LOCK with WAIT; nullopt for any other request. Leaves SESSION out, which has no meaning on
// Redis.
std::optional<WaitingLock> waiting_lock(const Argv& argv);

ScriptCall unlock_call(const std::string& key, const std::string& owner);

}  // namespace holdfast::client
