// Chunked requests: a request with very many names, or with a value that takes long to read, runs in
// chunks, one per loop iteration. So a SUBSCRIBE with 100,000 channels does not delay other clients.
// Conn::chunks keeps the deferred chunks; until the last has run, the connection is blocked. The user must
// still have the rights at each chunk, and a chunk that writes obeys CLIENT PAUSE and the state of the
// disk.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/state/request.h"

namespace holdfast {

// Names per chunk. A chunk takes about 0.1 ms.
inline constexpr size_t kChunkNames = 64;

// Defers the arguments beyond the first chunk. Returns the end index of the arguments that run now. Returns
// argc() if the request is part of a transaction or cannot continue in a later loop iteration.
size_t defer_rest(Request& r);
// The number of items to process now, for a request whose arguments do not name its items: see
// defer_again().
size_t chunk_size(const Request& r);
// Defers the same command without arguments: it runs again as the next chunk.
void defer_again(Request& r);

// Whether the request may continue in later loop iterations: it is not part of a transaction or script.
bool may_continue(const Request& r);
// Its next chunk gets the arguments `argv`, and `state` in Conn::chunk_state, which it takes from there.
void continue_later(Request& r, std::span<const std::string_view> argv, std::unique_ptr<ChunkState> state);
// The next chunk gets the same arguments as this one.
void continue_later(Request& r, std::unique_ptr<ChunkState> state);

// Runs the next chunk of the connection that is first in EngineState::unfinished.
void run_chunk(Context& ctx);

}  // namespace holdfast
