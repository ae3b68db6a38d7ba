// The memory in use, as far as the engine counts it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/types.h"

namespace holdfast {

struct Context;
struct EngineState;

// Memory in use, as far as the engine counts it.
struct MemoryUse {
  static constexpr DurationMs kBetweenLooks{100};
  uint64_t startup_bytes = 0;  // used by an engine without keys and clients
  uint64_t peak_bytes = 0;     // the largest value that was measured
  TimeMs looked_at;            // time of the last measurement for the peak
  bool over_limit = false;     // memory was over its limit when the present request began
  // Total over all buffers of connections: see Buffer::count_in(). For input, only the received bytes
  // count, as the spare room has no pages yet.
  uint64_t buffer_bytes = 0;
  uint64_t text_bytes = 0;  // texts that connections set about themselves, for example their names
  // Values that RESTORE has read in part: see ValueReader.
  uint64_t partial_bytes = 0;
  // Old content that waits for its place in the snapshot that is written (WaitingBytes).
  uint64_t snapshot_bytes = 0;
};

// The error of a request that needs memory beyond the limit.
inline constexpr std::string_view kOomText = "OOM command not allowed when used memory > 'maxmemory'.";

// Returns the bytes in use. Memory that waits to be freed counts as well.
uint64_t used_memory_bytes(const EngineState& s);
// Frees a part of the memory that waits to be freed. Returns false if no part of it can be freed now.
bool free_some(EngineState& s);
// How many bytes used memory, and so many more, are above fifteen sixteenths of maxmemory; 0: none. The
// rest is for locks and data, and not for what clients make the server keep beside them: names, tracked
// keys, requests that have not run.
uint64_t surplus_bytes(const EngineState& s, uint64_t more_bytes = 0);
inline bool is_nearly_full(const EngineState& s, uint64_t more_bytes = 0) {
  return surplus_bytes(s, more_bytes) > 0;
}
// Returns used_memory_bytes(), and records it for the peak.
uint64_t record_memory_use(Context& ctx);

// Frees a part of a flushed keyspace that no snapshot needs any more. Returns false if there is none.
bool free_flushed(EngineState& s);
bool has_flushed_to_free(const EngineState& s);

// Sets a text that a connection gave about itself, and counts its memory.
inline void set_text(MemoryUse& memory, std::string& text, std::string_view value) {
  memory.text_bytes += value.size() - text.size();
  text = std::string(value);
}

}  // namespace holdfast
