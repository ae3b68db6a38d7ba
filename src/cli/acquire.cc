// The main thread waits for two descriptors: that of the lock's result, and that of the signals.
#include "cli/acquire.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/output.h"
#include "cli/show.h"
#include "cli/status.h"
#include "cli/waiting.h"
#include "client/algorithm/wait_report.h"
#include "client/transport/transport.h"

namespace holdfast {
namespace {

int not_acquired(const LockSettings& lock, const Result& result) {
  const bool none_there = !result.servers.empty() &&
                          std::all_of(result.servers.begin(), result.servers.end(),
                                      [](const auto& s) { return s.outcome == Outcome::kUnreachable; });
  const bool taken = result.outcome == Outcome::kBusy || result.outcome == Outcome::kTimeout;
  return fail(taken && !none_there ? lock.busy_status : kUnavailable, "{}: {}: {}", lock.name,
              name_of(result.outcome), reason_of(result));
}

}  // namespace

std::string reason_of(const Result& result) {
  const bool trouble = result.outcome == Outcome::kUnreachable || result.outcome == Outcome::kRefused;
  if (std::string servers = trouble ? client::trouble_of(result.servers) : ""; !servers.empty())
    return servers;
  std::string reason = result.message;
  for (const ServerReport& report : result.servers) {
    if (!report.text.empty())
      reason = fmt::format("{} ({}: {})", result.message, report.server, report.text);
  }
  return reason;
}

std::string answers_of(const Result& result) {
  std::string said;
  for (const ServerReport& report : result.servers) {
    if (report.outcome == Outcome::kOk) continue;
    std::string what = report.text;
    if (what.empty() && report.outcome == Outcome::kExpired) what = "does not have the lock of this owner";
    if (what.empty() && report.outcome == Outcome::kNotOwner) what = "another owner holds it";
    if (what.empty()) what = name_of(report.outcome);
    said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", report.server, what);
  }
  return said.empty() ? result.message : fmt::format("{} ({})", result.message, said);
}

void report_renewals(const std::string& name, LockOptions& options) {
  options.on_renewal_failed = [name](const Result& result) {
    if (can_write_error()) fail(0, "{}: renewals fail, still held: {}", name, answers_of(result));
  };
  options.on_renewal_restored = [name](const Result&) {
    if (can_write_error()) fail(0, "{}: renewals succeed again", name);
  };
}

LockOptions options_of(const LockSettings& lock) {
  LockOptions options;
  options.mode = lock.mode;
  options.limit = lock.limit;
  options.ttl = lock.ttl;
  options.max_attempts = lock.max_attempts;
  options.backoff = lock.backoff;
  options.note = lock.note;
  if (lock.quiet) return options;
  report_waits(options, [name = lock.name](const std::string& event, const Json&, const std::string& text) {
    if (can_write_error())
      fail(0, "{}: {}{}", printable(name), event == "waiting" ? "waiting: " : "", text);
  });
  return options;
}

int await_lock(Client& client, const Signals& signals, const LockSettings& lock, const LockOptions& options,
               Acquired& acquired) {
  auto answer = std::make_shared<Mailbox<Acquired>>();
  const bool once = lock.wait == milliseconds(0);  // the client takes 0 as no limit
  const std::optional<milliseconds> wait = once ? std::nullopt : lock.wait ? lock.wait : milliseconds(0);
  client.lock_async(lock.name, wait, options, [answer](Acquired a) { answer->leave(std::move(a)); });
  const int signal = wait_or_signal(signals, answer->fd());
  acquired = answer->take();
  if (signal != 0 && acquired.result) acquired.hold.unlock();  // the lock and the signal arrived together
  return signal;
}

Taken take_lock(Client& client, const Signals& signals, const LockSettings& lock,
                const LockOptions& options) {
  const TimeMs began = client::Loop::now();  // a clock that also counts while the machine is suspended
  Acquired acquired;
  if (const int signal = await_lock(client, signals, lock, options, acquired); signal != 0)
    return {std::nullopt, 128 + signal};
  if (!acquired.result) return {std::nullopt, not_acquired(lock, acquired.result)};
  // This process may have been stopped, or the machine suspended, since the grant. The caller's time limit
  // is over then.
  const milliseconds took((client::Loop::now() - began).count);
  if (lock.wait && *lock.wait > milliseconds(0) && took > *lock.wait) {
    acquired.hold.unlock();
    return {std::nullopt, fail(lock.busy_status,
                               "{}: lock not acquired: the grant came after the end of --wait", lock.name)};
  }
  return {std::move(acquired.hold), 0};
}

}  // namespace holdfast
