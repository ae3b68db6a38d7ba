// Clients of a quorum for the chaos test. The threads of one process use the library to acquire, keep and
// release a few locks, and record each operation in the form of history.py. Arguments: where
// (quorum://...), the process's name, the history (a path, appended to), threads, seed, and the end
// (CLOCK_MONOTONIC in seconds). Two more, a key and a number, make the threads contend for this key: they
// wait for it without a limit, keep it for 0 to 20 ms, and ask again. So many of 100 requests are shared.
// Such a process stops itself when it next has the lock after SIGUSR1 (by SIGKILL) and after SIGUSR2 (by
// SIGSTOP); SIGCONT takes that back.
// SIGTERM ends the process before its time: it cancels the waits, and exits when its threads have released.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "holdfast/client.h"

namespace {

using holdfast::Client;
using holdfast::Hold;
using holdfast::LockOptions;
using holdfast::Mode;
using holdfast::Outcome;
using std::chrono::milliseconds;

constexpr int64_t kNsPerMs = 1000000;
constexpr milliseconds kContendedTtl{1000};
constexpr unsigned kLongestUseMs = 20;
constexpr milliseconds kThink{2};       // a contender's pause before its next request
constexpr milliseconds kLookEvery{20};  // for the end

// The signal that the next contender to get the lock sends to its process.
volatile std::sig_atomic_t g_at_next_grant = 0;
volatile std::sig_atomic_t g_ended = 0;

int64_t now_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

struct Part {
  std::string where;
  std::string name;
  int history = -1;
  unsigned threads = 0;
  unsigned seed = 0;
  int64_t until_ns = 0;
  std::string contended;  // the key; empty: a few keys in turn
  unsigned shared = 0;    // of 100 contended requests
};

class Worker {
 public:
  // `stop` ends the work, and the waits of contenders.
  Worker(const Part& part, Client& client, unsigned number, std::stop_token stop)
      : part_(part),
        client_(client),
        name_(part.name + "." + std::to_string(number)),
        stop_(std::move(stop)),
        random_(part.seed * 1000 + number) {}

  void run() {
    while (!stop_.stop_requested()) {
      if (!part_.contended.empty()) {
        contend();
        std::this_thread::sleep_for(kThink);
        continue;
      }
      acquisition();
      std::this_thread::sleep_for(milliseconds(below(20)));
    }
  }

 private:
  unsigned below(unsigned n) { return std::uniform_int_distribution<unsigned>(0, n - 1)(random_); }

  // Writes each line at once, so that a killed process loses no line.
  void note(unsigned id, const std::string& fields) const {
    const std::string line =
        R"({"process": ")" + name_ + R"(", "id": )" + std::to_string(id) + ", " + fields + "}\n";
    if (write(part_.history, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }

  unsigned invoked(const std::string& op, const std::string& owner, const std::string& more = "") {
    note(++id_, R"("op": ")" + op + R"(", "place": "quorum", "key": ")" + key_ + R"(", "owner": ")" +
                    owner + "\"" + more + R"(, "invoked": )" + std::to_string(now_ns()));
    return id_;
  }

  void returned(unsigned id, const std::string& outcome, const std::string& more = "") const {
    note(id, R"("returned": )" + std::to_string(now_ns()) + R"(, "outcome": ")" + outcome + "\"" + more);
  }

  // Chooses more exclusive locks than shared ones, and few semaphores: these need all servers.
  LockOptions choose() {
    static constexpr unsigned kTtlsMs[] = {500, 1000, 3000};
    LockOptions options;
    options.ttl = milliseconds(kTtlsMs[below(3)]);
    options.renew = below(2) == 0;
    const unsigned kind = below(10);
    key_ = kind < 6 ? "qx" + std::to_string(kind % 2) : kind < 9 ? "qrw" : "qsem";
    if (kind == 7 || kind == 8) options.mode = Mode::kSharedLock;
    if (kind == 9) {
      options.mode = Mode::kCountedLock;
      options.limit = 2;
    }
    return options;
  }

  unsigned requested(const LockOptions& options, const std::string& owner, const std::string& more = "") {
    const unsigned capacity = options.mode == Mode::kSharedLock    ? 0
                              : options.mode == Mode::kCountedLock ? options.limit
                                                                   : 1;
    return invoked("lock", owner,
                   R"(, "capacity": )" + std::to_string(capacity) + R"(, "ttl": )" +
                       std::to_string(options.ttl.count()) + more);
  }

  // `at_ns` is a time before the reading of the validity, so that the recorded one never ends too late.
  void acquired(unsigned id, const Hold& hold, int64_t at_ns, milliseconds validity) const {
    const int64_t valid_ns = at_ns + validity.count() * kNsPerMs;
    returned(id, "ok",
             R"(, "token": )" + std::to_string(hold.token()) + R"(, "valid": )" + std::to_string(valid_ns));
  }

  void refused(unsigned id, Outcome outcome) const {
    returned(id, "refused", R"(, "why": ")" + std::string(name_of(outcome)) + "\"");
  }

  void acquisition() {
    const LockOptions options = choose();
    const std::string owner = name_ + "-" + std::to_string(id_ + 1);
    const unsigned id = requested(options, owner);
    auto result = below(4) == 0 ? client_.try_lock(key_, options)
                                : client_.lock_for(key_, milliseconds(1500), options);
    const int64_t at_ns = now_ns();
    if (!result) return refused(id, result.outcome);
    acquired(id, *result, at_ns, result->validity());
    use(*result, owner, options.ttl);
  }

  void contend() {
    LockOptions options;
    options.ttl = kContendedTtl;
    options.stop = stop_;
    if (below(100) < part_.shared) options.mode = Mode::kSharedLock;
    key_ = part_.contended;
    const std::string owner = name_ + "-" + std::to_string(id_ + 1);
    const unsigned id = requested(options, owner, R"(, "wait": -1)");
    auto result = client_.lock(key_, options);
    const int64_t at_ns = now_ns();
    if (!result) return refused(id, result.outcome);
    acquired(id, *result, at_ns, result->validity());
    if (g_at_next_grant != 0) {
      const int signal = g_at_next_grant;
      g_at_next_grant = 0;
      std::raise(signal);
    }
    std::this_thread::sleep_for(milliseconds(below(kLongestUseMs + 1)));
    release(*result, owner, options.ttl);
  }

  void use(Hold& hold, const std::string& owner, milliseconds ttl) {
    const unsigned uses = below(4);
    for (unsigned i = 0; i < uses; ++i) {
      const unsigned kind = below(20);
      std::this_thread::sleep_for(kind == 0 ? ttl + milliseconds(200)
                                            : milliseconds(below(kind < 3 ? 600 : 30)));
      look(hold, owner);
    }
    if (below(20) == 0) {
      hold.leave();
      return;
    }
    look(hold, owner);
    release(hold, owner, ttl);
  }

  void release(Hold& hold, const std::string& owner, milliseconds ttl) {
    // The client reports a loss some time before the end of the validity. Then no server denied the hold.
    const bool sure = hold.validity() > std::max(ttl / 10, milliseconds(50));
    const unsigned id = invoked("unlock", owner);
    switch (hold.unlock().outcome) {
      case Outcome::kOk:
        return returned(id, "ok");
      case Outcome::kExpired:
      case Outcome::kNotOwner:
        return returned(id, sure ? "refused" : "unknown");
      default:
        return returned(id, "unknown");
    }
  }

  // Records whether the client may rely on the hold. If it may at two moments, it may between them too.
  void look(const Hold& hold, const std::string& owner) {
    const unsigned id = invoked("valid", owner);
    const int64_t at_ns = now_ns();
    const int64_t left_ns = hold.validity().count() * kNsPerMs;
    if (left_ns == 0) return returned(id, "refused");
    returned(id, "ok", R"(, "valid": )" + std::to_string(at_ns + left_ns));
  }

  const Part& part_;
  Client& client_;
  const std::string name_;
  const std::stop_token stop_;
  std::mt19937 random_;
  std::string key_;
  unsigned id_ = 0;
};

Part part_of(const std::vector<std::string>& args) {
  if (args.size() != 6 && args.size() != 8)
    throw std::invalid_argument("arguments: where name history threads seed until [key shared]");
  Part part;
  part.where = args[0];
  part.name = args[1];
  part.history = open(args[2].c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (part.history < 0) throw std::runtime_error("cannot open " + args[2]);
  part.threads = static_cast<unsigned>(std::stoul(args[3]));
  part.seed = static_cast<unsigned>(std::stoul(args[4]));
  part.until_ns = static_cast<int64_t>(std::stod(args[5]) * 1e9);
  if (args.size() == 8) {
    part.contended = args[6];
    part.shared = static_cast<unsigned>(std::stoul(args[7]));
  }
  return part;
}

void run(const Part& part) {
  Client client(part.where);
  std::stop_source stop;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < part.threads; ++i)
    threads.emplace_back([&, i] { Worker(part, client, i, stop.get_token()).run(); });
  while (now_ns() < part.until_ns && g_ended == 0) std::this_thread::sleep_for(kLookEvery);
  stop.request_stop();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGUSR1, [](int) { g_at_next_grant = SIGKILL; });
  std::signal(SIGUSR2, [](int) { g_at_next_grant = SIGSTOP; });
  std::signal(SIGCONT, [](int) { g_at_next_grant = 0; });
  std::signal(SIGTERM, [](int) { g_ended = 1; });
  try {
    run(part_of({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
