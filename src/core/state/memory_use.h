// The memory in use, as far as the engine counts it.
#pragma once

#include <cstdint>

namespace holdfast {

struct EngineState;
struct Context;

// Returns the bytes in use. Memory that waits to be freed counts as well.
uint64_t used_memory_bytes(const EngineState& s);
// Frees a part of the memory that waits to be freed. Returns false if no part of it can be freed now.
bool free_some(EngineState& s);
// Returns used_memory_bytes(), and records it for the peak.
uint64_t record_memory_use(Context& ctx);

// Frees a part of a flushed keyspace that no snapshot needs any more. Returns false if there is none.
bool free_flushed(EngineState& s);
bool has_flushed_to_free(const EngineState& s);

}  // namespace holdfast
