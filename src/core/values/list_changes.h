// Changes of the list that a key holds: see body_changes.h. The command sends the keyspace event. Except
// for push_elements(), the key holds a list.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/keyspace/list_body.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// Pushes elements, one after the other. The key holds a list, or nothing yet; `k.f` must be the result of
// find_any() for it.
void push_elements(Context& ctx, KeyRef k, const Key& key, ListEnd end,
                   std::span<const std::string_view> elements, ConnId client);

// The indexes must be within the list. The last element removes the key.
void set_element(Context& ctx, KeyRef k, size_t index, std::string_view element, ConnId client);
void insert_element(Context& ctx, KeyRef k, size_t index, std::string_view element, ConnId client);
void erase_elements(Context& ctx, KeyRef k, size_t index, size_t count, ConnId client);

// Erases elements that are equal to `element`, at most `most`, from this end on. Returns their number.
size_t erase_equal_elements(Context& ctx, KeyRef k, ListEnd from, size_t most, std::string_view element,
                            ConnId client);

}  // namespace holdfast
