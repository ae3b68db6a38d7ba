// The command `holdfast`: its verbs and their options.
#include <fmt/format.h>

#include <boost/program_options.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "cli/check.h"
#include "cli/elect.h"
#include "cli/run.h"
#include "cli/verbs.h"
#include "core/version.h"

namespace holdfast {
namespace {

namespace po = boost::program_options;

constexpr int kUsageError = 2;

std::string usage() {
  return fmt::format(
      "Usage: holdfast VERB [options]\n"
      "\n"
      "Verbs:\n"
      "  run [options] NAME -- COMMAND...    run a command while holding a lock\n"
      "  elect [options] NAME -- COMMAND...  run a command while leading\n"
      "{}"
      "  check [--repair] PATH...            verify a data folder, or files of one: snapshot, journal, "
      "meta\n"
      "\n"
      "holdfast VERB --help tells more. holdfast --version tells the version.\n",
      verbs_summary());
}

int misuse(const std::string& why) {
  fmt::print(stderr, "holdfast: {}; see holdfast --help\n", why);
  return kUsageError;
}

int check(const std::vector<std::string>& words) {
  po::options_description options("Options");
  options.add_options()("repair", "cut a journal at its first damage; the original stays as NAME.damaged")(
      "help", "this text")("path", po::value<std::vector<std::string>>(), "");
  po::positional_options_description paths;
  paths.add("path", -1);
  po::variables_map given;
  try {
    po::store(po::command_line_parser(words).options(options).positional(paths).run(), given);
  } catch (const po::error& e) {
    return misuse(e.what());
  }
  if (given.contains("help")) {
    fmt::print(
        "Usage: holdfast check [--repair] PATH...\n"
        "\n"
        "Verifies data folders, or single files of one. Exit status 0: all is good, a tail that a crash "
        "cut\n"
        "off included; 1: something is not, and the line says where.\n"
        "\n"
        "  --repair  cut a journal at its first damage; the original stays as NAME.damaged\n");
    return 0;
  }
  if (!given.contains("path")) return misuse("check needs a file or folder");
  return check_files(given["path"].as<std::vector<std::string>>(), given.contains("repair"));
}

int run(const std::vector<std::string>& words) {
  if (words.empty()) return fmt::print(stderr, "{}", usage()), kUsageError;
  if (words[0] == "--help" || words[0] == "help") return fmt::print("{}", usage()), 0;
  if (words[0] == "--version") return fmt::print("holdfast {}\n", kHoldfastVersion), 0;
  if (words[0] == "run") return run_under_lock({words.begin() + 1, words.end()});
  if (words[0] == "elect") return run_while_leading({words.begin() + 1, words.end()});
  if (words[0] == "check") return check({words.begin() + 1, words.end()});
  if (const auto status = run_verb(words[0], {words.begin() + 1, words.end()})) return *status;
  return misuse("no such verb: " + words[0]);
}

}  // namespace
}  // namespace holdfast

int main(int argc, char** argv) { return holdfast::run({argv + 1, argv + argc}); }
