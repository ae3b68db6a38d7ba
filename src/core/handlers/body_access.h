// The look-up of a value with a ValueBody, with Redis's replies for a missing key or another type.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string_view>

#include "core/base/event_flags.h"
#include "core/handlers/string_access.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/value_body.h"
#include "core/lock/keys.h"
#include "core/state/request.h"

namespace holdfast {

// Returns the body of a key, or null if there is no such key. Writes -WRONGTYPE and returns nullopt for
// another type. Counts a hit or a miss, and publishes a miss.
template <std::derived_from<ValueBody> Body>
std::optional<const Body*> find_body_to_read(Request& r, std::string_view key) {
  const Keyspace::Found f = find_to_read(r, key);
  if (!f) return nullptr;
  if (type_of(*f) == Body::kType) return &body_of<Body>(*f);
  reply_wrong_type(r);
  return std::nullopt;
}

// A key that a command may change. `body` is null if there is no such key; valid until the next change.
template <std::derived_from<ValueBody> Body>
struct BodyTarget {
  Key key;
  Keyspace::Found f;  // from find_any()
  const Body* body = nullptr;
};
template <std::derived_from<ValueBody> Body>
std::optional<BodyTarget<Body>> find_body_to_write(Request& r, std::string_view key_bytes) {
  const Key key = r.keys().key(key_bytes);
  const Keyspace::Found f = find_any(r.ctx, r.c.db, key);
  if (!f || type_of(*f) == EntryType::kNone) return BodyTarget<Body>{key, f};
  if (type_of(*f) == Body::kType) return BodyTarget<Body>{key, f, &body_of<Body>(*f)};
  reply_wrong_type(r);
  return std::nullopt;
}

// Stores a result in the key of argument 1, whatever it holds, replies with its size and publishes the
// event. An empty result removes the key.
void store_body(Request& r, EntryType type, std::unique_ptr<ValueBody> result, NotifyFlag what,
                std::string_view event);

}  // namespace holdfast
