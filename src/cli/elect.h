// `holdfast elect`: runs a command on one of several machines at a time.
#pragma once

#include <string>
#include <vector>

namespace holdfast {

// As run_under_lock(), with the exit statuses that `holdfast elect --help` documents.
int run_while_leading(const std::vector<std::string>& words);

}  // namespace holdfast
