// Uses Boost.Program_options only for the words before --. All words behind it belong to the command.
#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>
#include <utility>

#include "cli/options.h"
#include "cli/secrets.h"

namespace holdfast {
namespace {

constexpr std::string_view kRunHelp =
    R"(Usage: holdfast run [options] NAME -- COMMAND [ARGUMENT...]

Takes the lock NAME, runs COMMAND under it, renews it for as long as that runs, and gives it back. If the
lock is lost, COMMAND is told to end (TERM), and after the grace is made to (KILL). It never outlives this
program.

{}  --ttl TIME          after which the lock is free if this machine fails (30s; at least 10ms)
  -w, --wait TIME     wait so long for the lock (for ever, unless given)
  -n, --no-wait       do not wait
  --shared            among other holders with --shared
  --limit N           among at most N holders
{}  --at-least TIME     keep the lock so long after its grant, though COMMAND ended earlier (0)
  --grace TIME        from TERM to KILL after a loss (5s)
  --end-before-lock   end COMMAND before the lock's time is over, also while this program is stopped
  -E, --busy-status N the exit status where the lock was not to be had (75)
  --help              this text

A TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.

COMMAND finds the lock in HOLDFAST_KEY, HOLDFAST_OWNER, HOLDFAST_TOKEN (it grows with each grant: have the
storage refuse smaller ones), HOLDFAST_TTL_MS and HOLDFAST_SERVERS; it inherits HOLDFAST_PASSWORD, but not
the password of a --password-file. INT, TERM, HUP, QUIT, USR1, USR2 and
WINCH are forwarded to it. While it is stopped by Ctrl-Z the lock is not renewed.

While it waits, this program reports on standard error: the holder of the lock, since when it holds it,
the rest of its TTL, the place of this wait in the queue, and each server that cannot be reached, with the
reason. The first report comes within about a second, the next ones after 5 s, 10 s, 20 s ... up to every
60 s.

With --at-least this program does not wait: it sets the rest of that time as the lock's TTL, and exits. The
lock then expires by itself. If no server can be reached at that moment, the lock expires after --ttl, as
it does when this machine fails. So --ttl should be at least --at-least.

With --end-before-lock a lock that cannot be renewed is lost so early that the grace (at most half of --ttl)
is over before its time is. COMMAND gets TERM then, and after the grace KILL. If this program is stopped, a
second process sends both.

Exit status: COMMAND's own; 128 + n if signal n ended it; 64 wrong use; 69 no server could be reached, or
it refused; 71 no process could be started; 75 the lock was not to be had; 76 the lock was lost;
126 COMMAND cannot be run; 127 there is no such COMMAND.

  A job of cron on several machines, on one of them at a time; where it runs already, all is well:
    holdfast run -n -E 0 --at-least 10s nightly-report -- /usr/local/bin/report
  CI jobs that share one test database, each waiting for its turn, not longer than ten minutes:
    holdfast run --wait 10m test-db -- make integration-test
  At most four of them:
    holdfast run --limit 4 builders -- make -j4

For a service of which one instance is to run, see holdfast elect.
)";

constexpr std::string_view kElectHelp =
    R"(Usage: holdfast elect [options] NAME -- COMMAND [ARGUMENT...]

Elects a leader: stands for the lock NAME for as long as it takes, runs COMMAND while it has the lock, ends
COMMAND when it has it no more, and stands again. A server that is away is no reason to give up. COMMAND
never outlives this program.

{}  --ttl TIME          after which another may lead if this machine fails (30s; at least 10ms)
  --grace TIME        from TERM to KILL (5s, but at most half of the ttl)
  --restart           stand again also when COMMAND has ended by itself
  --json              progress as a JSON value a line
  -q, --quiet         do not report the holder of the lock, nor servers that cannot be reached
  --help              this text

A TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.

COMMAND has what it has under holdfast run: the streams, the terminal, forwarded signals, and HOLDFAST_KEY,
HOLDFAST_OWNER, HOLDFAST_TOKEN (it grows with each leader: have the storage refuse smaller ones),
HOLDFAST_TTL_MS and HOLDFAST_SERVERS. Its process group gets TERM, and after the grace KILL, and all of it
has ended before the lock is given back:
  - when the lock was lost (holdfast break), or could not be renewed: so early that the grace is over before
    the lock is, also while this program is stopped (a second process sends TERM and KILL then);
  - when the leader is asked to step down (holdfast revoke);
  - what it leaves running when it ends by itself.
After a second, in which others come first, this program stands again. It ends when COMMAND ends by itself,
unless --restart is given; when COMMAND cannot be run; and when it is told to: INT, TERM and QUIT are
forwarded, and the end of COMMAND is then its own. So is that of a COMMAND which INT, QUIT or HUP ended.

Progress is told on standard error: standing, waiting (with the holder), unreachable, leader, revoked, lost,
stopped. Who leads is told by holdfast info NAME, and when that changes by holdfast watch NAME.

Exit status: COMMAND's own; 128 + n if signal n ended it, or the wait; 64 wrong use; 71 no process could be
started; 126 COMMAND cannot be run; 127 there is no such COMMAND.

  One machine serves, the others stand by; another takes over within ten seconds:
    holdfast elect --ttl 10s leader/mail -- mail-daemon --foreground
  A service that is to be there for ever, on three servers of which one may fail:
    holdfast elect --restart --servers quorum://a,b,c leader/queue -- queue-worker
  Have the leader hand over:
    holdfast revoke leader/mail
)";

struct Form {
  std::string_view verb;
  std::string_view options;
  std::string_view help;  // the first {}: kServerHelp, the second: kRetryHelp
};

constexpr Form kRun{"run",
                    "ttl= wait,w= no-wait,n shared limit= attempts= backoff= quiet,q grace= at-least= "
                    "end-before-lock busy-status,E= help,h",
                    kRunHelp};
constexpr Form kElect{"elect", "ttl= grace= restart json quiet,q help,h", kElectHelp};

std::string only_name(const Form& form, const Given& given) {
  const std::vector<std::string> names = arguments_of(given);
  if (names.empty()) refuse(fmt::format("{} needs the NAME of a lock", form.verb));
  if (names.size() > 1)
    refuse(fmt::format("one NAME only, not '{}' too; the command stands behind --", names[1]));
  refuse_empty(names[0], "NAME");
  return names[0];
}

RunOptions understood(const Form& form, const Given& given, std::vector<std::string> command) {
  RunOptions options;
  options.name = only_name(form, given);
  if (command.empty())
    refuse(fmt::format("{0} needs a command behind --, as in: holdfast {0} NAME -- COMMAND", form.verb));
  options.command = std::move(command);
  read_lock_options(given, options);
  options.servers_without_login = servers_of(given);
  options.servers = with_login(options.servers_without_login, given);
  if (given.contains("user")) options.user = given["user"].as<std::string>();
  options.grace = duration_of(given, "grace", options.grace);
  options.busy_status = static_cast<int>(number_of(given, "busy-status", 0, 255, options.busy_status));
  options.restart = given.contains("restart");
  options.at_least = duration_of(given, "at-least", options.at_least);
  options.ends_before_lock = form.verb == kElect.verb || given.contains("end-before-lock");
  options.json = given.contains("json");
  return options;
}

// Limits the grace to half of the TTL. A command that must end before its lock gets TERM one grace earlier.
void limit_grace(const Given& given, RunOptions& options) {
  const milliseconds longest = options.ttl / 2;
  if (given.contains("grace") && options.grace > longest)
    refuse(
        fmt::format("--grace must be at most half of --ttl, so that the command ends before the lock "
                    "does: at most {} ms, not {} ms",
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
