// The types of the library that requests return: codes and their names, Status, Result, formatters.
#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include "client/base/server_error.h"
#include "holdfast/format.h"
#include "holdfast/mutex.h"

namespace holdfast {
namespace {

using client::server_error_of;
using client::Value;

static_assert(!std::is_copy_constructible_v<Result<Hold>> && std::is_move_constructible_v<Result<Hold>>);
static_assert(!std::is_copy_constructible_v<LockAwaitable> && std::is_move_constructible_v<LockAwaitable>);
static_assert(sizeof(Mutex) == sizeof(void*));
static_assert(static_cast<int>(Outcome::kLeaseCancelled) == 10);
static_assert(static_cast<int>(ServerError::kNoLease) == 36);

const Status kRefused{Outcome::kRefused,
                      "servers answered with errors",
                      {{"a:1", Outcome::kRefused, 0, "NOPERM no right", ServerError::kNoRight},
                       {"b:1", Outcome::kOk, 7, ""}}};

std::string thrown(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("result: a value is there if the outcome is ok, and otherwise each access throws the status") {
  Result<std::unique_ptr<int>> good({Outcome::kOk, ""}, std::make_unique<int>(7));
  CHECK(good.ok());
  CHECK(**good == 7);
  CHECK(*good->get() == 7);
  const std::unique_ptr<int> taken = std::move(good).value();
  CHECK(*taken == 7);
  Result<std::unique_ptr<int>> bad = kRefused;
  CHECK_FALSE(bad);
  CHECK_FALSE(bad.has_value());
  CHECK(bad.servers.size() == 2);
  const std::string text = "refused: servers answered with errors";
  CHECK(thrown([&] { static_cast<void>(bad.value()); }) == text);
  CHECK(thrown([&] { static_cast<void>(*bad); }) == text);
  CHECK(thrown([&] { static_cast<void>(bad->get()); }) == text);
  CHECK(thrown([&] { static_cast<void>(std::move(bad).value()); }) == text);
}

TEST_CASE("result: an Error has the status with the report of each server") {
  const Error error(kRefused);
  const Error copy = error;
  CHECK(copy.status().outcome == Outcome::kRefused);
  CHECK(copy.status().servers.at(0).error == ServerError::kNoRight);
}

TEST_CASE("result: names of codes") {
  CHECK(name_of(Outcome::kOk) == "ok");
  CHECK(name_of(Outcome::kNotOwner) == "not owner");
  CHECK(name_of(Outcome::kLeaseCancelled) == "lease cancelled");
  CHECK(name_of(static_cast<Outcome>(200)) == "unknown");
  CHECK(name_of(ServerError::kNoLogin) == "no login");
  CHECK(name_of(static_cast<ServerError>(200)) == "unknown");
  CHECK(name_of(Lease::State::kInDoubt) == "in doubt");
}

TEST_CASE("result: the code of a server's error is its first word, or known by its text after ERR") {
  for (const auto& row :
       {std::pair{"NOAUTH Authentication required.", ServerError::kNoLogin},
        std::pair{"WRONGPASS invalid", ServerError::kWrongLogin},
        std::pair{"NOPERM no", ServerError::kNoRight},
        std::pair{"DEADLOCK deadlock detected", ServerError::kDeadlock},
        std::pair{"RECOVERING locks", ServerError::kRecovering},
        std::pair{"NOLEASE no such lease", ServerError::kNoLease},
        std::pair{"EXPIRED", ServerError::kLeaseExpired}, std::pair{"OVER", ServerError::kOver},
        std::pair{"FULL too many", ServerError::kFull},
        std::pair{"ERR too many waiters, see max-waiters", ServerError::kFull},
        std::pair{"ERR token is further ahead than max-token-lead allows", ServerError::kAhead},
        std::pair{"ERR syntax error", ServerError::kSyntax},
        std::pair{"ERR unknown command 'LOCK'", ServerError::kNoCommand},
        std::pair{"ERR Client sent AUTH, but no password is set", ServerError::kWrongLogin},
        std::pair{"ERR NOAUTH", ServerError::kGeneral}, std::pair{"NOAUTHX", ServerError::kOther},
        std::pair{"ERR", ServerError::kGeneral}, std::pair{"", ServerError::kOther}}) {
    CAPTURE(row.first);
    CHECK(server_error_of(std::string_view(row.first)) == row.second);
  }
  CHECK(server_error_of({Value::Kind::kError, 0, "LOADING", {}}) == ServerError::kLoading);
  CHECK(server_error_of({Value::Kind::kBulk, 0, "LOADING", {}}) == ServerError::kNone);
}

TEST_CASE("format: names, a status with and without its servers, a result, a hold") {
  CHECK(fmt::format("{:>10}|", Outcome::kBusy) == "      busy|");
  CHECK(fmt::format("{}", ServerError::kWrongType) == "wrong type");
  CHECK(fmt::format("{} {}", LossReason::kGone, ClientEvent::Kind::kGranted) == "gone granted");
  CHECK(fmt::format("{}", Lease::State::kConfirmed) == "confirmed");
  CHECK(fmt::format("{}", kRefused) == "refused: servers answered with errors");
  const std::string full = "refused: servers answered with errors (a:1: refused: NOPERM no right; b:1: ok)";
  CHECK(fmt::format("{:s}", kRefused) == full);
  CHECK(fmt::format("{:s}", Result<Hold>(kRefused)) == full);
  CHECK(fmt::format("{}", Status{Outcome::kOk, ""}) == "ok");
  CHECK(fmt::format("{}", Hold()) == "no lock");
}

}  // namespace holdfast
