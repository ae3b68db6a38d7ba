// An error's code is its first word. Errors with the general code ERR are known by the beginning or a part
// of their text, as servers of earlier versions and Redis have no better code for them.
#include "client/base/server_error.h"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast {

namespace {

using client::Value;
using Row = std::pair<std::string_view, ServerError>;

constexpr std::array<Row, 20> kCodes{{
    {"WRONGTYPE", ServerError::kWrongType},
    {"NOREPLICAS", ServerError::kNoReplicas},
    {"MOVED", ServerError::kWrongServer},
    {"NOAUTH", ServerError::kNoLogin},
    {"WRONGPASS", ServerError::kWrongLogin},
    {"NOPERM", ServerError::kNoRight},
    {"LOADING", ServerError::kLoading},
    {"RECOVERING", ServerError::kRecovering},
    {"BUSY", ServerError::kBusyScript},
    {"FULL", ServerError::kFull},
    {"AHEAD", ServerError::kAhead},
    {"MISCONF", ServerError::kNoDisk},
    {"DEADLOCK", ServerError::kDeadlock},
    {"UNBLOCKED", ServerError::kUnblocked},
    {"OVER", ServerError::kOver},
    {"EXPIRED", ServerError::kLeaseExpired},
    {"CONFIRMED", ServerError::kLeaseConfirmed},
    {"CANCELLED", ServerError::kLeaseCancelled},
    {"NOLEASE", ServerError::kNoLease},
    {"CLUSTERDOWN", ServerError::kWrongServer},
}};

// The beginning of the text after "ERR ".
constexpr std::array<Row, 6> kGeneral{{
    {"syntax error", ServerError::kSyntax},
    {"unknown command", ServerError::kNoCommand},
    {"unknown subcommand", ServerError::kNoCommand},
    {"too many waiters", ServerError::kFull},
    {"AUTH ", ServerError::kWrongLogin},             // no password is set for this user
    {"Client sent AUTH", ServerError::kWrongLogin},  // the same, in an old Redis
}};

ServerError general_error_of(std::string_view text) {
  if (text.find("max-token-lead") != std::string_view::npos) return ServerError::kAhead;
  const auto row = std::ranges::find_if(kGeneral, [&](const Row& r) { return text.starts_with(r.first); });
  return row == kGeneral.end() ? ServerError::kGeneral : row->second;
}

}  // namespace

ServerError client::server_error_of(std::string_view error) {
  const std::string_view code = error.substr(0, error.find(' '));
  if (code == "ERR") return general_error_of(error.substr(std::min(code.size() + 1, error.size())));
  const auto row = std::ranges::find(kCodes, code, &Row::first);
  return row == kCodes.end() ? ServerError::kOther : row->second;
}

}  // namespace holdfast
