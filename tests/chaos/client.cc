// Clients of a quorum for the chaos test. The threads of one process use the library to acquire, keep and
// release a few locks, and record each operation in the form of history.py. Arguments: where
// (quorum://...), the process's name, the history (a path, appended to), threads, seed, and the end
// (CLOCK_MONOTONIC in seconds).
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <random>
#include <stdexcept>
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
};

class Worker {
 public:
  Worker(const Part& part, Client& client, unsigned number)
      : part_(part),
        client_(client),
        name_(part.name + "." + std::to_string(number)),
        random_(part.seed * 1000 + number) {}

  void run() {
    while (now_ns() < part_.until_ns) {
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

  void acquisition() {
    const LockOptions options = choose();
    const std::string owner = name_ + "-" + std::to_string(id_ + 1);
    const unsigned capacity = options.mode == Mode::kSharedLock    ? 0
                              : options.mode == Mode::kCountedLock ? options.limit
                                                                   : 1;
    const unsigned id = invoked("lock", owner,
                                R"(, "capacity": )" + std::to_string(capacity) + R"(, "ttl": )" +
                                    std::to_string(options.ttl.count()));
    auto acquired = below(4) == 0 ? client_.try_lock(key_, options)
                                  : client_.lock_for(key_, milliseconds(1500), options);
    // The clock is read first, so that the recorded validity never ends too late.
    const int64_t at_ns = now_ns();
    if (!acquired) {
      returned(id, "refused", R"(, "why": ")" + std::string(name_of(acquired.outcome)) + "\"");
      return;
    }
    Hold& hold = *acquired;
    const int64_t valid_ns = at_ns + hold.validity().count() * kNsPerMs;
    returned(id, "ok",
             R"(, "token": )" + std::to_string(hold.token()) + R"(, "valid": )" + std::to_string(valid_ns));
    use(hold, owner, options.ttl);
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
  std::mt19937 random_;
  std::string key_;
  unsigned id_ = 0;
};

Part part_of(const std::vector<std::string>& args) {
  if (args.size() != 6) throw std::invalid_argument("six arguments: where name history threads seed until");
  Part part{args[0], args[1]};
  part.history = open(args[2].c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (part.history < 0) throw std::runtime_error("cannot open " + args[2]);
  part.threads = static_cast<unsigned>(std::stoul(args[3]));
  part.seed = static_cast<unsigned>(std::stoul(args[4]));
  part.until_ns = static_cast<int64_t>(std::stod(args[5]) * 1e9);
  return part;
}

void run(const Part& part) {
  Client client(part.where);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < part.threads; ++i)
    threads.emplace_back([&part, &client, i] { Worker(part, client, i).run(); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(part_of({argv + 1, argv + argc}));
    return 0;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
