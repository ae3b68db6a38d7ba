// Uses Boost.Program_options only for the words before --. All words behind it belong to the command.
#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "cli/note.h"
#include "cli/options.h"
#include "cli/secrets.h"

namespace holdfast {
namespace {

constexpr std::string_view kRunHelp =
    R"(Usage: holdfast run [options] NAME -- COMMAND [ARGUMENT...]

Acquires the lock NAME, runs COMMAND, renews the lock while COMMAND runs, and releases it. If COMMAND leaves
processes running in its group, the lock lasts until they end. If the lock is lost, COMMAND gets TERM, and
KILL after the grace. COMMAND never outlives this program.

{}  --ttl TIME          the lock's TTL: it expires this long after the last renewal if this machine fails
                      (30s; at least 10ms)
  -w, --wait TIME     the longest wait for the lock (no limit)
  -n, --no-wait       do not wait
  --shared            acquire as a reader of a reader/writer lock
  --limit N           acquire one of N permits of a semaphore
{}  --note TEXT         why the lock is held, for holdfast info (user@host[pid] PROGRAM; '' for none)
  --at-least TIME     keep the lock this long after its grant, also if COMMAND ends earlier (0)
  --grace TIME        from TERM to KILL after a loss (5s)
  --end-before-expiry end COMMAND before the lock expires, also while this program is stopped
  --leader-only       release the lock when COMMAND itself ends, also if it left processes running
  -E, --busy-status N the exit status if the lock is not acquired (75)
  --verbose           sum up at the end, on standard error: waited, held, renewals, losses
  --help              this text

A TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.

COMMAND gets the variables HOLDFAST_KEY, HOLDFAST_OWNER, HOLDFAST_TOKEN (it grows with each grant: have the
storage reject smaller ones), HOLDFAST_TTL_MS and HOLDFAST_SERVERS. It inherits HOLDFAST_PASSWORD, but does
not get the password of a --password-file. This program forwards INT, TERM, HUP, QUIT, USR1, USR2 and WINCH
to COMMAND. While Ctrl-Z stops COMMAND, the lock is not renewed.

While it waits, this program reports on standard error: the holder of the lock, how long it has held it,
the rest of its TTL, the place of this wait in the queue, and each server that cannot be reached, with the
reason. The first report comes 0.3 to 1.6 s after the wait began, the next ones after 5 s, 10 s, 20 s ... up
to every 60 s.

With --at-least this program does not wait: it sets the rest of that time as the lock's TTL, and exits. The
lock then expires by itself. If no server can be reached at that moment, the lock expires after --ttl, as
it does when this machine fails. So --ttl should be at least --at-least.

With --end-before-expiry COMMAND ends before the lock expires. If the lock cannot be renewed, COMMAND gets
TERM so early that the grace (at most half of --ttl) ends before that time. KILL follows after the grace. If
this program is stopped, a second process sends both.

Exit status: COMMAND's own; 128 + n if signal n ended it; 64 wrong use; 69 no server could be reached, or it
rejected the request; 71 no process could be started; 75 lock not acquired; 76 the lock was lost;
126 COMMAND cannot be run; 127 there is no such COMMAND.

  A cron job on several machines: one of them runs it, and the other machines exit with 0. The variable
  HOLDFAST_SERVERS in the crontab names their server:
    holdfast run -n -E 0 --at-least 10s nightly-report -- /usr/local/bin/report
  CI jobs that share one test database: each waits in a FIFO queue, for at most ten minutes:
    holdfast run --wait 10m test-db -- make integration-test
  A semaphore with four permits:
    holdfast run --limit 4 builders -- make -j4

To run one instance of a service, see holdfast elect.
)";

constexpr std::string_view kElectHelp =
    R"(Usage: holdfast elect [options] NAME -- COMMAND [ARGUMENT...]

Elects a leader: campaigns for NAME until elected, and runs COMMAND while it leads. If it loses the lock, it
ends COMMAND and campaigns again. Unreachable servers never end it. COMMAND never outlives this program.

{}  --ttl TIME          another machine can lead this long after this machine fails (30s; at least 10ms)
  --grace TIME        from TERM to KILL (5s, but at most half of --ttl)
  --restart           campaign again also after COMMAND ends by itself
  --note TEXT         why the lock is held, for holdfast info (user@host[pid] PROGRAM; '' for none)
  --json              progress as one JSON value a line
  -q, --quiet         do not report the holder of the lock, nor servers that cannot be reached
  --help              this text

A TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.

COMMAND has the same streams, terminal and forwarded signals as under holdfast run, and the variables
HOLDFAST_KEY, HOLDFAST_OWNER, HOLDFAST_TOKEN (it grows with each leader: have the storage reject smaller
ones), HOLDFAST_TTL_MS and HOLDFAST_SERVERS. In these cases its process group gets TERM, and KILL after the
grace, and the whole group ends before the lock is released:
  - The lock is lost (holdfast break), or cannot be renewed. In the second case the grace ends before the
    lock expires. If this program is stopped then, a second process sends TERM and KILL.
  - A client asks the leader to step down (holdfast revoke).
  - COMMAND ends by itself, and leaves processes running.
Then this program pauses for 1 s, in which other machines come first, and campaigns again. It ends if
COMMAND cannot be run, or ends by itself without --restart. It forwards INT, TERM and QUIT, and ends with
COMMAND after them. It also ends if INT, QUIT or HUP ended COMMAND.

This program reports its progress on standard error: standing, waiting (with the holder), unreachable,
leader, revoked, lost, stopped. holdfast info NAME shows the leader, and holdfast watch NAME each change.

Exit status: COMMAND's own; 128 + n if signal n ended it, or the wait; 64 wrong use; 69 a server rejected
the login or a right; 71 no process could be started; 126 COMMAND cannot be run; 127 there is no such
COMMAND.

  One machine runs the service; another one takes over within ten seconds:
    holdfast elect --ttl 10s leader/mail -- mail-daemon --foreground
  Restart the service whenever it ends, with three lock servers, of which one may fail:
    holdfast elect --restart --servers quorum://a,b,c leader/queue -- queue-worker
  Ask the leader to step down:
    holdfast revoke leader/mail
)";

struct Form {
  std::string_view verb;
  std::string_view options;
  std::string_view help;  // the first {}: kServerHelp, the second: kRetryHelp
};

constexpr Form kRun{
    "run",
    "ttl= wait,w= no-wait,n shared limit= attempts= backoff= quiet,q note= grace= at-least= "
    "end-before-expiry end-before-lock leader-only busy-status,E= verbose help,h",
    kRunHelp};
constexpr Form kElect{"elect", "ttl= grace= restart json quiet,q note= help,h", kElectHelp};

std::string only_name(const Form& form, const Given& given) {
  const std::vector<std::string> names = arguments_of(given);
  if (names.empty()) refuse(fmt::format("{} needs the NAME of a lock", form.verb));
  if (names.size() > 1)
    refuse(fmt::format("give only one NAME, not '{}' too; the command must follow --", names[1]));
  refuse_empty(names[0], "NAME");
  return names[0];
}

RunOptions understood(const Form& form, const Given& given, std::vector<std::string> command) {
  RunOptions options;
  options.name = only_name(form, given);
  if (command.empty())
    refuse(fmt::format("{0} needs a command after --, as in: holdfast {0} NAME -- COMMAND", form.verb));
  options.command = std::move(command);
  options.note = default_note(options.command.front());
  read_lock_options(given, options);
  options.servers_without_login = servers_of(given);
  options.servers = with_login(options.servers_without_login, given);
  if (given.contains("user")) options.user = given["user"].as<std::string>();
  options.grace = duration_of(given, "grace", options.grace);
  options.busy_status = static_cast<int>(number_of(given, "busy-status", 0, 255, options.busy_status));
  options.restart = given.contains("restart");
  options.at_least = duration_of(given, "at-least", options.at_least);
  options.ends_before_lock = form.verb == kElect.verb || given.contains("end-before-expiry") ||
                             given.contains("end-before-lock");  // its old name
  options.json = given.contains("json");
  options.leader_only = given.contains("leader-only");
  options.verbose = given.contains("verbose");
  return options;
}

// Limits the grace to half of the TTL. A command that must end before its lock gets TERM one grace earlier.
void limit_grace(const Given& given, RunOptions& options) {
  const milliseconds longest = options.ttl / 2;
  if (given.contains("grace") && options.grace > longest)
    refuse(
        fmt::format("--grace must be at most half of --ttl, so that the command ends before the lock "
                    "expires: at most {} ms, not {} ms",
                    longest.count(), options.grace.count()));
  options.grace = std::min(options.grace, longest);
}

ParsedRun parse(const Form& form, const std::vector<std::string>& words) {
  const auto dashes = std::find(words.begin(), words.end(), "--");
  ParsedRun all;
  try {
    const Given given =
        read_words({words.begin(), dashes}, fmt::format("{} {}", kServerOptions, form.options));
    if (given.contains("help")) {
      all.help = fmt::format(fmt::runtime(form.help), kServerHelp, kRetryHelp);
    } else {
      all.options = understood(form, given, {dashes == words.end() ? dashes : dashes + 1, words.end()});
      if (all.options->ends_before_lock) limit_grace(given, *all.options);
    }
  } catch (const std::exception& e) {  // from Boost, or from refuse()
    all.options.reset();
    all.wrong = e.what();
  }
  return all;
}

}  // namespace

ParsedRun parse_run(const std::vector<std::string>& words) { return parse(kRun, words); }
ParsedRun parse_elect(const std::vector<std::string>& words) { return parse(kElect, words); }

}  // namespace holdfast
