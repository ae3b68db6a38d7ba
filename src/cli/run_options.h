// The options of `holdfast run` and `holdfast elect`: what they mean, and what is wrong with them.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"

namespace holdfast {

struct RunOptions : LockWish {
  std::string servers;  // as Client takes them, with the login of --user and --password-file
  // For the command, which has a password of the environment, but none that was read from a file.
  std::string servers_without_login;
  std::string user;  // of --user
  std::vector<std::string> command;
  milliseconds grace{5000};
  bool ends_before_lock = false;  // the command; always with elect
  // Of run:
  milliseconds at_least{0};
  // Of elect:
  bool restart = false;
  bool json = false;
};

struct ParsedRun {
  std::optional<RunOptions> options;  // empty: say `help` or `wrong`
  std::string help;
  std::string wrong;
};

// Of the words behind `run` and `elect`. They read the variable HOLDFAST_SERVERS, too.
ParsedRun parse_run(const std::vector<std::string>& words);
ParsedRun parse_elect(const std::vector<std::string>& words);

}  // namespace holdfast
