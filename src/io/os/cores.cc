// The CPU quota of the control groups (version 1 and 2), /proc/loadavg, and sched_yield(). A fact that
// cannot be read does not restrict.
#include "io/os/cores.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>
#include <string>
#include <utility>

namespace holdfast {
namespace {

constexpr uint64_t kNoQuota = std::numeric_limits<uint64_t>::max();

// Returns the whole cores of one group. `folder` ends with a slash.
uint64_t quota_of(const std::string& folder, bool unified) {
  int64_t quota_us = 0;
  int64_t period_us = 0;
  if (unified) {
    std::ifstream(folder + "cpu.max") >> quota_us >> period_us;  // "max" is not a number: no quota
  } else {
    std::ifstream(folder + "cpu.cfs_quota_us") >> quota_us;  // -1: no quota
    std::ifstream(folder + "cpu.cfs_period_us") >> period_us;
  }
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
uint64_t quota_of_line(const std::string& root, const std::string& line) {
  const size_t names = line.find(':') + 1;
  const size_t path = line.find(':', names) + 1;
  if (names == 0 || path == 0) return kNoQuota;
  const std::string controllers = "," + line.substr(names, path - names - 1) + ",";
  if (controllers == ",,") return least_quota(root + "/sys/fs/cgroup", line.substr(path), true);
  if (controllers.find(",cpu,") == std::string::npos) return kNoQuota;
  return least_quota(root + "/sys/fs/cgroup/cpu", line.substr(path), false);
}

uint64_t quota_cores(const std::string& root) {
  uint64_t least = kNoQuota;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) least = std::min(least, quota_of_line(root, line));
  return least;
}

// The fourth field of /proc/loadavg is runnable/all.
uint64_t runnable_threads(const std::string& root) {
  std::ifstream file(root + "/proc/loadavg");
  std::string load;
  uint64_t runnable = 0;
  file >> load >> load >> load >> runnable;
  return runnable;
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
