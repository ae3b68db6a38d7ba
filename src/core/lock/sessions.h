// SESSION holds: holds that end with their connection.
#pragma once

#include <string_view>

#include "core/keyspace/lock_body.h"
#include "core/state/context.h"
#include "core/state/session_end.h"

namespace holdfast {

// Add a hold to the session holds of its connection, and remove it from them. No effect without SESSION.
void join_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                  const Attachment& a);
void leave_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   const Attachment& a);
// Ends the SESSION holds of a connection whose session is over, now or after the session grace. If they are
// many, ends some of them each millisecond.
void end_session(Context& ctx, ConnId conn, uint32_t number, absl::btree_set<HoldName> holds);
// Continues when the timer of `end` has fired.
void resume_ending_session(Context& ctx, SessionEnd* end);

}  // namespace holdfast
