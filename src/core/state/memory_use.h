// The memory in use, as far as the engine counts it.
#pragma once

#include <cstdint>

namespace holdfast {

struct EngineState;
struct Context;

// What waits to be given back to the system counts as well.
uint64_t used_memory_bytes(const EngineState& s);
// Gives back some of what waits for that; false: nothing does that can go now.
bool free_some(EngineState& s);
// The same, and notes it for the peak.
uint64_t record_memory_use(Context& ctx);

// Frees a part of a flushed keyspace that no snapshot needs any more; false: there is none.
bool free_flushed(EngineState& s);
bool has_flushed_to_free(const EngineState& s);

}  // namespace holdfast
