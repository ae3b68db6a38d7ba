// No client may keep the others from acquiring locks by what only occupies memory: requests received in
// part, queued for EXEC or waiting, and the names that a connection watches and has subscribed to. When
// memory is nearly full (is_nearly_full()), this memory has a limit for each connection, its share:
// maxmemory divided by the number of connections, but at least kLeastShareBytes.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

struct Conn;
struct Context;
struct EngineState;

inline constexpr uint64_t kLeastShareBytes = uint64_t{64} << 10U;

// Whether memory is nearly full, and the connection exceeds its share.
bool exceeds_share(const EngineState& s, const Conn& c);

// While memory is nearly full: chooses connections that exceed their share, the largest first,
// until memory is not nearly full any more. If most of it is a wait that blocks the connection, the wait
// ends with -OOM. Returns the others, which the shell must close.
std::vector<ConnId> end_excess(Context& ctx);

}  // namespace holdfast
