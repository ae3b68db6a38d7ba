// Values that move or are copied to another key: RENAME, COPY, and their replay. A hold does not move:
// under the new key it is a new hold, with a new token.
#pragma once

#include <string_view>

#include "core/keyspace/keyspace.h"
#include "core/state/context.h"
#include "core/state/key_ref.h"

namespace holdfast {

// Moves the value of `k` to the key `to`. It must be live, no lock with several holders, and not `to`.
// Large values are not copied. Returns the place of `to`.
Keyspace::Found move_value(Context& ctx, KeyRef k, std::string_view to, ConnId client);
// The same for a copy, which may go to another database.
Keyspace::Found copy_value(Context& ctx, KeyRef k, DbIndex to_db, std::string_view to, ConnId client);

}  // namespace holdfast
