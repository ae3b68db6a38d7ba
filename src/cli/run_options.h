// Parses and checks the options of `holdfast run` and `holdfast elect`.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace holdfast {

struct RunOptions : LockSettings {
  std::string servers;  // as Client takes them, with the login of --user and --password-file
  // The address that the command gets. The command inherits a password of the environment, but does not get
  // one that was read from a file.
  std::string servers_without_login;
  std::string user;  // from --user
  std::vector<std::string> command;
  milliseconds grace{5000};
  bool ends_before_lock = false;  // the command ends first; always true for elect
  // For run:
  milliseconds at_least{0};
  bool leader_only = false;  // processes that the command leaves behind do not count
  bool verbose = false;      // sum up at the end
  // For elect:
  bool restart = false;
  bool json = false;
};

struct ParsedRun {
  std::optional<RunOptions> options;  // empty: print `help`, or the error `wrong`
  std::string help;
  std::string wrong;
};

// Parse the arguments behind `run` and `elect`. They read the variable HOLDFAST_SERVERS, too.
ParsedRun parse_run(const std::vector<std::string>& words);
ParsedRun parse_elect(const std::vector<std::string>& words);

}  // namespace holdfast
