// Each kind of report is a text, so a new kind needs no state here.
#include "client/algorithm/wait_report.h"

#include <algorithm>

#include "client/algorithm/lock_status.h"
#include "client/base/login.h"

namespace holdfast::client {

namespace {

bool is_unreachable(const ServerReport& report) { return report.outcome == Outcome::kUnreachable; }
bool is_trouble(const ServerReport& report) {
  return !report.text.empty() && (is_unreachable(report) || report.outcome == Outcome::kRefused);
}
bool is_open(const ServerReport& report) { return is_unreachable(report) && report.text == kNoAnswerYet; }

// Returns the key by which reports count as equal. The different reasons of a silent server count as one:
// its request times out, then its connection, then the next request.
std::string kind_of(const std::vector<ServerReport>& servers) {
  std::string all;
  for (const ServerReport& report : servers) {
    if (!is_trouble(report)) continue;
    const bool silent = is_unreachable(report) &&
                        (report.text.starts_with("no answer") || report.text.starts_with("no connection"));
    all += report.server + ' ' + (silent ? "silent" : report.text) + '\n';
  }
  return all;
}

}  // namespace

std::string trouble_of(const std::vector<ServerReport>& servers) {
  std::string all;
  for (const ServerReport& report : servers) {
    if (!is_trouble(report)) continue;
    if (!all.empty()) all += "; ";
    all +=
        (is_unreachable(report) ? "cannot reach " : "") + report.server + ": " + with_advice(report.text);
  }
  return all;
}

// Returns the reports, with the last known state of each server that the attempt did not wait for. Leaves
// out a server whose state is unknown; returns `servers` if none is known.
std::vector<ServerReport> WaitReport::completed(const std::vector<ServerReport>& servers) {
  std::vector<ServerReport> all;
  for (const ServerReport& report : servers) {
    if (!is_open(report)) {
      known_.erase(report.server);
      if (is_trouble(report)) known_[report.server] = report;
    }
    const auto known = known_.find(report.server);
    if (known != known_.end()) all.push_back(known->second);
  }
  return all.empty() ? servers : all;
}

std::optional<std::string> WaitReport::note(const Status& result, Ms now) {
  const std::vector<ServerReport> servers = completed(result.servers);
  const bool trouble = result.outcome == Outcome::kUnreachable || result.outcome == Outcome::kRefused;
  std::string news = trouble ? trouble_of(servers) : "";
  if (news.empty() || !is_due(kind_of(servers), now)) return std::nullopt;
  return news;
}

std::optional<std::string> WaitReport::note(const std::string& news, Ms now) {
  return is_due(news, now) ? std::optional(news) : std::nullopt;
}

std::string WaitReport::cover(const std::vector<ServerReport>& servers, Ms now) {
  const std::vector<ServerReport> all = completed(servers);
  reported_ = kind_of(all);
  reported_at_ = now;
  pause_ = 2 * kLongest;
  return trouble_of(all);
}

bool WaitReport::is_due(const std::string& news, Ms now) {
  const bool same = news == reported_;
  if (reported_at_ && now < *reported_at_ + (same ? pause_ : kAtLeast)) return false;
  pause_ = same ? std::min(2 * pause_, kLongest) : kAgain;
  reported_ = news;
  reported_at_ = now;
  return true;
}

}  // namespace holdfast::client
