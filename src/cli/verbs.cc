// Each verb has a row in kVerbs and a function.
#include "cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <string_view>

#include "cli/output.h"
#include "cli/secrets.h"
#include "cli/status.h"

namespace holdfast {
namespace {

struct Verb {
  std::string_view name;
  std::string_view usage;  // as typed
  size_t arguments;
  std::string_view options;  // in the form of read_words()
  std::string_view summary;
  std::string_view details;
  std::string_view example;
  int (*run)(const Call& call);
};

constexpr std::string_view kCommonOptions =
    "  --json              for programs\n"
    "  --help              this text\n";

constexpr std::string_view kStatuses =
    "\nExit status: 0; 64 wrong use; 69 too few servers answered, or they rejected the request";

const std::array kVerbs = {
    Verb{"lock", "lock [options] NAME", 1,
         "ttl= wait,w= no-wait,n shared limit= attempts= backoff= quiet,q note=",
         "acquire a lock and leave it held",
         "Acquires the lock NAME and leaves it held until its TTL is over. No process renews it. Prints\n"
         "OWNER TOKEN, for unlock and renew.\n"
         "\n"
         "  --ttl TIME          the lock's TTL: the lock expires after this time (30s; at least 10ms)\n"
         "  -w, --wait TIME     the longest wait for the lock (no limit)\n"
         "  -n, --no-wait       do not wait\n"
         "  --shared            acquire as a reader of a reader/writer lock\n"
         "  --limit N           acquire one of N permits of a semaphore\n"
         "  --note TEXT         why the lock is held, for holdfast info; at most 256 bytes\n",
         "Acquire a lock in a script, and release it elsewhere:\n    holdfast lock --ttl 10m -n deploy",
         verb_lock},
    Verb{"unlock", "unlock NAME OWNER", 2, "", "release a lock",
         "Releases the lock NAME that OWNER holds. Exit status 1: OWNER does not hold it.\n\n",
         "With the owner that lock printed, or that info shows:\n    holdfast unlock deploy "
         "1d0c6b1f0e6a4f52a2c9a8e7d6b5c4f3",
         verb_unlock},
    Verb{"renew", "renew [--ttl TIME] NAME OWNER", 2, "ttl=", "reset a lock's TTL",
         "Resets the TTL of the lock NAME that OWNER holds. Exit status 1: OWNER does not hold it.\n"
         "\n"
         "  --ttl TIME          the new TTL from now on (as last given; at least 10ms)\n",
         "Ten minutes more:\n    holdfast renew --ttl 10m deploy 1d0c6b1f0e6a4f52a2c9a8e7d6b5c4f3",
         verb_renew},
    Verb{"info", "info NAME", 1, "", "show the holders and the waiters of a lock",
         "Shows the holders and the waiters of the lock NAME on each server that has the key.\n\n",
         "Show the present leader:\n    holdfast info leader/mail", verb_info},
    Verb{"list", "list [--match PATTERN]", 0, "match=", "list the locks that are held",
         "Lists the locks that are held on each server, ordered by name. TOKEN is the largest token\n"
         "of a lock's holders. TTL is the time until the last of them expires.\n"
         "\n"
         "  --match PATTERN     only such names, as in 'job:*', 'disk-[0-9]', '?'\n"
         "\n"
         "On Redis, list scans all keys (SCAN). Every string counts as a lock, with its value as owner.\n",
         "The locks of all jobs, on three servers:\n    holdfast list --servers quorum://a,b,c --match "
         "'job:*'",
         verb_list},
    Verb{"break", "break NAME", 1, "", "end all holds of a lock by force",
         "Ends all holds of the lock NAME by force, on all servers that have the key. A former\n"
         "holder may still be at work.\n\n",
         "After you made sure that the holder has ended:\n    holdfast break deploy", verb_break},
    Verb{"revoke", "revoke NAME", 1, "", "ask the holders of a lock to release it",
         "Asks the holders of the lock NAME to release it. Holders that ignore the request continue.\n\n",
         "Ask a leader to step down (see holdfast elect):\n    holdfast revoke leader/mail", verb_revoke},
    Verb{
        "watch", "watch NAME|--match PATTERN", 1, "match= quiet,q",
        "show the events of locks, until Ctrl-C",
        "Shows each event of the lock NAME on each server at once, on a line of TIME SERVER EVENT. The\n"
        "event 'watching' says that no event is missed from there on. It comes at the beginning and after\n"
        "a lost connection.\n"
        "\n"
        "  --match PATTERN     all locks with such names, as in 'job:*', 'disk-[0-9]', '?'; each line is\n"
        "                      TIME SERVER NAME EVENT\n"
        "  -q, --quiet         do not report servers that cannot be reached\n",
        "Each new holder, for a program:\n    holdfast watch --json deploy", verb_watch},
    Verb{"ping", "ping", 0, "", "show whether servers answer, how fast, and their clocks",
         "Shows for each server: the time of an answer, its version, how far its clock is ahead of this\n"
         "machine's, and how far its largest token is ahead of its own clock. Negative means behind.\n"
         "Exit status 0: enough servers for a lock can be used.\n\n",
         "Before maintenance of one of three:\n    holdfast ping --servers quorum://a,b,c", verb_ping},
    Verb{"top", "top [options]", 0,
         "match= batch count,n= interval= db=", "show the locks that clients wait for, until q",
         "Shows the servers and their locks on the terminal, the most contended locks first. Refreshes\n"
         "until q. The key ? lists all keys; b breaks a lock, r revokes it, Enter shows its queue.\n"
         "\n"
         "  --match PATTERN     only locks with such names, as in 'job:*', 'disk-[0-9]', '?'\n"
         "  --db N              the locks of database N (0)\n"
         "  --interval TIME     the time between two refreshes (2s; 100ms to 1h)\n"
         "  --batch             print plain text instead; --json prints one JSON value a refresh. The "
         "first\n"
         "                      refresh comes after one interval\n"
         "  -n, --count N       with --batch or --json: stop after N refreshes (no limit)\n",
         "The locks with waiters, once, for a script:\n    holdfast top --json -n 1 --interval 500ms",
         verb_top},
    Verb{
        "backup", "backup [options] FILE", 1, "quiet,q", "make a backup of a running server",
        "Writes a backup of one server to FILE, which has all data of one moment. The server continues to\n"
        "serve requests. FILE gets its name when all of it is checked and on disk; - stands for standard\n"
        "output. Only one server may be named: make a backup of each server of a quorum.\n"
        "\n"
        "  -q, --quiet         do not show the progress on a terminal\n",
        "A backup for each day of the week, from cron:\n    holdfast backup /var/backups/holdfast-$(date "
        "+%a)",
        verb_backup},
};

std::string help_of(const Verb& verb) {
  const bool times = verb.options.find("ttl") != std::string_view::npos || verb.name == "top";
  const bool retries = verb.options.find("attempts") != std::string_view::npos;
  return fmt::format(
      "Usage: holdfast {}\n\n{}{}{}{}{}{}{}.\n\n  {}\n", verb.usage, verb.details,
      retries ? kRetryHelp : "", kServerHelp, kCommonOptions,
      times ? "\nA TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.\n" : "", kStatuses,
      verb.name == "lock"                             ? ";\n75 lock not acquired"
      : verb.name == "unlock" || verb.name == "renew" ? ";\n1 OWNER does not hold it"
      : verb.name == "backup"                         ? ";\n74 FILE could not be written"
                                                      : "",
      verb.example);
}

// Rejects a name that looks like a pattern: the user rarely means the lock of exactly that name.
void refuse_pattern(const std::string& name) {
  if (name.find_first_of("*?[") == std::string::npos) return;
  std::string escaped;
  for (const char c : name)
    escaped += std::string_view("*?[]\\").find(c) == std::string_view::npos ? std::string(1, c)
                                                                            : std::string{'\\', c};
  refuse(
      fmt::format("'{0}' looks like a pattern: watch --match '{0}' shows all locks with such names, and "
                  "watch --match '{1}' shows the lock with exactly this name",
                  name, escaped));
}

TopSettings top_settings_of(const Given& given) {
  constexpr milliseconds kShortest{100}, kLongest{3600 * 1000};
  TopSettings top;
  top.batch = given.contains("batch");
  top.interval = duration_of(given, "interval", top.interval, kLongest);
  if (top.interval < kShortest)
    refuse(fmt::format("--interval must be at least {} ms, not {} ms", kShortest.count(),
                       top.interval.count()));
  if (given.contains("count")) top.refreshes = number_of(given, "count", 1, INT32_MAX, 1);
  top.database = number_of(given, "db", 0, INT32_MAX, 0);
  if (top.refreshes && !top.batch && !given.contains("json")) refuse("-n needs --batch or --json");
  return top;
}

Call understood(const Verb& verb, const Given& given) {
  Call call;
  call.arguments = arguments_of(given);
  const bool by_pattern = given.contains("match") && verb.arguments > 0;
  if (call.arguments.size() != (by_pattern ? 0 : verb.arguments))
    refuse(fmt::format("usage: holdfast {}", verb.usage));
  for (const std::string& argument : call.arguments)
    refuse_empty(argument, verb.name == "backup"                ? "FILE"
                           : &argument == call.arguments.data() ? "NAME"
                                                                : "OWNER");
  call.servers = with_login(servers_of(given), given);
  call.json = given.contains("json");
  read_lock_options(given, call.lock);
  if (!call.arguments.empty()) call.lock.name = call.arguments[0];
  if (given.contains("ttl")) call.ttl = call.lock.ttl;
  if (verb.name == "top") call.top = top_settings_of(given);
  if (given.contains("match")) {
    call.match = given["match"].as<std::string>();
    refuse_empty(*call.match, "--match");
  } else if (verb.name == "watch") {
    refuse_pattern(call.lock.name);
  }
  return call;
}

int run_row(const Verb& verb, const std::vector<std::string>& words) {
  Call call;
  try {
    const Given given = read_words(words, fmt::format("{} json help,h {}", kServerOptions, verb.options));
    if (given.contains("help")) return put(help_of(verb)), 0;
    call = understood(verb, given);
  } catch (const std::exception& e) {  // from Boost, or from refuse()
    return fail(kUsage, "{}; see holdfast {} --help", e.what(), verb.name);
  }
  return status_of_verb(verb.name, [&] { return verb.run(call); });
}

}  // namespace

std::string verbs_summary() {
  std::string text;
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<34}  {}\n", verb.usage, verb.summary);
  return text;
}

static const Verb* find_verb(std::string_view name) {
  const auto* verb =
      std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& v) { return v.name == name; });
  return verb == kVerbs.end() ? nullptr : verb;
}

std::string verb_help(std::string_view name) {
  const Verb* verb = find_verb(name);
  return verb == nullptr ? "" : help_of(*verb);
}

std::optional<int> run_verb(const std::string& name, const std::vector<std::string>& words) {
  const Verb* verb = find_verb(name);
  if (verb == nullptr) return std::nullopt;
  return run_row(*verb, words);
}

}  // namespace holdfast
