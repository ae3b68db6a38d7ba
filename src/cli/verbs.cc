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
    "\nExit status: 0; 64 wrong use; 69 too few servers answered, or they refused";

const std::array kVerbs = {
    Verb{"lock", "lock [options] NAME", 1,
         "ttl= wait,w= no-wait,n shared limit= attempts= backoff= quiet,q", "take a lock and leave it held",
         "Takes the lock NAME and leaves it held until its ttl is over, with nobody to renew it. Prints\n"
         "OWNER TOKEN, for unlock and renew.\n"
         "\n"
         "  --ttl TIME          after which the lock is free (30s; at least 10ms)\n"
         "  -w, --wait TIME     wait so long for the lock (for ever, unless given)\n"
         "  -n, --no-wait       do not wait\n"
         "  --shared            among other holders with --shared\n"
         "  --limit N           among at most N holders\n",
         "Take one in a script, and give it back elsewhere:\n    holdfast lock --ttl 10m -n deploy",
         verb_lock},
    Verb{"unlock", "unlock NAME OWNER", 2, "", "give a lock back",
         "Gives back the lock NAME that OWNER holds. Exit status 1: others hold it, or nobody does.\n\n",
         "What lock printed, or info shows:\n    holdfast unlock deploy 1d0c6b1f0e6a4f52a2c9a8e7d6b5c4f3",
         verb_unlock},
    Verb{"renew", "renew [--ttl TIME] NAME OWNER", 2, "ttl=", "let a lock's time start anew",
         "Lets the time of OWNER's lock NAME start anew. Exit status 1: others hold it, or nobody does.\n"
         "\n"
         "  --ttl TIME          how long from now on (as it was last given; at least 10ms)\n",
         "Ten minutes more:\n    holdfast renew --ttl 10m deploy 1d0c6b1f0e6a4f52a2c9a8e7d6b5c4f3",
         verb_renew},
    Verb{"info", "info NAME", 1, "", "show who holds a lock, and who waits",
         "Shows what each server knows of the lock NAME: its holders and who waits for it.\n\n",
         "Who leads?\n    holdfast info leader/mail", verb_info},
    Verb{"list", "list [--match PATTERN]", 0, "match=", "list the locks that are held",
         "Lists the locks that are held on each server, ordered by name. TOKEN is the largest of a lock's\n"
         "holders, TTL the time until the last of them ends.\n"
         "\n"
         "  --match PATTERN     only these, as in 'job:*', 'disk-[0-9]', '?'\n"
         "\n"
         "On Redis every string is the lock of its value, and all keys are gone through, by SCAN.\n",
         "The locks of all jobs, on three servers:\n    holdfast list --servers quorum://a,b,c --match "
         "'job:*'",
         verb_list},
    Verb{"break", "break NAME", 1, "", "end all holds of a lock by force",
         "Ends all holds of the lock NAME by force, on all servers that have it. Whoever holds it may "
         "still\n"
         "be at work.\n\n",
         "After whoever held it has been seen to be dead:\n    holdfast break deploy", verb_break},
    Verb{"revoke", "revoke NAME", 1, "", "ask the holders of a lock to give it back",
         "Asks the holders of the lock NAME to give it back. Those who do not listen go "
         "on.\n\n",
         "Have a leader step down (see holdfast elect):\n    holdfast revoke leader/mail", verb_revoke},
    Verb{"watch", "watch NAME|--match PATTERN", 1, "match= quiet,q",
         "show what happens to locks, until Ctrl-C",
         "Shows what happens to the lock NAME on each server, as it happens: a line of TIME SERVER EVENT.\n"
         "The event 'watching' says that from now on nothing is missed, at the beginning and after a\n"
         "connection was lost.\n"
         "\n"
         "  --match PATTERN     all locks of such names, as in 'job:*', 'disk-[0-9]', '?'; a line is\n"
         "                      TIME SERVER NAME EVENT then\n"
         "  -q, --quiet         do not report servers that cannot be reached\n",
         "Each new holder, for a program:\n    holdfast watch --json deploy", verb_watch},
    Verb{
        "ping", "ping", 0, "", "show whether servers answer, how fast, and their clocks",
        "Shows of each server: how long an answer takes, its version, how far its clock is ahead of this\n"
        "machine's, and how far its largest token is ahead of its own clock; both are negative if behind.\n"
        "Exit status 0: there are as many as a lock needs.\n\n",
        "Before maintenance of one of three:\n    holdfast ping --servers quorum://a,b,c", verb_ping},
};

void print_help(const Verb& verb) {
  const bool times = verb.options.find("ttl") != std::string_view::npos;
  const bool retries = verb.options.find("attempts") != std::string_view::npos;
  print("Usage: holdfast {}\n\n{}{}{}{}{}{}{}.\n\n  {}\n", verb.usage, verb.details,
        retries ? kRetryHelp : "", kServerHelp, kCommonOptions,
        times ? "\nA TIME is a number of seconds, or has a unit: 0.5, 500ms, 30s, 2m, 1h.\n" : "",
        kStatuses,
        verb.name == "lock"                             ? ";\n75 the lock was not to be had"
        : verb.name == "unlock" || verb.name == "renew" ? ";\n1 it is not held by OWNER"
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
      fmt::format("'{0}' looks like a pattern: watch --match '{0}' shows all locks of such names, and "
                  "watch --match '{1}' the lock of exactly this name",
                  name, escaped));
}

Call understood(const Verb& verb, const Given& given) {
  Call call;
  call.arguments = arguments_of(given);
  const bool by_pattern = given.contains("match") && verb.arguments > 0;
  if (call.arguments.size() != (by_pattern ? 0 : verb.arguments))
    refuse(fmt::format("usage: holdfast {}", verb.usage));
  for (const std::string& argument : call.arguments)
    refuse_empty(argument, &argument == call.arguments.data() ? "NAME" : "OWNER");
  call.servers = with_login(servers_of(given), given);
  call.json = given.contains("json");
  read_lock_options(given, call.lock);
  if (!call.arguments.empty()) call.lock.name = call.arguments[0];
  if (given.contains("ttl")) call.ttl = call.lock.ttl;
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
    if (given.contains("help")) return print_help(verb), 0;
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

std::optional<int> run_verb(const std::string& name, const std::vector<std::string>& words) {
  const auto* verb =
      std::find_if(kVerbs.begin(), kVerbs.end(), [&](const Verb& v) { return v.name == name; });
  if (verb == kVerbs.end()) return std::nullopt;
  return run_row(*verb, words);
}

}  // namespace holdfast
