// The lock's part of `run`: acquires it, signals its loss to the command's supervisor, and releases it.
#include "cli/run.h"

#include <fmt/format.h>

#include <functional>
#include <memory>
#include <optional>

#include "cli/acquire.h"
#include "cli/held_command.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "client/transport/transport.h"
#include "holdfast/client.h"

namespace holdfast {
namespace {

int lost_status(const RunOptions& run, const Status& why) {
  return fail(kLost, "{}: the lock was lost: {}", run.name,
              why.message.empty() ? "it expired" : reason_of(why));
}

// Releases the lock. --at-least does not apply to a command that did not start: it has done no work.
Status release(const RunOptions& run, Hold& hold, const CommandEnd& end) {
  return hold.unlock({end.started ? run.at_least : milliseconds(0)});
}

int run_held(const Signals& signals, const RunOptions& run, Hold& hold, Mailbox<Status>& lost) {
  Supervision how;
  how.lost_fd = lost.fd();
  how.rest = run.leader_only ? Supervision::Rest::kRuns : Supervision::Rest::kAwaited;
  how.on_rest = [&run] {
    if (run.quiet || !can_write_error()) return;
    fail(0, "{}: the command ended; the lock lasts until the processes that it left behind end",
         printable(run.name));
  };
  const CommandEnd end = run_command(signals, run, hold, how);
  if (end.lost) return lost_status(run, lost.take());
  const Status released = release(run, hold, end);
  if (!end.started) return end.status;
  // The lock may have been broken since the last renewal, while the command relied on it.
  if (released.outcome == Outcome::kExpired) return lost_status(run, released);
  if (!released) fail(0, "{}: not released, it expires by itself: {}", run.name, reason_of(released));
  return end.status;
}

// Prints one line on standard error about the whole run.
void sum_up(const RunOptions& run, const std::optional<milliseconds>& waited, milliseconds ran,
            const ClientStats& stats) {
  const std::string wait = time_text(waited.value_or(ran).count());
  if (!waited) {
    fail(0, "{}: summary: waited {}, not acquired, attempts {}", printable(run.name), wait, stats.attempts);
    return;
  }
  fail(0, "{}: summary: waited {}, held {}, renewals {} (failed {}), losses {}", printable(run.name), wait,
       time_text((ran - *waited).count()), stats.renewals, stats.failed_renewals, stats.losses.total());
}

// Runs the command under the lock. `acquired` is called after the grant.
int run_with(Client& client, const Signals& signals, const RunOptions& run,
             const std::function<void()>& acquired) {
  const auto lost = std::make_shared<Mailbox<Status>>();
  LockOptions options = options_of(run);
  options.on_lost = [lost](const Status& why) { lost->leave(why); };
  if (run.ends_before_lock) {
    options.warn_before = warn_before_for(run);
    options.on_expiring = [lost] {
      lost->leave({Outcome::kExpired, "it could not be renewed in time", {}});
    };
  }
  report_renewals(run.name, options);
  Taken taken = take_lock(client, signals, run, options);
  if (!taken.hold) return taken.status;
  acquired();
  return run_held(signals, run, *taken.hold, *lost);
}

int run_locked(const Signals& signals, const RunOptions& run) {
  Client client(run.servers, {"holdfast-run", {}});
  const TimeMs began = client::Loop::now();
  const auto elapsed = [began] { return milliseconds((client::Loop::now() - began).count); };
  std::optional<milliseconds> waited;
  const int status = run_with(client, signals, run, [&] { waited = elapsed(); });
  if (run.verbose && can_write_error()) sum_up(run, waited, elapsed(), client.stats());
  return status;
}

}  // namespace

int run_under_lock(const std::vector<std::string>& words) {
  const ParsedRun parsed = parse_run(words);
  if (!parsed.help.empty()) return print("{}", parsed.help), 0;
  if (!parsed.options) return fail(kUsage, "{}; see holdfast run --help", parsed.wrong);
  return status_of_verb("run", [&] {
    const Signals signals;
    return run_locked(signals, *parsed.options);
  });
}

}  // namespace holdfast
