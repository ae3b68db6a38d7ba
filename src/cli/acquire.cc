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

// Releases a lock that is not wanted any more: if that fails, it expires with its TTL.
void release(Hold& hold) { static_cast<void>(hold.unlock()); }

int not_acquired(const LockSettings& lock, const Status& status) {
  const bool none_there = !status.servers.empty() &&
                          std::all_of(status.servers.begin(), status.servers.end(),
                                      [](const auto& s) { return s.outcome == Outcome::kUnreachable; });
  const bool taken = status.outcome == Outcome::kBusy || status.outcome == Outcome::kTimeout;
  return fail(taken && !none_there ? lock.busy_status : kUnavailable, "{}: {}: {}", lock.name,
              name_of(status.outcome), reason_of(status));
}

}  // namespace

std::string reason_of(const Status& status) {
  const bool trouble = status.outcome == Outcome::kUnreachable || status.outcome == Outcome::kRefused;
  if (std::string servers = trouble ? client::trouble_of(status.servers) : ""; !servers.empty())
    return servers;
  std::string reason = status.message;
  for (const ServerReport& report : status.servers) {
    if (!report.text.empty())
      reason = fmt::format("{} ({}: {})", status.message, report.server, report.text);
  }
  return reason;
}

std::string answers_of(const Status& status) {
  std::string said;
  for (const ServerReport& report : status.servers) {
    if (report.outcome == Outcome::kOk) continue;
    std::string what = report.text;
    if (what.empty() && report.outcome == Outcome::kExpired) what = "does not have the lock of this owner";
    if (what.empty() && report.outcome == Outcome::kNotOwner) what = "another owner holds it";
    if (what.empty()) what = name_of(report.outcome);
    said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", report.server, what);
  }
  return said.empty() ? status.message : fmt::format("{} ({})", status.message, said);
}

void report_renewals(const std::string& name, LockOptions& options) {
  options.on_renewal_failed = [name](const Status& status) {
    if (can_write_error()) fail(0, "{}: renewals fail, still held: {}", name, answers_of(status));
  };
  options.on_renewal_restored = [name](const Status&) {
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

Awaited await_lock(Client& client, const Signals& signals, const LockSettings& lock,
                   const LockOptions& options) {
  auto answer = std::make_shared<Mailbox<std::optional<Result<Hold>>>>();
  const auto done = [answer](Result<Hold> result) { answer->leave(std::move(result)); };
  if (lock.wait) {
    client.lock_for_async(lock.name, *lock.wait, options, done);
  } else {
    client.lock_async(lock.name, options, done);
  }
  Awaited awaited;
  awaited.signal = wait_or_signal(signals, answer->fd());
  awaited.result = answer->take();
  // The lock and the signal arrived together.
  if (awaited.signal != 0 && awaited.result && *awaited.result) release(**awaited.result);
  return awaited;
}

Taken take_lock(Client& client, const Signals& signals, const LockSettings& lock,
                const LockOptions& options) {
  const TimeMs began = client::Loop::now();  // a clock that also counts while the machine is suspended
  Awaited awaited = await_lock(client, signals, lock, options);
  if (awaited.signal != 0) return {std::nullopt, 128 + awaited.signal};
  Result<Hold>& acquired = awaited.result.value();
  if (!acquired) return {std::nullopt, not_acquired(lock, acquired)};
  // This process may have been stopped, or the machine suspended, since the grant. The caller's time limit
  // is over then.
  const milliseconds took((client::Loop::now() - began).count);
  if (lock.wait && *lock.wait > milliseconds(0) && took > *lock.wait) {
    release(*acquired);
    return {std::nullopt, fail(lock.busy_status,
                               "{}: lock not acquired: the grant came after the end of --wait", lock.name)};
  }
  return {*std::move(acquired), 0};
}

}  // namespace holdfast
