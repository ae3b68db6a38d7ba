// By Boost.Program_options; it does not know of --, behind which everything is the command's.
#include "cli/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "cli/options.h"

namespace holdfast {
namespace {

constexpr const char* kHelp =
    R"(Usage: holdfast run [options] NAME -- COMMAND [ARGUMENT...]

Takes the lock NAME, runs COMMAND under it, renews it for as long as that runs, and gives it back. If the
lock is lost, COMMAND is told to end (TERM), and after the grace is made to (KILL). It never outlives this
program.

  --servers WHERE     holdfast://HOST:PORT, or quorum://HOST:PORT,HOST:PORT,...
                      (default: the variable HOLDFAST_SERVERS, else holdfast://127.0.0.1:7379)
  --ttl TIME          after which the lock is free if this machine fails (30s; at least 10ms)
  -w, --wait TIME     wait so long for the lock (for ever, unless given)
  -n, --no-wait       do not wait
  --shared            among other holders with --shared
  --limit N           among at most N holders
  --grace TIME        from TERM to KILL after a loss (5s)
  -E, --busy-status N the exit status where the lock was not to be had (75)
  --help              this text

A TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.

COMMAND finds the lock in HOLDFAST_KEY, HOLDFAST_OWNER, HOLDFAST_TOKEN (it grows with each grant: have the
storage refuse smaller ones), HOLDFAST_TTL_MS and HOLDFAST_SERVERS. INT, TERM, HUP, QUIT, USR1, USR2 and
WINCH are forwarded to it. While it is stopped by Ctrl-Z the lock is not renewed.

Exit status: COMMAND's own; 128 + n if signal n ended it; 64 wrong use; 69 no server could be reached, or
it refused; 71 no process could be started; 75 the lock was not to be had; 76 the lock was lost;
126 COMMAND cannot be run; 127 there is no such COMMAND.

  A job of cron on several machines, on one of them at a time; where it runs already, all is well:
    holdfast run -n -E 0 nightly-report -- /usr/local/bin/report
  CI jobs that share one test database, each waiting for its turn, not longer than ten minutes:
    holdfast run --wait 10m test-db -- make integration-test
  At most four of them:
    holdfast run --limit 4 builders -- make -j4
  A leader: one machine serves, the others stand by:
    holdfast run --ttl 10s leader/mail -- mail-daemon --foreground
)";

std::string only_name(const Given& given) {
  const std::vector<std::string> names = arguments_of(given);
  if (names.empty()) refuse("run needs the NAME of a lock");
  if (names.size() > 1)
    refuse(fmt::format("one NAME only, not '{}' too; the command stands behind --", names[1]));
  return names[0];
}

RunOptions understood(const Given& given, std::vector<std::string> command) {
  RunOptions options;
  options.name = only_name(given);
  if (command.empty()) refuse("run needs a command behind --, as in: holdfast run NAME -- COMMAND");
  options.command = std::move(command);
  read_lock_options(given, options);
  options.servers = servers_of(given);
  options.grace = duration_of(given, "grace", options.grace);
  options.busy_status = static_cast<int>(number_of(given, "busy-status", 0, 255, options.busy_status));
  return options;
}

}  // namespace

ParsedRun parse_run(const std::vector<std::string>& words) {
  constexpr const char* kOptions =
      "servers= ttl= wait,w= no-wait,n shared limit= grace= busy-status,E= help,h";
  const auto dashes = std::find(words.begin(), words.end(), "--");
  ParsedRun all;
  try {
    const Given given = read_words({words.begin(), dashes}, kOptions);
    if (given.contains("help")) {
      all.help = kHelp;
    } else {
      all.options = understood(given, {dashes == words.end() ? dashes : dashes + 1, words.end()});
    }
  } catch (const std::exception& e) {  // of Boost, or of refuse()
    all.wrong = e.what();
  }
  return all;
}

}  // namespace holdfast
