// Requests that name very many things go in slices, one in a turn, as nobody is to wait while a hundred
// thousand channels are subscribed to. What is still to be run stands in Conn::slices; meanwhile the
// connection is blocked.
#pragma once

#include <string_view>

#include "core/state/request.h"

namespace holdfast {

// How many names a slice has: about 0.1 ms.
inline constexpr size_t kSliceNames = 64;

// The end of the arguments that are to be run now: what is behind has been put off. All, where the request
// is part of a transaction or there are no later turns for it.
size_t put_off_rest(Request& r);
// How many of the things that no argument names are to be taken now: see put_off_again().
size_t slice_size(const Request& r);
// The same command without arguments comes again.
void put_off_again(Request& r);

// Runs a slice of somebody's.
void run_slice(Turn& t);

}  // namespace holdfast
