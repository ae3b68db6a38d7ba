// Functions shared by the commands on sorted sets, also by those that block.
#pragma once

#include <memory>
#include <string_view>

#include "core/handlers/zset_range.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/zset_body.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

enum class ZsetEnd : uint8_t { kMin, kMax };

// The ranks of up to `most` members at an end.
Ranks end_ranks(const ZsetBody& zset, ZsetEnd end, size_t most);
// Removes these members and publishes the events of ZPOPMIN or ZPOPMAX. Reply with the members before.
void pop_ranks(Context& ctx, KeyRef k, const Ranks& ranks, ZsetEnd end, ConnId client);

// Publishes the event of a removal, and "del" if the key has no value any more.
void notify_removal(Context& ctx, DbIndex db, const Key& key, std::string_view event);

// Stores a result in the key of argument 1, replies with its size and publishes the event. An empty result
// removes the key.
void store_zset(Request& r, std::unique_ptr<ZsetBody> result, std::string_view event);

}  // namespace holdfast
