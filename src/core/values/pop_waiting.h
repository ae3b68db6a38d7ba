// Requests that wait until one of their keys has an element, such as BLPOP and BZPOPMIN. Each has a place
// in the queue of each of its keys, whose service (lock/waiting.h) calls them. Keys are served in the order
// in which they changed, and the requests of a key in FIFO order, as in Redis.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/lock/acquire.h"
#include "core/state/context.h"
#include "core/state/wait_queue.h"

namespace holdfast {

struct Conn;

// Blocks the connection on a request; none of the keys has an element of the wanted type now. Timeout 0:
// none. Returns kWaiting, kTooMany or kTooManyOnKey.
Admission wait_for_elements(Context& ctx, Conn& c, std::unique_ptr<PopWaiter> owned,
                            std::span<const std::string_view> keys, DurationMs timeout);
// SWAPDB: the requests stay with the number of their database, so they change to the queues of the other
// one.
void swap_pop_waits(Context& ctx, DbIndex a, DbIndex b);

}  // namespace holdfast
