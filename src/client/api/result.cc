// The names of the codes, and the exception with a status.
#include "holdfast/result.h"

#include <utility>

#include "holdfast/lease.h"

namespace holdfast {

namespace {

std::string text_of(const Status& status) {
  return std::string(name_of(status.outcome)).append(": ").append(status.message);
}

}  // namespace

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kBusy:
      return "busy";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kExpired:
      return "expired";
    case Outcome::kNotOwner:
      return "not owner";
    case Outcome::kUnreachable:
      return "unreachable";
    case Outcome::kDeadlock:
      return "deadlock";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kLeaseConfirmed:
      return "lease confirmed";
    case Outcome::kLeaseCancelled:
      return "lease cancelled";
  }
  return "unknown";
}

std::string_view name_of(ServerError error) {
  switch (error) {
    case ServerError::kNone:
      return "none";
    case ServerError::kOther:
      return "other";
    case ServerError::kSyntax:
      return "syntax";
    case ServerError::kNoCommand:
      return "no command";
    case ServerError::kWrongType:
      return "wrong type";
    case ServerError::kNoReplicas:
      return "no replicas";
    case ServerError::kWrongServer:
      return "wrong server";
    case ServerError::kGeneral:
      return "general";
    case ServerError::kNoLogin:
      return "no login";
    case ServerError::kWrongLogin:
      return "wrong login";
    case ServerError::kNoRight:
      return "no right";
    case ServerError::kLoading:
      return "loading";
    case ServerError::kRecovering:
      return "recovering";
    case ServerError::kBusyScript:
      return "busy script";
    case ServerError::kFull:
      return "full";
    case ServerError::kAhead:
      return "ahead";
    case ServerError::kNoDisk:
      return "no disk";
    case ServerError::kDeadlock:
      return "deadlock";
    case ServerError::kUnblocked:
      return "unblocked";
    case ServerError::kOver:
      return "over";
    case ServerError::kLeaseExpired:
      return "lease expired";
    case ServerError::kLeaseConfirmed:
      return "lease confirmed";
    case ServerError::kLeaseCancelled:
      return "lease cancelled";
    case ServerError::kNoLease:
      return "no lease";
  }
  return "unknown";
}

std::string_view name_of(Lease::State state) {
  switch (state) {
    case Lease::State::kGranted:
      return "granted";
    case Lease::State::kConfirmed:
      return "confirmed";
    case Lease::State::kCancelled:
      return "cancelled";
    case Lease::State::kExpired:
      return "expired";
    case Lease::State::kInDoubt:
      return "in doubt";
  }
  return "unknown";
}

Error::Error(Status status) : std::runtime_error(text_of(status)), status_(std::move(status)) {}
Error::~Error() = default;

void throw_error(const Status& status) { throw Error(status); }

}  // namespace holdfast
