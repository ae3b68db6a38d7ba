// The facts about the cores, from files as Linux has them in /proc and /sys.
#include "io/os/cores.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace holdfast {
namespace {

namespace fs = std::filesystem;

struct Root {
  std::string path = make();
  ~Root() { fs::remove_all(path); }
  Root() = default;
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;

  static std::string make() {
    std::string pattern = fs::temp_directory_path() / "holdfast-cores-XXXXXX";
    return mkdtemp(pattern.data());
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path + name).parent_path());
    std::ofstream(path + name) << text << '\n';
  }
  uint64_t usable() const { return read_cores(path).usable; }
};

}  // namespace

TEST_CASE("cores: without quota files the process may use all cores of the machine") {
  const Root root;
  CHECK(root.usable() == static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  CHECK(read_cores(root.path).online == root.usable());
}

TEST_CASE("cores: a quota counts in whole cores, of the group and of those that contain it") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/system.slice/holdfast.service");
  root.write("/sys/fs/cgroup/system.slice/holdfast.service/cpu.max", "max 100000");
  const uint64_t all = root.usable();
  CHECK(all == read_cores(root.path).online);
  root.write("/sys/fs/cgroup/system.slice/holdfast.service/cpu.max", "199999 100000");
  CHECK(root.usable() == 1);
  root.write("/sys/fs/cgroup/system.slice/holdfast.service/cpu.max", "900000 100000");
  CHECK(root.usable() == std::min<uint64_t>(all, 9));
  root.write("/sys/fs/cgroup/system.slice/cpu.max", "50000 100000");
  CHECK(root.usable() == 0);
}

TEST_CASE("cores: a container has its quota in the root of its control groups") {
  const Root root;
  root.write("/proc/self/cgroup", "0::/");
  root.write("/sys/fs/cgroup/cpu.max", "100000 100000");
  CHECK(root.usable() == 1);
}

TEST_CASE("cores: control groups of version 1 have the quota in two files; -1 is none") {
  const Root root;
  root.write("/proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/docker/a\n1:cpuset:/a");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  CHECK(root.usable() == read_cores(root.path).online);
  root.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000");
  CHECK(root.usable() == 1);
}

TEST_CASE("cores: the runnable threads are those of /proc/loadavg") {
  const Root root;
  CHECK(read_cores(root.path).runnable_threads == 0);
  root.write("/proc/loadavg", "0.50 1.00 1.50 17/345 9999");
  CHECK(read_cores(root.path).runnable_threads == 17);
}

}  // namespace holdfast
