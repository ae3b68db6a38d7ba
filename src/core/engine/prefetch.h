// Prefetches the memory that the next requests of a connection will need: while the first key's memory is
// on its way, the others' is requested too. Changes nothing, and any request may turn out to need other
// memory.
#pragma once

namespace holdfast {

struct Conn;
struct EngineState;
class RequestBatch;

void prefetch_keys(const EngineState& s, const Conn& c, const RequestBatch& batch);

}  // namespace holdfast
