#include "client/algorithm/lock_status.h"

#include <string>

#include "client/base/login.h"

namespace holdfast::client {

namespace {

const char* words_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "";
    case Outcome::kBusy:
      return "other owners hold the lock; wait for it, or retry later";
    case Outcome::kTimeout:
      return "other owners held the lock until the end of the wait";
    case Outcome::kExpired:
      return "the hold expired or was ended by force; another owner may hold the lock now";
    case Outcome::kUnreachable:
      return "too few servers answered; see each server's result";
    case Outcome::kDeadlock:
      return "deadlock detected: the owner would wait for itself; release its other locks and retry";
    case Outcome::kRefused:
      return "servers answered with errors; see each server's error";
    case Outcome::kCancelled:
      return "the caller cancelled the request";
    case Outcome::kNotOwner:
      return "another owner holds the lock";
    case Outcome::kLeaseConfirmed:
    case Outcome::kLeaseCancelled:
      break;  // of leases only
  }
  return "";
}

}  // namespace

Status status_of(Outcome outcome, const std::vector<ServerReport>& servers) {
  Status status{outcome, words_of(outcome), servers};
  for (const ServerReport& report : servers) {
    if (outcome == Outcome::kRefused && report.outcome == outcome)
      status.message = with_advice(report.text);
  }
  return status;
}

bool is_permanent(ServerError error) {
  switch (error) {
    case ServerError::kGeneral:
    case ServerError::kSyntax:
    case ServerError::kNoCommand:
    case ServerError::kWrongType:
    case ServerError::kNoLogin:
    case ServerError::kWrongLogin:
    case ServerError::kNoRight:
    case ServerError::kUnblocked:
      return true;
    default:
      return false;
  }
}

}  // namespace holdfast::client
