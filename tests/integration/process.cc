// Linux only, like the host information of the server: uses pidfd, prctl and close_range.
#include "process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <utility>

namespace holdfast::integration {
namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

// Without these capabilities, root has the same restrictions as other users.
void drop_privileges() {
  for (const int capability :
       {CAP_NET_BIND_SERVICE, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_RESOURCE}) {
    prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);  // other users than root do not have them
  }
}

// Runs in the child between fork and exec: only calls that are safe there. Closes all other files:
// otherwise a connection that a test closes would stay open in the child.
[[noreturn]] void become(char* const* argv, char* const* env, const Launch& launch, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  close_range(3, ~0U, 0);
  if (launch.weak) drop_privileges();
  const rlimit files{launch.max_files, launch.max_files};
  if (launch.max_files != 0 && setrlimit(RLIMIT_NOFILE, &files) != 0) _exit(126);
  execve(argv[0], argv, env);
  _exit(127);
}

// "NAME=value" -> "NAME=".
std::string_view name_of(std::string_view setting) { return setting.substr(0, setting.find('=') + 1); }

std::vector<char*> environment_with(std::vector<std::string>& settings) {
  std::vector<char*> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto replaces = [&](const std::string& s) { return name_of(s) == name_of(*entry); };
    if (std::none_of(settings.begin(), settings.end(), replaces)) all.push_back(*entry);
  }
  for (std::string& setting : settings) all.push_back(setting.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

int left_ms(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

int Fd::release() { return std::exchange(fd_, -1); }

void Fd::close() {
  if (fd_ >= 0) ::close(release());
}

Capture::Capture(Fd fd) : fd_(std::move(fd)), thread_([this] { run(); }) {}

Capture::~Capture() { thread_.join(); }

void Capture::run() {
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t n = read(fd_.get(), block.data(), block.size());
    const std::lock_guard guard(mutex_);
    if (n > 0) text_.append(block.data(), static_cast<size_t>(n));
    ended_ = n <= 0;
    changed_.notify_all();
    if (ended_) return;
  }
}

std::string Capture::text() const {
  const std::lock_guard guard(mutex_);
  return text_;
}

bool Capture::wait_for(std::string_view part) const {
  std::unique_lock lock(mutex_);
  const auto has_it = [&] { return text_.find(part) != std::string::npos; };
  changed_.wait_for(lock, kPatience, [&] { return ended_ || has_it(); });
  return has_it();
}

std::string Capture::whole() const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kPatience, [&] { return ended_; });
  return text_;
}

// AddressSanitizer checks that it is the first library. The check is off: the library must define none of
// its functions.
std::vector<std::string> preloaded(const std::string& library) {
  const char* const present = std::getenv("ASAN_OPTIONS");
  const std::string options = present != nullptr ? present : "";
  return {"LD_PRELOAD=" + library, "ASAN_OPTIONS=" + options + ":verify_asan_link_order=0"};
}

Process::Process(const std::string& program, const Launch& launch) {
  Pipe out = make_pipe();
  Pipe err = make_pipe();
  std::vector<std::string> words{program};
  words.insert(words.end(), launch.args.begin(), launch.args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<std::string> settings = launch.env;
  const std::vector<char*> env = environment_with(settings);
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("cannot fork");
  if (pid_ == 0) become(argv.data(), env.data(), launch, out.write.get(), err.write.get());
  running_ = true;
  out.write.close();
  err.write.close();
  out_ = std::make_unique<Capture>(std::move(out.read));
  err_ = std::make_unique<Capture>(std::move(err.read));
}

Process::~Process() {
  if (!running_) return;
  signal(SIGKILL);
  wait();
}

void Process::signal(int number) const {
  if (running_) kill(pid_, number);
}

// The program's name precedes the state, in brackets, and may have any bytes.
char Process::state() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
  std::string line;
  std::getline(file, line);
  const size_t end = line.rfind(") ");
  return end == std::string::npos ? 'Z' : line.at(end + 2);
}

int Process::wait() {
  if (!running_) return status_;
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (poll(&ended, 1, left_ms(Clock::now() + kPatience)) != 1) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  running_ = false;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return status_;
}

}  // namespace holdfast::integration
