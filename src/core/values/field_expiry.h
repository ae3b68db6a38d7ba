// Sets deadlines of the fields of a hash. A hash with such deadlines is a HashBody. Their expiry is that of
// the key: see value_expiry.h.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/hash_body.h"
#include "core/keyspace/keyspace.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// When a request sets the deadline of a field: always (kAny), only of a field without one (kIfNone) or with
// one (kIfSome), or only to a later or an earlier time than the present one. No deadline is the latest.
enum class DeadlineIf : uint8_t { kAny, kIfNone, kIfSome, kIfLater, kIfEarlier };

// What became of a field, with the replies of Redis as values.
enum class FieldResult : int8_t { kNoField = -2, kUntimed = -1, kUnmet = 0, kSet = 1, kErased = 2 };

// Sets the deadline of fields, one after the other; kNever removes it. Fields whose new deadline is due are
// erased; the last field removes the key. `k` holds a hash. Returns one result for each field.
std::vector<FieldResult> set_field_deadlines(Context& ctx, KeyRef k, const Key& key,
                                             std::span<const std::string_view> fields, TimeMs deadline,
                                             DeadlineIf condition, ConnId client);

// A field and its deadline; the view is the caller's.
using FieldDeadline = std::pair<std::string_view, TimeMs>;

// Sets deadlines as they are, also those that are due. `k` holds a hash; other fields than its own are
// ignored.
void put_field_deadlines(Context& ctx, KeyRef k, const Key& key, std::span<const FieldDeadline> deadlines,
                         ConnId client);

// Like set_fields() (hash_changes.h), but the fields keep their deadlines.
size_t set_fields_only(Context& ctx, KeyRef k, const Key& key, std::span<const std::string_view> pairs,
                       ConnId client);

}  // namespace holdfast
