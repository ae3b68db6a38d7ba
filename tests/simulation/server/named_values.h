// Tables of values by name, of which the generator picks one.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

namespace holdfast::simulation {

struct NamedValues {
  std::string_view name;
  std::vector<std::string_view> values;
};

// Returns the values of the name; null if the table does not have it.
inline const std::vector<std::string_view>* values_of(const std::vector<NamedValues>& table,
                                                      std::string_view name) {
  const auto found = std::ranges::find(table, name, &NamedValues::name);
  return found == table.end() ? nullptr : &found->values;
}

}  // namespace holdfast::simulation
