// The report of a wait about servers that it cannot use, with a clock that the test sets.
#include "client/algorithm/wait_report.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace holdfast::client {
namespace {

using Ms = WaitReport::Ms;

Status away(const std::string& why) {
  return {Outcome::kUnreachable, "too few", {{"a:1", Outcome::kUnreachable, 0, why}}};
}

}  // namespace

TEST_CASE("wait report: the server and the reason are reported at once") {
  WaitReport report;
  CHECK(report.note(away("connection refused"), Ms(7)) == "cannot reach a:1: connection refused");
}

TEST_CASE("wait report: the same news is repeated after 5 s, 10 s and so on, then every 60 s, not before") {
  WaitReport report;
  Ms at(0);
  REQUIRE(report.note(away("x"), at));
  for (const int pause_s : {5, 10, 20, 40, 60, 60}) {
    CAPTURE(pause_s);
    at += Ms(1000 * pause_s);
    CHECK_FALSE(report.note(away("x"), at - Ms(1)));
    CHECK(report.note(away("x"), at));
    CHECK_FALSE(report.note(away("x"), at + Ms(1)));
  }
}

TEST_CASE(
    "wait report: another reason is reported 1 s after the last report, not before, and starts again") {
  WaitReport report;
  REQUIRE(report.note(away("x"), Ms(0)));
  CHECK_FALSE(report.note(away("y"), Ms(999)));
  CHECK(report.note(away("y"), Ms(1000)) == "cannot reach a:1: y");
  CHECK_FALSE(report.note(away("y"), Ms(5999)));
  CHECK(report.note(away("y"), Ms(6000)));
}

TEST_CASE("wait report: a lock that another client holds is not reported") {
  WaitReport report;
  const Status busy{Outcome::kBusy, "others", {{"a:1", Outcome::kBusy, 0, ""}}};
  CHECK_FALSE(report.note(busy, Ms(0)));
}

TEST_CASE("wait report: each server that is unreachable or rejects is named, other servers are not") {
  const Status result{Outcome::kUnreachable,
                      "",
                      {{"a:1", Outcome::kUnreachable, 0, "connection refused"},
                       {"b:1", Outcome::kBusy, 0, ""},
                       {"c:1", Outcome::kRefused, 0, "NOAUTH no"}}};
  const std::string text = trouble_of(result.servers);
  CHECK(text.starts_with("cannot reach a:1: connection refused; c:1: NOAUTH no ("));
  CHECK(text.find("HOLDFAST_PASSWORD") != std::string::npos);
  CHECK(text.find("b:1") == std::string::npos);
}

TEST_CASE("wait report: an attempt that did not wait for a server reports its last known state") {
  const auto attempt = [](const char* a, const char* b) {
    return Status{Outcome::kUnreachable,
                  "",
                  {{"a:1", Outcome::kUnreachable, 0, a}, {"b:1", Outcome::kUnreachable, 0, b}}};
  };
  WaitReport report;
  CHECK(report.note(attempt("refused", "no answer yet"), Ms(0)) == "cannot reach a:1: refused");
  const char* both = "cannot reach a:1: refused; cannot reach b:1: gone";
  CHECK(report.note(attempt("no answer yet", "gone"), Ms(1000)) == both);
  CHECK_FALSE(report.note(attempt("refused", "no answer yet"), Ms(5999)));
  CHECK(report.note(attempt("no answer yet", "no answer yet"), Ms(6000)) == both);
  const Status back{Outcome::kBusy, "", {{"b:1", Outcome::kBusy, 0, ""}}};
  CHECK_FALSE(report.note(back, Ms(7000)));
  CHECK(report.note(attempt("refused", "no answer yet"), Ms(8000)) == "cannot reach a:1: refused");
}

TEST_CASE("wait report: a server without a known state is reported as such") {
  WaitReport report;
  CHECK(report.note(away("no answer yet"), Ms(0)) == "cannot reach a:1: no answer yet");
}

TEST_CASE("wait report: alternating reasons of a silent server are reported as one") {
  WaitReport report;
  REQUIRE(report.note(away("no answer in 1000 ms"), Ms(1000)));
  CHECK_FALSE(report.note(away("no answer in 5000 ms"), Ms(5000)));
  CHECK(report.note(away("no connection in time"), Ms(6000)));
  CHECK_FALSE(report.note(away("no answer in 1000 ms"), Ms(15999)));
  CHECK(report.note(away("connection refused"), Ms(15999)));
}

TEST_CASE("wait report: a reason reported with other news is not repeated until it changes") {
  WaitReport report;
  const Status one = away("refused");
  CHECK(report.cover(one.servers, Ms(0)) == "cannot reach a:1: refused");
  CHECK_FALSE(report.note(one, Ms(60000)));
  CHECK(report.note(away("x"), Ms(60001)));
  CHECK(report.cover({{"a:1", Outcome::kOk, 0, ""}}, Ms(70000)).empty());
  CHECK(report.note(one, Ms(71000)));
}

}  // namespace holdfast::client
