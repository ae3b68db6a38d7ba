// The file `meta` of a folder that has lost records, or `meta` itself. The next start then waits as long as
// lost holds may be in use. Knows no files.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/codec/meta.h"

namespace holdfast {

// How far tokens of an unknown past may be ahead of the clock: ten minutes. Each start after a stop that
// was not clean moves them by one minute (MetaKeeper). The tokens in the snapshot and the journals are
// known.
inline constexpr uint64_t kUnknownTokenLead = 600'000'000;

// Changes `meta`: the next start accepts the journals as they are, and has a full recovery wait.
void expect_loss(Meta& meta);

// Returns a new meta whose tokens are above the clock and above the reserve in `damaged`, the text of the
// former file, if the two agree. It keeps the folder's id if `damaged` has it, else it takes `new_id`.
Meta rebuild_meta(std::string_view damaged, uint64_t clock_us, std::string_view new_id);

}  // namespace holdfast
