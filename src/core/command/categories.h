// The categories of commands, as ACL rules name them (+@write). They derive from a row's flags and group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast {

struct Command;

// All names, in the order of Redis, then Holdfast's own. Some categories have no commands here. A set of
// categories has one bit per name, by its index.
std::span<const std::string_view> category_names();
// Returns the category's bit; ignores case. Returns nullopt if there is none.
std::optional<uint32_t> category_named(std::string_view name);
uint32_t categories_of(const Command& command);

}  // namespace holdfast
