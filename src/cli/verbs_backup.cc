// holdfast backup: reads a backup of a running server.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cli/backup_file.h"
#include "cli/output.h"
#include "cli/servers.h"
#include "cli/show.h"
#include "cli/signals.h"
#include "cli/status.h"
#include "cli/verbs.h"

namespace holdfast {
namespace {

using std::chrono::steady_clock;
using Kind = client::Value::Kind;

constexpr milliseconds kPause{5};  // while the server has no bytes ready
constexpr milliseconds kProgressEvery{200};
constexpr int kSignalStatus = 128;  // and the number of the signal, as a shell has it

// A line on the terminal that shows how much is done, and disappears at the end.
class Progress {
 public:
  explicit Progress(bool wanted) : shown_(wanted && isatty(STDERR_FILENO) != 0) {}
  ~Progress() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(const BackupFile& file) {
    if (!shown_ || steady_clock::now() < next_) return;
    next_ = steady_clock::now() + kProgressEvery;
    constexpr double kMiB = 1 << 20;
    const std::string line =
        file.bytes() == 0 ? "the server writes a snapshot"
                          : fmt::format("{:.1f} of {:.1f} MiB", static_cast<double>(file.bytes()) / kMiB,
                                        static_cast<double>(file.snapshot_bytes()) / kMiB);
    std::fputs(("\r\x1b[K" + line).c_str(), stderr);
  }

 private:
  bool shown_;
  steady_clock::time_point next_;
};

int fail_server(const Answer& answer) {
  return fail(kUnavailable, "{}: {}", answer.server, printable(answer.why()));
}

// Reads until the server has sent all. Returns the exit status.
int read_all_of(Servers& servers, const Signals& signals, BackupFile& file, Progress& progress) {
  while (true) {
    const int number = signals.next();
    if (number == SIGTSTP) stop_process({});
    if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
      return fail(kSignalStatus + number, "interrupted: no backup was written");
    const Answer next = servers.ask({0}, {"BACKUP", "READ"})[0];
    progress.show(file);
    if (next.is(Kind::kNull)) return 0;
    if (!next.is(Kind::kBulk)) return fail_server(next);
    if (next.value.text.empty()) {
      std::this_thread::sleep_for(kPause);
    } else if (const std::string why = file.add(next.value.text); !why.empty()) {
      return fail(file.write_failed() ? kNoOutput : kUnavailable, "{}", why);
    }
  }
}

int report(const Call& call, const BackupFile& file, const std::string& server) {
  const std::string& path = call.arguments[0];
  if (path == "-") return 0;
  if (call.json) {
    const Json row{{"server", server},
                   {"file", path},
                   {"bytes", file.bytes()},
                   {"snapshot_bytes", file.snapshot_bytes()},
                   {"taken_ms", file.taken_us() / 1000}};
    return print_json(row) ? 0 : kNoOutput;
  }
  print("{}: a backup of {}, {} bytes\n", printable(path), server, file.bytes());
  return 0;
}

}  // namespace

int verb_backup(const Call& call) {
  const std::string& path = call.arguments[0];
  if (path == "-" && isatty(STDOUT_FILENO) != 0)
    return fail(kUsage, "a backup is not text for a terminal: name a file, or redirect the output");
  const Signals signals;  // before the threads of Servers
  Servers servers(call.servers);
  if (servers.all().size() != 1 || servers.config().servers[0].redis)
    return fail(kUsage,
                "backup reads one Holdfast server: name it alone in --servers. Make a backup of each "
                "server of a quorum");
  BackupFile file(path);
  const Answer started = servers.ask({0}, {"BACKUP", "START"})[0];
  if (!started.good()) return fail_server(started);
  if (const std::string why = file.open(); !why.empty()) return fail(kNoOutput, "{}", why);
  Progress progress(!call.lock.quiet);
  if (const int status = read_all_of(servers, signals, file, progress); status != 0) return status;
  if (const std::string why = file.finish(); !why.empty())
    return fail(file.write_failed() ? kNoOutput : kUnavailable, "{}", why);
  return report(call, file, started.server);
}

}  // namespace holdfast
