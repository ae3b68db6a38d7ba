// Pages over the keys of a database, for SCAN and LOCKS LIST.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/glob.h"
#include "core/state/request.h"

namespace holdfast {

struct ScanArguments {
  uint64_t cursor = 0;
  std::optional<std::string_view> match;
  size_t count = 10;
  std::optional<std::string_view> type;  // TYPE, in any case
  bool holds_only = false;
};

struct ScanPage {
  uint64_t next = 0;  // 0: done
  std::vector<std::string> keys;
};

// Steps of matching (GlobSteps) after which a page ends even if COUNT asks for more: about 0.1 ms.
inline constexpr uint64_t kPageSteps = uint64_t{1} << 13;

// Whether a live key matches the arguments.
bool is_shown(const Entry& e, const ScanArguments& scan, TimeMs now, GlobSteps& steps);

// Reads "cursor [MATCH pattern] [COUNT count] [TYPE type]" from argument `at` on; TYPE is accepted only
// with `with_type`. Writes the error and returns nullopt if the arguments are invalid.
std::optional<ScanArguments> read_scan_arguments(Request& r, size_t at, bool with_type);

// Reads only the cursor; writes an error and returns false if it is invalid. HSCAN and its relatives check
// their options only if there is a value.
bool is_cursor(Request& r, size_t at);

// Returns the live keys of one step. Ends early, with `next`, if the pattern is too costly.
ScanPage scan_page(Request& r, const ScanArguments& scan);

}  // namespace holdfast
