// Campaigns for the lock, leads, and campaigns again. The client's thread leaves each change of the lock in
// a mailbox, and the main thread reacts to it. Another candidate may lead only after the whole command
// ended.
#include "cli/elect.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/acquire.h"
#include "cli/held_command.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "cli/waiting.h"
#include "client/base/server_error.h"

namespace holdfast {
namespace {

// The pause before the next campaign, so that other candidates come first.
constexpr int kCampaignPauseMs = 1000;

// The reason to end the command.
struct News {
  bool revoked = false;  // false: the lock is lost, or its time is almost over
  std::string why;
};
using NewsMailbox = std::shared_ptr<Mailbox<News>>;

// Reports the progress; any thread may call it. Drops the line if standard error would block: a blocked
// thread cannot renew the lock.
void report(const RunOptions& run, const std::string& event, const Json& more, const std::string& text) {
  if (!can_write_error()) return;
  if (!run.json) {
    fail(0, "{}: {}{}", printable(run.name), event, text);
    return;
  }
  Json row{{"time", time_now()}, {"event", event}, {"key", run.name}};
  row.update(more);
  std::fputs((json_line(row) + "\n").c_str(), stderr);
}

void report_reason(const RunOptions& run, const std::string& event, const std::string& why) {
  report(run, event, {{"why", why}}, ": " + printable(why));
}

LockOptions options_of(const RunOptions& run, const NewsMailbox& news) {
  LockOptions options = options_of(static_cast<const LockSettings&>(run));
  options.warn_before = warn_before_for(run);
  options.on_expiring = [news] { news->leave({false, "it could not be renewed in time"}); };
  options.on_lost = [news](const Status& why) { news->leave({false, why.message}); };
  options.on_revoke_requested = [news] { news->leave({true, {}}); };
  if (!run.quiet) {
    report_waits(options, [&run](const std::string& event, const Json& facts, const std::string& text) {
      report(run, event, facts, ": " + text);
    });
  }
  options.on_renewal_failed = [&run](const Status& why) {
    report_reason(run, "renewals fail", "still leading: " + answers_of(why));
  };
  options.on_renewal_restored = [&run](const Status&) {
    report(run, "renewals succeed", Json::object(), " again");
  };
  return options;
}

// Whether the user asked for the end: by a signal to this process, by the terminal's keys, or by a hangup.
bool is_wanted(const CommandEnd& end) {
  return end.asked_to_end || end.status == 128 + SIGINT || end.status == 128 + SIGQUIT ||
         end.status == 128 + SIGHUP;
}

void report_news(const RunOptions& run, const News& news) {
  if (news.revoked) {
    report(run, "revoked", Json::object(), ": asked to step down");
  } else {
    report_reason(run, "lost", news.why.empty() ? "it expired" : news.why);
  }
}

// Leads from the grant to the release. Returns the exit status; nullopt to campaign again.
std::optional<int> lead(const Signals& signals, const RunOptions& run, Hold& hold, Mailbox<News>& mail) {
  report(run, "leader", {{"owner", hold.owner()}, {"token", hold.token()}},
         fmt::format(", token {}", hold.token()));
  News news;
  Supervision how;
  how.lost_fd = mail.fd();
  how.rest = Supervision::Rest::kEnded;
  how.on_lost = [&] {
    news = mail.take();
    report_news(run, news);
  };
  const CommandEnd end = run_command(signals, run, hold, how);
  const Status released = hold.unlock();
  const bool reported = end.lost && !news.revoked;
  const bool lost = reported || released.outcome == Outcome::kExpired;
  if (lost && !reported) report_news(run, {false, released.message});
  if (!lost && !released)
    report_reason(run, "not given back", "it expires by itself: " + reason_of(released));
  const bool ended = !end.lost && !lost && !run.restart;
  if (!end.started && !end.lost) return end.status;
  return ended || is_wanted(end) ? std::optional(end.status) : std::nullopt;
}

// Whether a server rejected the login. A retry cannot fix that.
bool is_login_refused(const Status& status) {
  return status.outcome == Outcome::kRefused &&
         std::ranges::any_of(status.servers, [](const ServerReport& report) {
           return report.outcome == Outcome::kRefused && client::is_login_refusal(report.error);
         });
}

// Campaigns once, and leads if elected. Returns the exit status; nullopt to campaign again.
std::optional<int> campaign(Client& client, const Signals& signals, const RunOptions& run) {
  const auto news = std::make_shared<Mailbox<News>>();
  report(run, "standing", Json::object(), "");
  Awaited awaited = await_lock(client, signals, run, options_of(run, news));
  if (awaited.signal != 0) return 128 + awaited.signal;
  Result<Hold>& acquired = awaited.result.value();
  if (acquired) return lead(signals, run, *acquired, *news);
  report_reason(run, "refused", reason_of(acquired));
  return is_login_refused(acquired) ? std::optional(kUnavailable) : std::nullopt;
}

int elect(const Signals& signals, const RunOptions& run) {
  Client client(run.servers, {"holdfast-elect", {}});
  std::optional<int> status;
  while (!status) {
    status = campaign(client, signals, run);
    const int signal = status ? 0 : wait_or_signal(signals, -1, kCampaignPauseMs);
    if (signal != 0) status = 128 + signal;
  }
  report(run, "stopped", {{"status", *status}}, fmt::format(", status {}", *status));
  return *status;
}

}  // namespace

int run_while_leading(const std::vector<std::string>& words) {
  const ParsedRun parsed = parse_elect(words);
  if (!parsed.help.empty()) return print("{}", parsed.help), 0;
  if (!parsed.options) return fail(kUsage, "{}; see holdfast elect --help", parsed.wrong);
  return status_of_verb("elect", [&] {
    const Signals signals;
    return elect(signals, *parsed.options);
  });
}

}  // namespace holdfast
