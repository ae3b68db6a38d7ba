// The command `holdfast`: its verbs and their options.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "cli/check.h"
#include "cli/complete.h"
#include "cli/elect.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/restore.h"
#include "cli/run.h"
#include "cli/run_options.h"
#include "cli/secrets.h"
#include "cli/status.h"
#include "cli/verbs.h"
#include "io/os/build_info.h"
#include "io/os/standard_streams.h"
#include "proxy/program.h"

namespace holdfast {
namespace {

constexpr const char* kCheckHelp =
    R"(Usage: holdfast check [options] PATH...

Verifies data folders, or single files of one: snapshot, journal, meta.

  --repair            cut a journal at its first damage, rebuild its damaged head or a damaged meta, start
                      without missing journals; move a damaged snapshot away if PATH names it. Originals
                      stay as NAME.damaged. After a loss the next start has a recovery wait
  --json              for programs
  --help              this text

Exit status: 0 all files are good (a tail that a crash cut off counts as good); 1 a file is damaged or
missing, and the line says which and where, or a folder has no files of Holdfast; 64 wrong use; 74 the
result could not be written.

  Check a folder after a crash, before the server starts:
    holdfast check /var/lib/holdfast
)";

constexpr const char* kRestoreHelp =
    R"(Usage: holdfast restore --dir DIR FILE

Makes the data folder DIR from the backup FILE of holdfast backup; - stands for standard input. DIR must be
empty or missing. If any byte of FILE is damaged or missing, the error names the first such part, and DIR
stays as it was. Stop the server of the backup before a server starts on DIR.

The server on DIR issues no fencing token that the other server has issued, before or after the backup.
Its first start grants no locks during its recovery wait. Locks that ended after the backup are held again
until their TTL is over.

  --dir DIR           the new data folder. If root makes it, its files get the owner of DIR
  --json              for programs
  --help              this text

Exit status: 0; 1 FILE is damaged or cannot be read, or DIR is not empty; 64 wrong use; 74 DIR could not be
written.

  Restore yesterday's backup:
    holdfast restore --dir /var/lib/holdfast/new /var/backups/holdfast-Mon
)";

std::string usage() {
  return fmt::format(
      "Usage: holdfast VERB [options]\n"
      "\n"
      "Verbs:\n"
      "  run [options] NAME -- COMMAND...    run a command while holding a lock\n"
      "  elect [options] NAME -- COMMAND...  run a command on one machine at a time\n"
      "{}"
      "  proxy --servers A,B,C [options]     serve majority locks to Redis clients\n"
      "  restore --dir DIR FILE              make a data folder from a backup\n"
      "  check [--repair] PATH...            verify a data folder, or files of one: snapshot, journal, "
      "meta\n"
      "\n"
      "holdfast VERB --help lists the options of a verb. holdfast --version prints the version.\n",
      verbs_summary());
}

int check(const std::vector<std::string>& words) {
  try {
    const Given given = read_words(words, "repair json help,h");
    if (given.contains("help")) return print("{}", kCheckHelp), 0;
    const std::vector<std::string> paths = arguments_of(given);
    if (paths.empty()) refuse("check needs a file or folder");
    for (const std::string& path : paths) refuse_empty(path, "PATH");
    return check_files(paths, given.contains("repair"), given.contains("json"));
  } catch (const std::exception& e) {  // from Boost, or from refuse()
    return fail(kUsage, "{}; see holdfast check --help", e.what());
  }
}

int restore(const std::vector<std::string>& words) {
  try {
    const Given given = read_words(words, "dir= json help,h");
    if (given.contains("help")) return print("{}", kRestoreHelp), 0;
    const std::vector<std::string> files = arguments_of(given);
    if (files.size() != 1 || !given.contains("dir")) refuse("usage: holdfast restore --dir DIR FILE");
    const std::string dir = given["dir"].as<std::string>();
    refuse_empty(dir, "--dir");
    refuse_empty(files[0], "FILE");
    return restore_backup(files[0], dir, given.contains("json"));
  } catch (const std::exception& e) {  // from Boost, or from refuse()
    return fail(kUsage, "{}; see holdfast restore --help", e.what());
  }
}

std::string help_of(std::string_view verb) {
  if (verb == "run") return parse_run({"--help"}).help;
  if (verb == "elect") return parse_elect({"--help"}).help;
  if (verb == "restore") return kRestoreHelp;
  if (verb == "proxy") return proxy::help_text();
  return verb == "check" ? kCheckHelp : verb_help(verb);
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return std::fputs(usage().c_str(), stderr), kUsage;
  if (words[0] == "--help" || words[0] == "-h" || words[0] == "help") return print("{}", usage()), 0;
  if (words[0] == "--version") return put(version_text("holdfast")), 0;
  if (words[0] == "__complete") return complete({words.begin() + 1, words.end()}, usage(), help_of), 0;
  if (words[0] == "run") return run_under_lock({words.begin() + 1, words.end()});
  if (words[0] == "elect") return run_while_leading({words.begin() + 1, words.end()});
  if (words[0] == "check") return check({words.begin() + 1, words.end()});
  if (words[0] == "restore") return restore({words.begin() + 1, words.end()});
  if (const auto status = run_verb(words[0], {words.begin() + 1, words.end()})) return *status;
  if (words[0].starts_with('-'))
    return fail(kUsage, "options must follow the verb: holdfast VERB {} ...; see holdfast --help",
                words[0]);
  return fail(kUsage, "no such verb: {}; see holdfast --help", words[0]);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "proxy")
    return holdfast::proxy::run_proxy(argc - 1, argv + 1);
  holdfast::open_closed_streams(holdfast::ClosedOutput::kFails);
  const std::vector<std::string> words(argv + 1, argv + argc);
  holdfast::hide_arguments(argc, argv);
  const int status = holdfast::run(words);
  return holdfast::flush() ? status : holdfast::kNoOutput;
}
