// SESSION holds: those that end with their connection.
#pragma once

#include <string_view>

#include "core/state/state.h"

namespace holdfast {

// Notes a hold's attachment with its connection, or what is left of it when the hold ends.
void join_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                  const Attachment& a);
void leave_session(Context& ctx, DbIndex db, std::string_view key, std::string_view owner,
                   const Attachment& a);
// A connection's session is over: its SESSION holds end, now or after the grace; if they are many, some of
// them each millisecond.
void end_session(Context& ctx, ConnId conn, uint32_t number, absl::btree_set<HoldName> holds);
// Its timer has fired.
void resume_ending_session(Context& ctx, SessionEnd* end);

}  // namespace holdfast
