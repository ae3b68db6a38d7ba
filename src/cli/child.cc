// Linux only: PR_SET_PDEATHSIG, and /proc to find the remaining processes of a group.
#include "cli/child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "cli/status.h"

namespace holdfast {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kNotFound = 127;
constexpr int kNotRun = 126;
// The interval of checks for a group whose first process has ended: no event reports the end of the others.
constexpr milliseconds kLookAgain{20};
constexpr milliseconds kRestSettles{200};  // a process that leaves the group needs a moment for that
constexpr int64_t kLookForRestMs = 1000;   // beside SIGCHLD, for processes whose parent is no ancestor
constexpr int64_t kAboutToMs = 2;
constexpr int64_t kLongestWaitMs = 3600000;  // for one poll()

struct Pipe {
  int ends[2];
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int i) noexcept {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
};

std::vector<std::string> environment_with(const Environment& more) {
  std::vector<std::string> all;
  for (char** old = environ; *old != nullptr; ++old) {
    const std::string_view line = *old;
    const bool replaced = std::any_of(more.begin(), more.end(), [&](const auto& pair) {
      return line.starts_with(pair.first) && line.substr(pair.first.size()).starts_with('=');
    });
    if (!replaced) all.emplace_back(line);
  }
  for (const auto& [name, value] : more) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// Returns pointers into `strings`.
std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> all;
  all.reserve(strings.size() + 1);
  for (const std::string& s : strings) all.push_back(const_cast<char*>(s.c_str()));
  all.push_back(nullptr);
  return all;
}

struct Plan {
  char** argv;
  char** environment;
  pid_t parent;
  bool nohup;
};

// Runs between fork and exec, in a copy of a program with threads: only async-signal-safe calls are
// allowed. Starts the command after a byte arrives on `gate`. `gate` closes instead if the parent dies
// before the guardian knows this process.
[[noreturn]] void become(const Plan& plan, Pipe& gate, const Pipe& errors) noexcept {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  gate.close_end(1);
  char go = 0;
  if (getppid() != plan.parent || read(gate.ends[0], &go, 1) != 1) _exit(kNotRun);
  default_signals(plan.nohup);
  execvpe(plan.argv[0], plan.argv, plan.environment);
  const int why = errno;
  [[maybe_unused]] const ssize_t sent = write(errors.ends[1], &why, sizeof why);
  _exit(kNotRun);
}

int status_of(int wait_status) {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

struct ProcessFacts {
  char state = 0;
  int parent = 0;
  int group = 0;

  bool is_dead() const { return state == 'Z' || state == 'X'; }
};

// Reads a line of /proc/PID/stat. The line is "PID (NAME) STATE PARENT GROUP ...", where NAME may contain
// any character.
std::optional<ProcessFacts> facts_of(const std::string& stat) {
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  ProcessFacts facts;
  const char* const behind = stat.c_str() + name_end + 1;
  if (std::sscanf(behind, " %c %d %d", &facts.state, &facts.parent, &facts.group) != 3) return std::nullopt;
  return facts;
}

}  // namespace

Child::~Child() {
  if (pid_ < 0) return;
  kill(-pid_, SIGKILL);
  terminal_.reclaim(pid_);
  reap();
}

int Child::start(const std::vector<std::string>& argv, const Environment& more, const Supervision& how) {
  const std::vector<std::string> environment = environment_with(more);
  const std::vector<char*> words = pointers(argv);
  const std::vector<char*> variables = pointers(environment);
  const Plan plan{const_cast<char**>(words.data()), const_cast<char**>(variables.data()), getpid(),
                  signals_.nohup()};
  Pipe gate;
  Pipe errors;
  // So that SIGCHLD reports the ends of processes whose parents have ended, too.
  if (how.rest == Supervision::Rest::kAwaited) prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = fork();
  if (pid_ == 0) become(plan, gate, errors);
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  setpgid(pid_, pid_);  // parent and child both call it, so the order does not matter
  if (how.time_left) dead_by_ms_ = boot_time_ms() + how.time_left().count();
  guardian_.guard(pid_, deadline(how));
  wants_terminal_ = terminal_.is_for_command();
  if (wants_terminal_) terminal_.give(pid_);
  [[maybe_unused]] const ssize_t sent = write(gate.ends[1], "", 1);
  errors.close_end(1);
  return await_exec(errors.ends[0], argv[0]);
}

// The pipe closes when exec succeeds; otherwise it delivers errno.
int Child::await_exec(int errors, const std::string& name) {
  int why = 0;
  ssize_t got = 0;
  do got = read(errors, &why, sizeof why);
  while (got < 0 && errno == EINTR);
  if (got != sizeof why) return 0;
  terminal_.reclaim(pid_);
  reap();
  const bool searched = name.find('/') == std::string::npos;
  return fail(why == ENOENT ? kNotFound : kNotRun, "{}: {}", name,
              why == ENOENT && searched ? "command not found" : std::strerror(why));
}

CommandEnd Child::wait_for_end(const Supervision& how) {
  while (!is_over()) {
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {lost_ ? -1 : how.lost_fd, POLLIN, 0}};
    poll(fds, 2, wait_ms(how));
    // This check comes first: a command that ended meanwhile ended too late.
    if (fds[1].revents != 0 || is_too_late(how)) lose(how);
    if (prolong(how)) guardian_.set(deadline(how));
    if (fds[0].revents != 0) take_signals(how);
    if (ended_ && !ending_ && !reported_) await_rest(how);
    if (ending_ && !killed_ && steady_clock::now() >= kill_at_) {
      kill(-pid_, SIGKILL);
      killed_ = true;
    }
  }
  terminal_.reclaim(pid_);
  const int status = reap();
  if (status > 128) terminal_.restore_modes();
  return {true, lost_, asked_to_end_, status};
}

// Returns the poll() timeout in ms: the time until the next work that no descriptor reports; -1: none.
int Child::wait_ms(const Supervision& how) const {
  if (ending_) {
    const auto left = std::chrono::ceil<milliseconds>(kill_at_ - steady_clock::now());
    return static_cast<int>((killed_ ? kLookAgain : std::clamp(left, milliseconds(0), kLookAgain)).count());
  }
  int64_t longest_ms = kLongestWaitMs;
  if (awaiting_) longest_ms = reported_ ? kLookForRestMs : kRestSettles.count();
  if (!how.time_left) return awaiting_ ? static_cast<int>(longest_ms) : -1;
  const int64_t left_ms = deadline(how).term_at_ms - boot_time_ms();
  return static_cast<int>(std::clamp<int64_t>(left_ms / 2, kLookAgain.count(), longest_ms));
}

// Sets a later `dead_by_ms_` if the command may run longer. Returns true if the guardian needs the new one.
bool Child::prolong(const Supervision& how) {
  if (!how.time_left) return false;
  const milliseconds left = how.time_left();
  const int64_t until_ms = boot_time_ms() + left.count();
  if (left.count() <= 0 || until_ms <= dead_by_ms_) return false;
  dead_by_ms_ = until_ms;
  return true;
}

// Whether the guardian has sent TERM, or is about to: from now on an end of the command counts as forced.
bool Child::is_too_late(const Supervision& how) const {
  return how.time_left && !ending_ && boot_time_ms() + kAboutToMs >= deadline(how).term_at_ms;
}

// Returns the deadline for the guardian. After TERM was sent, it has only the time of KILL.
GroupDeadline Child::deadline(const Supervision& how) const {
  if (!how.time_left) return {};
  return {ending_ ? GroupDeadline::kNone : dead_by_ms_ - how.grace.count(), dead_by_ms_};
}

void Child::take_signals(const Supervision& how) {
  while (int number = signals_.next()) {
    if (number == SIGCHLD) {
      look();
    } else if (number == SIGTSTP) {
      kill(-pid_, SIGTSTP);
      stop_pending_ = true;
    } else if (number == SIGCONT) {
      resume(how);
    } else if (number != SIGHUP || !signals_.nohup()) {
      kill(-pid_, number);
      if (number == SIGINT || number == SIGTERM || number == SIGQUIT) asked_to_end_ = true;
    }
    if (std::exchange(stop_pending_, false))
      stop_with_command(how, number == SIGTSTP || terminal_.is_of(pid_));
  }
}

// Stops this process with the command. `by_user`: Ctrl-Z stopped it. Otherwise the command stopped because
// it used the terminal from the background. In an orphaned group it never gets the terminal. Then it is
// sent HUP and CONT, as the kernel does for such a group.
void Child::stop_with_command(const Supervision& how, bool by_user) {
  terminal_.reclaim(pid_);
  // A shell gives this process the terminal before it resumes it: its SIGCONT may already have arrived.
  const auto is_continued = [&] { return !by_user && terminal_.is_foreground(); };
  const bool sigcont_follows = stop_process(is_continued);
  if (is_too_late(how)) lose(how);  // during the stop the guardian ended the command
  if (sigcont_follows) return;      // its handler resumes the command
  if (by_user) return resume(how);
  if (std::exchange(hup_sent_, true)) return;
  kill(-pid_, SIGHUP);
  kill(-pid_, SIGCONT);
}

// Looks for a state change of the command. WNOWAIT keeps the zombie, so that its pid, which is also the id
// of its group, cannot be reused.
void Child::look() {
  reap_adopted();
  siginfo_t info{};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    ended_ = true;
    return;
  }
  info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOHANG) == 0 && info.si_pid != 0) {
    stopped(info.si_status);
  }
}

// Processes whose parents have ended become children of process 1 and of a subreaper. Without this their
// zombies would stay as long as this process, which is process 1 in many containers.
void Child::reap_adopted() {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    if (info.si_pid == pid_ || guardian_.is(info.si_pid)) return;
    waitpid(info.si_pid, nullptr, WNOHANG);
    info = {};
  }
}

// `by` is the signal that stopped the command. After a SIGSTOP from another process, the command waits for
// that process's SIGCONT. After a stop by the terminal, a shell must resume the job, and the shell knows
// only this process.
void Child::stopped(int by) {
  const bool for_terminal = by == SIGTTIN || by == SIGTTOU;
  if (for_terminal) wants_terminal_ = true;
  if (for_terminal && terminal_.is_foreground()) return send_cont();
  if (for_terminal || terminal_.is_of(pid_)) stop_pending_ = true;
}

void Child::resume(const Supervision& how) {
  if (!lost_ && how.may_resume && !how.may_resume()) lose(how);
  send_cont();
}

void Child::send_cont() {
  if (wants_terminal_ && terminal_.is_foreground()) terminal_.give(pid_);
  kill(-pid_, SIGCONT);
}

void Child::lose(const Supervision& how) {
  lost_ = true;
  end_group(how);
  if (how.on_lost) how.on_lost();
}

// Sends TERM to the group and sets the time of KILL. A second call does not start a new grace period.
void Child::end_group(const Supervision& how) {
  if (!std::exchange(ending_, true)) kill_at_ = steady_clock::now() + how.grace;
  if (how.time_left) guardian_.set(deadline(how));
  kill(-pid_, SIGTERM);
  kill(-pid_, SIGCONT);  // a stopped process cannot end
}

bool Child::is_over() const { return ended_ && ((!ending_ && !awaiting_) || !group_lives()); }

// The command ended by itself. The terminal comes back to this process, as a shell knows only this process.
void Child::await_rest(const Supervision& how) {
  if (how.rest == Supervision::Rest::kEnded) return end_group(how);
  if (how.rest == Supervision::Rest::kRuns) return;
  if (!awaiting_) ended_at_ = steady_clock::now();
  awaiting_ = true;
  if (steady_clock::now() - ended_at_ < kRestSettles || !group_lives()) return;
  reported_ = true;
  terminal_.reclaim(pid_);
  if (how.on_rest) how.on_rest();
}

// Whether the group has a live process. kill() cannot tell: the zombie keeps the group. If /proc cannot be
// read, the group counts as alive until KILL was sent. Even after KILL a process may need time to end. On
// the way it reaps adopted processes, as reap_adopted() does not look behind the zombie of the command.
bool Child::group_lives() const {
  std::error_code wrong;
  std::filesystem::directory_iterator processes("/proc", wrong);
  if (wrong) return !killed_;
  bool any = false;
  bool lives = false;
  for (const std::filesystem::directory_entry& process : processes) {
    const std::string name = process.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    any = true;
    std::string line;
    std::ifstream stat(process.path() / "stat");
    const auto facts = std::getline(stat, line, '\0') ? facts_of(line) : std::nullopt;
    if (!facts) continue;
    lives = lives || (facts->group == pid_ && !facts->is_dead());
    const pid_t pid = std::atoi(name.c_str());
    if (facts->is_dead() && facts->parent == getpid() && pid != pid_ && !guardian_.is(pid))
      waitpid(pid, nullptr, WNOHANG);
  }
  return lives || (!any && !killed_);
}

int Child::reap() {
  guardian_.dismiss();
  int wait_status = 0;
  while (waitpid(pid_, &wait_status, 0) < 0 && errno == EINTR) continue;
  pid_ = -1;
  return status_of(wait_status);
}

}  // namespace holdfast
