// A failed attempt reports at once the servers that cannot be used. The holders come later, by separate
// requests. One WaitReport joins both, so that no fact is reported twice.
#include "cli/waiting.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "client/algorithm/wait_report.h"
#include "client/transport/transport.h"

namespace holdfast {
namespace {

constexpr size_t kShownHolders = 3;

milliseconds now() { return milliseconds(client::Loop::now().count); }

// Returns " at 10.0.0.7:51234 (web-1)"; empty if the connection is unknown.
std::string where_of(const HolderStatus& holder) {
  if (holder.address.empty())
    return holder.connection == 0 ? "" : fmt::format(" (connection {})", holder.connection);
  return fmt::format(" at {}{}", printable(holder.address),
                     holder.name.empty() ? "" : fmt::format(" ({})", printable(holder.name)));
}

std::string text_of(const HolderStatus& holder, bool names_servers) {
  std::string text = fmt::format(
      "{}{} for {}, {}", printable(holder.owner, true), where_of(holder), time_text(holder.held.count()),
      holder.left ? "ttl " + time_text(holder.left->count()) : "does not expire");
  if (names_servers) text += fmt::format(", on {}", fmt::join(holder.servers, " and "));
  return text;
}

// Returns "held by ... for 3.2 s, ttl 26.8 s; place 1 of 2 in the queue; cannot reach ...".
std::string text_of(const WaitStatus& status, const std::string& trouble) {
  std::string text;
  const auto add = [&](std::string_view link, const std::string& part) {
    text += (text.empty() ? "" : std::string(link)) + part;
  };
  const size_t shown = std::min(status.holders.size(), kShownHolders);
  for (size_t i = 0; i < shown; ++i)
    add(" and ", (i == 0 ? "held by " : "") + text_of(status.holders[i], status.servers.size() > 1));
  if (shown < status.holders.size()) text += fmt::format(" and {} more", status.holders.size() - shown);
  if (status.delay.count() > 0)
    add("; ", fmt::format("no grant for {} (lock-delay)", time_text(status.delay.count())));
  if (status.place > 0) add("; ", fmt::format("place {} of {} in the queue", status.place, status.waiters));
  if (!trouble.empty()) add("; ", printable(trouble));
  return text;
}

Json json_of(const HolderStatus& holder) {
  Json row{{"owner", holder.owner},
           {"held_ms", holder.held.count()},
           {"ttl_ms", holder.left ? holder.left->count() : -1}};
  if (holder.connection != 0) row["connection"] = holder.connection;
  if (!holder.address.empty()) row["address"] = holder.address;
  if (!holder.name.empty()) row["name"] = holder.name;
  row["servers"] = holder.servers;
  return row;
}

Json json_of(const WaitStatus& status, const std::string& trouble) {
  Json facts{{"holders", Json::array()},
             {"delay_ms", status.delay.count()},
             {"place", status.place},
             {"waiters", status.waiters}};
  for (const HolderStatus& holder : status.holders) facts["holders"].push_back(json_of(holder));
  if (!trouble.empty()) facts["why"] = trouble;
  return facts;
}

// Whether the status has more facts than the list of unreachable servers.
bool is_known(const WaitStatus& status) {
  const bool refused = std::ranges::any_of(
      status.servers, [](const ServerReport& report) { return report.outcome == Outcome::kRefused; });
  return !status.holders.empty() || status.place > 0 || status.delay.count() > 0 || refused;
}

class WaitReporter {
 public:
  explicit WaitReporter(ReportWait callback) : callback_(std::move(callback)) {}

  void note_failure(const Status& result) {
    const auto news = report_.note(result, now());
    if (news) callback_("unreachable", {{"why", *news + "; retrying"}}, printable(*news) + "; retrying");
  }
  void note_status(const WaitStatus& status) {
    if (!is_known(status)) return note_failure({Outcome::kUnreachable, {}, status.servers});
    const std::string trouble = report_.cover(status.servers, now());
    callback_("waiting", json_of(status, trouble), text_of(status, trouble));
  }

 private:
  client::WaitReport report_;
  const ReportWait callback_;
};

}  // namespace

void report_waits(LockOptions& options, ReportWait callback) {
  const auto reporter = std::make_shared<WaitReporter>(std::move(callback));
  options.on_attempt_failed = [reporter](const Status& result) { reporter->note_failure(result); };
  options.on_waiting = [reporter](const WaitStatus& status) { reporter->note_status(status); };
}

}  // namespace holdfast
