// The text of the config file: lines of "name = value". Reads it, makes the commented file of all options,
// and updates a file. Knows nothing of the command line, and opens no file.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "io/config/options_table.h"

namespace holdfast {

// One valid line of the file.
struct FileSetting {
  const Row* row;
  std::string written;  // the name in the file, which may be an old one
  std::string value;
};

struct FileSettings {
  std::vector<FileSetting> settings;
  std::vector<std::string> errors;  // one line each, with `path` and the number of the line
};

// Reads all lines. Each line with an error is reported, and has no setting. No error has a password.
FileSettings read_settings(std::istream& file, const std::string& path);

// Returns a file that has each option with its help, default and range. An option with its default is
// commented out.
std::string commented_config(const Options& options);

// Returns the new text of the file, for CONFIG REWRITE. A line whose value is still right stays as it is. A
// changed value replaces the old one in its line. If several lines set one option, only the last stays.
// Options that the file lacks follow at its end, if their values are not the defaults. `users` replace the
// users in the file.
std::string rewritten_config(std::istream& file, const Options& options,
                             const std::vector<std::string>& users);

}  // namespace holdfast
