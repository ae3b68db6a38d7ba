// The outcome of a lock request as a Status, with a text for people.
#pragma once

#include <vector>

#include "holdfast/result.h"

namespace holdfast::client {

// The text of the report for a server that was asked and need not be waited for.
inline constexpr const char* kNoAnswerYet = "no answer yet";

// Returns the status. `servers`: the last answer of each server.
Status status_of(Outcome outcome, const std::vector<ServerReport>& servers);

// Whether a retry cannot help, for example because the server knows no LOCK or requires a password. A
// server that is only busy or recovering has another code.
bool is_permanent(ServerError error);

}  // namespace holdfast::client
