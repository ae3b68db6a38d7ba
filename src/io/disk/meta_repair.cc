// Rebuilds the file `meta`, and marks losses in it.
#include "io/disk/meta_repair.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/base/types.h"

namespace holdfast {

namespace {

// A damaged number that is further ahead of the clock says nothing: one day.
constexpr uint64_t kMostLead = 86'400'000'000;

// Returns the rest of the first line that begins with `name` and a blank; empty if there is none.
std::string_view field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name) && line.substr(name.size(), 1) == " ") return line.substr(name.size() + 1);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return {};
}

uint64_t number(std::string_view digits) {
  uint64_t n = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  return fault == std::errc() && end == digits.data() + digits.size() ? n : 0;
}

}  // namespace

void expect_loss(Meta& meta) {
  meta.clean = false;
  meta.journal_sequence = 0;
  meta.boot_id.clear();
  meta.horizon_ms = meta.horizon_boot_ms = kNever.count;
}

Meta rebuild_meta(std::string_view damaged, uint64_t clock_us, std::string_view new_id) {
  const std::string_view id = field(damaged, "id");
  const uint64_t reserve = number(field(damaged, "token-reserve"));
  Meta meta;
  expect_loss(meta);
  meta.id = is_folder_id(id) ? id : new_id;
  meta.token_reserve = clock_us + kUnknownTokenLead;
  if (reserve <= clock_us + kMostLead) meta.token_reserve = std::max(meta.token_reserve, reserve);
  meta.token_max = meta.token_reserve;
  return meta;
}

}  // namespace holdfast
