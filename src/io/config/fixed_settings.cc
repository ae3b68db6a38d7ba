#include "io/config/fixed_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/types.h"

namespace holdfast {

namespace {

struct Fixed {
  std::string_view name;
  std::string_view value;
  std::string_view refusal;  // why CONFIG SET refuses any value; empty: it accepts the one value
};

constexpr std::string_view kImmutable = "can't set immutable config";
constexpr std::string_view kSnapshot = "dbfilename";
static_assert(kDatabases == 16);
constexpr std::array kFixed{
    Fixed{"databases", "16", kImmutable},        Fixed{kSnapshot, "dump.rdb", "can't set protected config"},
    Fixed{"maxmemory-policy", "noeviction", ""}, Fixed{"replica-read-only", "yes", ""},
    Fixed{"slave-read-only", "yes", ""},         Fixed{"cluster-enabled", "no", kImmutable},
};

const Fixed* find_fixed(std::string_view name) {
  const auto* const found = std::ranges::find(kFixed, name, &Fixed::name);
  return found == kFixed.end() ? nullptr : found;
}

}  // namespace

ConfigChanges fixed_settings(const Options& options) {
  ConfigChanges settings;
  for (const Fixed& fixed : kFixed) {
    const bool compressed = fixed.name == kSnapshot && options.compress == "yes";
    settings.emplace_back(fixed.name, fmt::format("{}{}", fixed.value, compressed ? ".gz" : ""));
  }
  return settings;
}

bool is_fixed_setting(std::string_view name) { return find_fixed(name) != nullptr; }

std::string fixed_refusal(std::string_view name, std::string_view value) {
  const Fixed& fixed = *find_fixed(name);
  if (!fixed.refusal.empty()) return std::string(fixed.refusal);
  return value == fixed.value ? "" : fmt::format("the only value is {}", fixed.value);
}

}  // namespace holdfast
