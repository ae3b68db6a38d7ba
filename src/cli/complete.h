// Completion for the shells: holdfast __complete WORD... prints the words that can follow. The scripts for
// bash, zsh and fish call it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace holdfast {

// Returns what --help of a verb prints; empty if there is no such verb.
using HelpOf = std::string (*)(std::string_view verb);

// Prints what can stand in the place of the last of `words`, which may be empty. All others come before it
// on the command line, behind `holdfast`. Verbs and options are those of `usage` and of their help, so that
// no option can be forgotten. Prints lines of WORD, a tab and a description; or one line:
//   :files      the names of files
//   :command N  a command of its own, whose name is word N of the line (`holdfast` is word 0)
void complete(const std::vector<std::string>& words, const std::string& usage, HelpOf help_of);

}  // namespace holdfast
