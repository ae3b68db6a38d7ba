// Requests that name very many things go in chunks, one in a turn, as nobody is to wait while a hundred
// thousand channels are subscribed to. What is still to be run stands in Conn::chunks; meanwhile the
// connection is blocked.
#pragma once

#include <string_view>

#include "core/state/request.h"

namespace holdfast {

// How many names a chunk has: about 0.1 ms.
inline constexpr size_t kChunkNames = 64;

// The end of the arguments that are to be run now: what is behind has been put off. All, where the request
// is part of a transaction or there are no later turns for it.
size_t defer_rest(Request& r);
// How many of the things that no argument names are to be taken now: see defer_again().
size_t chunk_size(const Request& r);
// The same command without arguments comes again.
void defer_again(Request& r);

// Runs a chunk of somebody's.
void run_chunk(Context& ctx);

}  // namespace holdfast
