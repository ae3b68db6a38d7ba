// A kind of news is a text: a new kind needs no state of its own here.
#include "client/algorithm/wait_report.h"

#include <algorithm>

#include "client/algorithm/redlock.h"
#include "client/base/login.h"

namespace holdfast::client {

std::string trouble_of(const Result& result) {
  std::string all;
  for (const ServerReport& report : result.servers) {
    const bool away = report.outcome == Outcome::kUnreachable && report.text != kNotAsked;
    if (report.text.empty() || (!away && report.outcome != Outcome::kRefused)) continue;
    if (!all.empty()) all += "; ";
    all += (away ? "cannot reach " : "") + report.server + ": " + with_advice(report.text);
  }
  return all;
}

std::optional<std::string> WaitReport::note(const Result& result, Ms now) {
  const bool trouble = result.outcome == Outcome::kUnreachable || result.outcome == Outcome::kRefused;
  const std::string news = trouble ? trouble_of(result) : "";
  return news.empty() ? std::nullopt : note(news, now);
}

std::optional<std::string> WaitReport::note(const std::string& news, Ms now) {
  const bool same = news == told_;
  if (told_at_ && now < *told_at_ + (same ? pause_ : kAtLeast)) return std::nullopt;
  pause_ = same ? std::min(2 * pause_, kLongest) : kAgain;
  told_ = news;
  told_at_ = now;
  return news;
}

}  // namespace holdfast::client
