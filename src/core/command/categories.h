// The categories of commands, as ACL rules name them (+@write): they follow from a row's flags and group.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace holdfast {

struct Command;

// All names, in Redis's order, then Holdfast's own; some have no commands here. A set of categories is a
// bit for each, by its place.
std::span<const std::string_view> category_names();
// Without regard to case; nullopt where there is none.
std::optional<uint32_t> category_named(std::string_view name);
uint32_t categories_of(const Command& command);

}  // namespace holdfast
