// The CPU quota of the control groups (version 1 and 2), /proc/loadavg, and sched_yield(). A fact that
// cannot be read does not restrict.
#include "io/os/cores.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/parse.h"
#include "core/base/words.h"

namespace holdfast {
namespace {

constexpr uint64_t kNoQuota = std::numeric_limits<uint64_t>::max();

// Without a stream: libstdc++'s streams under UBSan need file descriptors, and there may be none left.
std::string read_text(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text;
  char part[512];
  for (ssize_t n = 0; (n = ::read(fd, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(n));
  ::close(fd);
  return text;
}

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

// Returns the number in a field of the first line, or 0 if there is none.
int64_t number_in(std::string_view text, size_t field) {
  const std::vector<std::string_view> words = split_words(first_line(text));
  return field < words.size() ? parse_int(words[field]).value_or(0) : 0;
}

// Returns the whole cores of one group. `folder` ends with a slash.
uint64_t quota_of(const std::string& folder, bool unified) {
  const std::string first = read_text(folder + (unified ? "cpu.max" : "cpu.cfs_quota_us"));
  const int64_t quota_us = number_in(first, 0);  // version 2: max for no quota; version 1: -1
  const int64_t period_us =
      unified ? number_in(first, 1) : number_in(read_text(folder + "cpu.cfs_period_us"), 0);
  return quota_us > 0 && period_us > 0 ? static_cast<uint64_t>(quota_us / period_us) : kNoQuota;
}

// Returns the least quota of the group and of those that contain it, as far as this process sees them. A
// container sees its own group as the root.
uint64_t least_quota(const std::string& mount, std::string path, bool unified) {
  uint64_t least = quota_of(mount + "/", unified);
  for (; path.size() > 1; path.erase(path.rfind('/'))) {
    least = std::min(least, quota_of(mount + path + "/", unified));
  }
  return least;
}

// A line of /proc/self/cgroup is number:controllers:path. Version 2 has no controllers.
uint64_t quota_of_line(const std::string& root, std::string_view line) {
  const size_t names = line.find(':') + 1;
  const size_t path = line.find(':', names) + 1;
  if (names == 0 || path == 0) return kNoQuota;
  const std::string controllers = "," + std::string(line.substr(names, path - names - 1)) + ",";
  const std::string group(line.substr(path));
  if (controllers == ",,") return least_quota(root + "/sys/fs/cgroup", group, true);
  if (controllers.find(",cpu,") == std::string::npos) return kNoQuota;
  return least_quota(root + "/sys/fs/cgroup/cpu", group, false);
}

uint64_t quota_cores(const std::string& root) {
  uint64_t least = kNoQuota;
  const std::string groups = read_text(root + "/proc/self/cgroup");
  for (std::string_view rest = groups; !rest.empty();) {
    const std::string_view line = first_line(rest);
    least = std::min(least, quota_of_line(root, line));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return least;
}

// The fourth field of /proc/loadavg is runnable/all.
uint64_t runnable_threads(const std::string& root) {
  const std::string load = read_text(root + "/proc/loadavg");
  const std::vector<std::string_view> words = split_words(first_line(load));
  if (words.size() < 4) return 0;
  const std::string_view runnable = words[3].substr(0, words[3].find('/'));
  return static_cast<uint64_t>(parse_int_in(runnable, 0, std::numeric_limits<int64_t>::max()).value_or(0));
}

uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

// How often this thread was taken from its core while it could run.
long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

}  // namespace

Cores read_cores(const std::string& root) {
  Cores cores;
  cores.online = static_cast<uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  cores.usable = std::min(quota_cores(root), cores.online);
  cores.runnable_threads = runnable_threads(root);
  return cores;
}

// The time tells most calls without a switch apart, because two switches take longer. An interrupt takes
// time, too, but is no preemption.
uint64_t let_others_run() {
  constexpr uint64_t kTwoSwitchesNs = 2'000;
  thread_local long known = 0;
  const uint64_t began_ns = monotonic_ns();
  sched_yield();
  const uint64_t took_ns = monotonic_ns() - began_ns;
  if (took_ns < kTwoSwitchesNs) return 0;
  const long before = std::exchange(known, preemptions());
  return known != before ? took_ns : 0;
}

}  // namespace holdfast
