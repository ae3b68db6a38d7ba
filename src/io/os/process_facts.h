// What the system says about this process, for the metrics.
#pragma once

#include <cstdint>

namespace holdfast {

struct ProcessFacts {
  double cpu_s = 0;  // user and system
  int64_t rss_bytes = 0;
  int64_t max_fds = 0;
};
ProcessFacts read_process_facts();

// Takes milliseconds with 10,000 open files, so it belongs into a job. Returns 0 if the number is unknown.
int64_t count_open_files();

}  // namespace holdfast
