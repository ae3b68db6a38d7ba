// The keys of an engine whose keys are elsewhere: the engine of a proxy. It takes and checks requests as
// any engine; a request on keys goes to the hooks, and the proxy answers it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/types.h"

namespace holdfast {

class QueuedRequests;

// A request that has passed all checks of the connection's state and of its user's rights. The views are
// valid during the call.
struct RemoteRequest {
  ConnId conn;
  uint32_t db = 0;           // as clients number it
  std::string_view command;  // the name in the command table
  std::span<const std::string_view> argv;
  std::span<const std::string_view> keys;
  const QueuedRequests* transaction = nullptr;  // of an EXEC: the requests that it runs
};

// A LOCK whose arguments are right. The views are valid during the call.
struct RemoteLock {
  ConnId conn;
  uint32_t db = 0;
  std::string_view key;
  std::string_view owner;
  bool owner_made = false;         // the engine made it: the client gave "*"
  DurationMs ttl{0};               // 0: none
  uint32_t limit = 1;              // the most holders; kNoLimit: shared
  std::optional<DurationMs> wait;  // nullopt: do not wait; 0: wait without a limit
  DurationMs delay{0};
  bool session = false;
  bool async = false;
  bool ticket = false;  // a request by ticket, with words that are not here
  uint64_t hint = 0;    // for the token; 0: none
  std::string_view note;

  static constexpr uint32_t kNoLimit = UINT32_MAX;
};

struct RemoteHooks {
  // Null: the keys are in this engine. Returns true if it takes the request: the connection is blocked
  // until Engine::answer_remote(). Returns false if the engine must run the request. Must not call the
  // engine.
  std::function<bool(const RemoteRequest&)> take;
  // Takes a LOCK: the connection is blocked until Engine::answer_remote().
  std::function<void(const RemoteLock&)> lock;
  // Whether a script or a transaction may run the command. `on_copy`: on the copy of a key; else the
  // request has no key. Returns an error if not. Must not call the engine.
  std::function<std::string(std::string_view command, std::span<const std::string_view> argv, bool on_copy)>
      refuse;
  // A connection has ended. A request of it that was taken needs no answer any more.
  std::function<void(ConnId)> drop;
};

// A key at one moment, as the proxy knows it from its servers.
struct RemoteKey {
  std::string name;
  bool exists = false;
  std::string value;
  TimeMs deadline = kNever;

  bool operator==(const RemoteKey&) const = default;
};

// What a request has done on a copy of the key.
struct RemoteOutcome {
  std::string reply;  // its bytes; empty if the client wants no replies
  RemoteKey after;
};

}  // namespace holdfast
