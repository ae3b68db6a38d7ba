// Environment variables have the settings of the process, because the arguments belong to doctest.
#include "chaos_client.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "chaos_record.h"
#include "holdfast/client.h"
#include "simulation/dice.h"
#include "skewed_clock.h"

namespace holdfast::integration {

namespace {

using Locks = holdfast::Client;
using namespace std::chrono_literals;

const char* const kPart = "chaos client";
const char* const kKey = "counter";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

Counting part_from_environment() {
  Counting part;
  part.place = environment("HOLDFAST_COUNTING_PLACE");
  part.folder = environment("HOLDFAST_COUNTING_FOLDER");
  part.target = std::stoull(environment("HOLDFAST_COUNTING_TARGET"));
  part.seed = std::stoull(environment("HOLDFAST_COUNTING_SEED"));
  part.clock_is_right = environment("HOLDFAST_COUNTING_CLOCK_IS_RIGHT") == "1";
  return part;
}

class Counter {
 public:
  explicit Counter(const Counting& part)
      : part_(part), dice_(part.seed), storage_(part.folder, part.target), client_(connect()) {}

  Tally run() {
    while (storage_.value() < storage_.target()) {
      if (dice_.one_in(50)) client_ = connect();
      count_once();
      std::this_thread::sleep_for(milliseconds(dice_.below(2000)));  // work that needs no lock
    }
    return tally_;
  }

 private:
  std::unique_ptr<Locks> connect() const { return std::make_unique<Locks>(part_.place); }

  void count_once() {
    LockOptions options;
    options.ttl = milliseconds(dice_.between(500, 1500));
    options.renew = dice_.one_in(2);
    Held held;
    held.asked_ns = true_now_ns();
    auto acquired = client_->lock_for(kKey, 5s, options);
    held.acquired_ns = held.valid_ns = true_now_ns();
    ++tally_["attempts"];
    ++tally_[std::string(name_of(acquired.outcome))];
    if (!acquired) return;
    Hold& hold = *acquired;
    held.token = hold.token();
    held.clock_is_right = part_.clock_is_right;
    use(hold, options.ttl, held);
    give_back(hold);
    storage_.note(held);
  }

  void use(const Hold& hold, milliseconds ttl, Held& held) {
    const std::optional<uint64_t> value = storage_.read(held.token);
    note_validity(hold, held);
    stand_still(ttl);
    note_validity(hold, held);
    if (!value) {
      ++tally_["stale reads"];
    } else if (!storage_.write(held.token, *value)) {
      // After the target is reached the storage rejects all writes: these are not counted as stale.
      ++tally_[storage_.value() < storage_.target() ? "stale writes" : "after the end"];
    } else {
      ++tally_["written"];
    }
    note_validity(hold, held);
  }

  // Sometimes the holder sleeps for longer than its TTL, or is stopped until another process resumes it.
  void stand_still(milliseconds ttl) {
    const uint64_t chance = dice_.below(200);
    if (chance >= 2) return;
    ++tally_["stood still"];
    if (chance == 0) {
      std::this_thread::sleep_for(ttl + 50ms);
    } else {
      raise(SIGSTOP);
    }
  }

  // Reads the time before the query: the hold was valid at that time, however late the answer comes.
  static void note_validity(const Hold& hold, Held& held) {
    const int64_t now_ns = true_now_ns();
    if (hold.is_locked()) held.valid_ns = now_ns;
  }

  void give_back(Hold& hold) {
    const uint64_t chance = dice_.below(200);
    if (chance < 1) {
      hold.leave();
    } else if (chance < 50) {
      hold = Hold();
    } else {
      static_cast<void>(hold.unlock());
    }
  }

  const Counting part_;
  simulation::Dice dice_;
  Storage storage_;
  std::unique_ptr<Locks> client_;
  Tally tally_;
};

}  // namespace

Launch launch_of(const Counting& counting) {
  Launch launch;
  launch.args = {"--no-skip", std::string("-tc=") + kPart};
  launch.env = {"HOLDFAST_COUNTING_PLACE=" + counting.place,
                "HOLDFAST_COUNTING_FOLDER=" + counting.folder.string(),
                "HOLDFAST_COUNTING_TARGET=" + std::to_string(counting.target),
                "HOLDFAST_COUNTING_SEED=" + std::to_string(counting.seed),
                std::string("HOLDFAST_COUNTING_CLOCK_IS_RIGHT=") + (counting.clock_is_right ? "1" : "0"),
                counting.clock};
  return launch;
}

std::string counting_program() { return "/proc/self/exe"; }

Tally tally_of(const std::string& output) {
  std::istringstream lines(output);
  Tally tally;
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("tally ") && colon != std::string::npos)
      tally[line.substr(6, colon - 6)] = std::stoull(line.substr(colon + 2));
  }
  if (tally.empty()) throw std::runtime_error("a client printed no tally: " + output);
  return tally;
}

TEST_CASE("chaos client" * doctest::skip() * doctest::description("a part of the test that counts")) {
  const Tally tally = Counter(part_from_environment()).run();
  for (const auto& [name, count] : tally) std::cout << "tally " << name << ": " << count << "\n";
}

}  // namespace holdfast::integration
