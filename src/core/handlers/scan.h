// Paging through the keys of a database, as SCAN and LOCKS LIST do.
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

// Steps of matching (GlobSteps) after which a page ends, though COUNT asks for more: about a tenth
// of a millisecond.
inline constexpr uint64_t kPageSteps = uint64_t{1} << 13;

// Whether a live key has what the arguments ask for.
bool is_shown(const Entry& e, const ScanArguments& scan, TimeMs now, GlobSteps& steps);

// Reads "cursor [MATCH pattern] [COUNT count] [TYPE type]" from argument `at` on; TYPE only where
// `with_type`. nullopt: the error has been written.
std::optional<ScanArguments> read_scan_arguments(Request& r, size_t at, bool with_type);

// The live keys of one step. Ends early, with `next`, where the pattern is too costly.
ScanPage scan_page(Request& r, const ScanArguments& scan);

}  // namespace holdfast
