// A child process plays, and tells its steps through shared memory.
#include "server_runs.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>

#include "io/os/log.h"
#include "server_generator.h"
#include "simulation/end_child.h"
#include "simulation/shorten.h"

namespace holdfast::simulation {
namespace {

constexpr unsigned kLongestS = 120;  // a child that runs longer hangs

// What a child tells: it outlives the child.
struct Report {
  Counts counts;
  bool done = false;
  char fault[16384] = {};
  size_t size = 0;
  char script[(16U << 20U) - 32768] = {};

  void add(const std::string& line) {
    if (size + line.size() + 2 > sizeof script) return;
    std::memcpy(script + size, line.data(), line.size());
    script[size + line.size()] = '\n';
    size += line.size() + 1;
  }
};

class SharedReport {
 public:
  SharedReport()
      : report_(static_cast<Report*>(
            mmap(nullptr, sizeof(Report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    if (report_ == MAP_FAILED) std::abort();
  }
  ~SharedReport() { munmap(report_, sizeof(Report)); }
  SharedReport(const SharedReport&) = delete;
  SharedReport& operator=(const SharedReport&) = delete;
  Report* operator->() const { return report_; }
  std::string fault() const { return report_->fault; }
  std::string script() const { return {report_->script, report_->size}; }

 private:
  Report* report_;
};

void set_log() {
  const bool wanted = std::getenv("HOLDFAST_SIM_LOG") != nullptr;
  if (!wanted) dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
}

// Plays in a child. Returns the fault.
std::string play_apart(SharedReport& report, const std::function<void()>& play) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    std::signal(SIGALRM, SIG_DFL);
    alarm(kLongestS);
    set_log();
    play();
    report->done = true;
    std::fflush(nullptr);
    end_child(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (report->done) return report.fault();
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return "the run hangs";
  return "the server's process died: " +
         std::string(WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
}

// Plays one step. Returns whether the run goes on.
bool play_step(ServerWorld& world, SharedReport& report, const ScriptStep& step) {
  report->add(step.text());
  const std::string wrong = world.play(step);
  report->counts = world.counts();
  std::strncpy(report->fault, wrong.c_str(), sizeof report->fault - 1);
  return wrong.empty();
}

std::string play_steps(SharedReport& report, uint64_t seed, const std::vector<ScriptStep>& steps) {
  return play_apart(report, [&] {
    ServerWorld world(seed);
    for (const ScriptStep& step : steps) {
      if (!play_step(world, report, step)) return;
    }
  });
}

std::string play_steps(uint64_t seed, const std::vector<ScriptStep>& steps) {
  SharedReport report;
  return play_steps(report, seed, steps);
}

// The kind of a fault, so that a shorter script fails for the same reason.
std::string kind_of(const std::string& fault) {
  return fault.substr(0, std::min<size_t>(fault.size(), 24));
}

std::string text_of(const std::vector<ScriptStep>& steps) {
  std::string text;
  for (const ScriptStep& step : steps) text += step.text() + "\n";
  return text;
}

}  // namespace

RunResult run_server_seed(uint64_t seed, uint64_t steps) {
  SharedReport report;
  const std::string fault = play_apart(report, [&] {
    ServerWorld world(seed);
    ServerGenerator generator(seed);
    for (uint64_t n = 0; n < steps; ++n) {
      if (!play_step(world, report, generator.next(world))) return;
    }
  });
  RunResult result{fault, "", report->counts};
  if (fault.empty()) return result;
  const std::vector<ScriptStep> all = read_script(report.script());
  const std::vector<ScriptStep> few =
      shortened(all, [&](const auto& fewer) { return kind_of(play_steps(seed, fewer)) == kind_of(fault); });
  result.script = text_of(few);
  const std::string now = play_steps(seed, few);
  if (!now.empty()) result.fault = now;
  return result;
}

RunResult play_server_script(uint64_t seed, const std::string& script) {
  SharedReport report;
  const std::string fault = play_steps(report, seed, read_script(script));
  return {fault, script, report->counts};
}

}  // namespace holdfast::simulation
