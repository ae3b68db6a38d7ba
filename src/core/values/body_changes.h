// Changes of values with a ValueBody. They go through keys.h, so that WATCH, client caches and queues see
// them. The command sends the keyspace event. A change has four steps:
//   body_to_change()   the body of the key; a new one if the key has no value
//   change_body()      the change itself (keyspace/change_body.h)
//   journal_...()      the record of this change (record_changes.h)
//   end_body_change()  the consequences; removes the key if the body is empty
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string_view>

#include "core/events/record_changes.h"
#include "core/keyspace/change_body.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/value_body.h"
#include "core/lock/keys.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// Sets the key to a body, as put_value() does with other values.
void put_body(Context& ctx, KeyRef k, const Key& key, EntryType type, std::unique_ptr<ValueBody> body,
              ConnId client);

// Replaces whatever the key holds by a body without a deadline; an empty body removes the key. Returns
// whether the key existed.
bool replace_by_body(Context& ctx, DbIndex db, const Key& key, EntryType type,
                     std::unique_ptr<ValueBody> body, ConnId client);

// Takes the body out of the entry without a copy, so that put_body() can move it to another key. The entry
// keeps an empty small hash, which no client may see: the caller must call remove_key() at once.
std::unique_ptr<ValueBody> release_body(Keyspace& keys, Keyspace::Found& f);

// Returns the body of the key. If the key has no value, it gets the result of `make()`, to which the caller
// must add an element. `k.f` must be the result of find_any() for the key, which has no value of another
// type.
template <std::derived_from<ValueBody> Body, class Make>
Body& body_to_change(Context& ctx, KeyRef k, const Key& key, ConnId client, Make make) {
  if (!k || type_of(*k) == EntryType::kNone) put_body(ctx, k, key, Body::kType, make(), client);
  return body_of<Body>(*k);
}

// Ends a change, behind its journal record: WATCH, caches and the queue of the key see it. An empty body
// ends its key, as remove_key() does.
void end_body_change(Context& ctx, KeyRef k, ConnId client);

// Removes members of a set or a sorted set. The last member removes the key. Returns the number of removed
// members.
template <std::derived_from<ValueBody> Body>
size_t remove_members(Context& ctx, KeyRef k, std::span<const std::string_view> members, ConnId client) {
  Body& body = body_of<Body>(*k);
  const size_t removed = change_body(ctx.keys(k.db), body, [&] {
    size_t n = 0;
    for (const std::string_view member : members) n += body.erase(member) ? 1 : 0;
    return n;
  });
  if (removed == 0) return 0;
  if (body.size() > 0) journal_members(ctx, Record::kEraseMembers, k.db, key_of(*k), members);
  end_body_change(ctx, k, client);
  return removed;
}

}  // namespace holdfast
