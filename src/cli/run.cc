// The lock's part of `run`: acquires it, signals its loss to the command's supervisor, and releases it.
#include "cli/run.h"

#include <fmt/format.h>

#include <memory>

#include "cli/acquire.h"
#include "cli/held_command.h"
#include "cli/output.h"
#include "cli/run_options.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "holdfast/client.h"

namespace holdfast {
namespace {

int lost_status(const RunOptions& run, const Result& why) {
  return fail(kLost, "{}: the lock was lost: {}", run.name,
              why.message.empty() ? "it expired" : reason_of(why));
}

// Releases the lock. --at-least does not apply to a command that did not start: it has done no work.
Result release(const RunOptions& run, Hold& hold, const CommandEnd& end) {
  return hold.unlock({end.started ? run.at_least : milliseconds(0)});
}

int run_held(const Signals& signals, const RunOptions& run, Hold& hold, Mailbox<Result>& lost) {
  Supervision how;
  how.lost_fd = lost.fd();
  const CommandEnd end = run_command(signals, run, hold, how);
  if (end.lost) return lost_status(run, lost.take());
  const Result released = release(run, hold, end);
  if (!end.started) return end.status;
  // The lock may have been broken since the last renewal, while the command relied on it.
  if (released.outcome == Outcome::kExpired) return lost_status(run, released);
  if (!released) fail(0, "{}: not released, it expires by itself: {}", run.name, reason_of(released));
  return end.status;
}

int run_locked(const Signals& signals, const RunOptions& run) {
  const auto lost = std::make_shared<Mailbox<Result>>();
  LockOptions options = options_of(run);
  options.on_lost = [lost](const Result& why) { lost->leave(why); };
  if (run.ends_before_lock) {
    options.warn_before = warn_before_for(run);
    options.on_expiring = [lost] {
      lost->leave({Outcome::kExpired, "it could not be renewed in time", {}});
    };
  }
  report_renewals(run.name, options);
  Client client(run.servers);
  Taken taken = take_lock(client, signals, run, options);
  return taken.hold ? run_held(signals, run, *taken.hold, *lost) : taken.status;
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
