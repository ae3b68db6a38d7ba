// Reads /proc and the limits of the process.
#include "io/os/process_facts.h"

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace holdfast {
namespace {

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

}  // namespace

ProcessFacts read_process_facts() {
  ProcessFacts facts;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) facts.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  std::ifstream("/proc/self/statm") >> total_pages >> resident_pages;
  facts.rss_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.max_fds = static_cast<int64_t>(limit.rlim_cur);
  return facts;
}

int64_t count_open_files() {
  std::error_code error;
  const std::filesystem::directory_iterator files("/proc/self/fd", error);
  if (error) return 0;
  return std::distance(begin(files), end(files)) - 1;  // without the folder itself
}

}  // namespace holdfast
