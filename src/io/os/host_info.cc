// Reads the facts of this process from Linux.
#include "io/os/host_info.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <malloc.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "io/os/clock.h"
#include "io/os/log.h"

namespace holdfast {
namespace {

// Open files other than the clients' sockets: listeners, the loop's own, the log, and some spare.
constexpr uint64_t kOtherFiles = 32;

double seconds(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
}

// Not by mallinfo(): it walks all free blocks, which takes 100 ms if there are millions.
void read_resident_bytes(HostFacts& facts) {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  int64_t file_pages = 0;
  statm >> total_pages >> resident_pages >> file_pages;
  facts.rss_bytes = resident_pages * sysconf(_SC_PAGESIZE);
  facts.private_bytes = (resident_pages - file_pages) * sysconf(_SC_PAGESIZE);
}

std::string executable_path() {
  std::array<char, 4096> path{};
  const ssize_t n = readlink("/proc/self/exe", path.data(), path.size());
  return n > 0 ? std::string(path.data(), static_cast<size_t>(n)) : std::string();
}

// Returns true if `files` may be open at once from now on.
bool raise_file_limit(rlimit limit, rlim_t files) {
  limit.rlim_cur = files;
  limit.rlim_max = std::max(limit.rlim_max, files);  // root may go beyond the hard limit
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

// The kernel grows a process's file table as files are opened. In a process with threads each growth blocks
// it for 10 ms and more. So the table grows here once, before the first thread starts.
void grow_file_table(rlim_t files) {
  const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const int last = fcntl(fd, F_DUPFD_CLOEXEC, static_cast<int>(std::min<rlim_t>(files, INT_MAX)) - 1);
  if (last >= 0) close(last);
  close(fd);
}

}  // namespace

void fill_random(std::span<uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = getrandom(bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      std::perror("holdfast-server: no random bytes from the system");
      std::abort();
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

uint64_t random_number() {
  std::array<uint8_t, 8> bytes{};
  fill_random(bytes);
  uint64_t number = 0;
  for (const uint8_t byte : bytes) number = number << 8 | byte;
  return number;
}

std::string random_hex(size_t digits) {
  std::string text;
  while (text.size() < digits) text += fmt::format("{:016x}", random_number());
  text.resize(digits);
  return text;
}

std::string read_boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

std::string read_clock_id() {
  std::string boot_id = read_boot_id();
  std::ifstream in("/proc/self/timens_offsets");
  std::string clock;
  for (int64_t s = 0, ns = 0; !boot_id.empty() && in >> clock >> s >> ns;) {
    if (clock == "boottime" && (s != 0 || ns != 0)) return fmt::format("{}+{}.{:09}", boot_id, s, ns);
  }
  return boot_id;
}

Result<uint32_t> make_room_for_clients(uint32_t clients, uint32_t http_clients) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return clients;  // limit unknown: assume that all fit
  const rlim_t others = kOtherFiles + http_clients;
  const rlim_t wanted = clients + others;
  if (limit.rlim_cur >= wanted || raise_file_limit(limit, wanted)) {
    grow_file_table(wanted);
    return clients;
  }
  if (limit.rlim_cur < limit.rlim_max && raise_file_limit(limit, limit.rlim_max))
    limit.rlim_cur = limit.rlim_max;
  if (limit.rlim_cur <= others) {
    return Failure{
        fmt::format("the system allows {} open files, which leaves none for clients; raise it with "
                    "ulimit -n (at least {})",
                    limit.rlim_cur, others + 1)};
  }
  grow_file_table(limit.rlim_cur);
  const auto fit = static_cast<uint32_t>(limit.rlim_cur - others);
  log_line(LogLevel::kWarning,
           fmt::format(
               "maxclients is {} instead of {}: the system allows {} open files; raise it with ulimit -n",
               fit, clients, limit.rlim_cur));
  return fit;
}

std::string read_allocator_report() {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* out = open_memstream(&text, &size);
  if (out == nullptr) return "";
  malloc_info(0, out);
  std::fclose(out);
  std::string report(text, size);
  std::free(text);
  return report;
}

HostFacts read_host_facts(int64_t tcp_port, const std::string& config_file, TimeMs started) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  HostFacts facts;
  facts.pid = getpid();
  facts.tcp_port = tcp_port;
  read_resident_bytes(facts);
  facts.system_bytes = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  facts.uptime_s = (read_clock().mono - started).count / 1000;
  facts.cpu_user_s = seconds(usage.ru_utime);
  facts.cpu_system_s = seconds(usage.ru_stime);
  facts.executable = executable_path();
  facts.config_file = config_file;
  return facts;
}

}  // namespace holdfast
