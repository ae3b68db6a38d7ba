// Generates load on a quorum of servers with the client library: see --help. Prints the results as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/program_options.hpp>
#include <future>
#include <iostream>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "client/base/address.h"
#include "client/transport/transport.h"
#include "holdfast/client.h"
#include "load/histogram.h"

namespace holdfast::bench {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct Options {
  std::string servers;
  size_t clients = 100;
  double seconds = 3;
  bool polls = false;
  uint64_t hold_us = 0;
};

[[noreturn]] void fail(const std::string& why) {
  std::cerr << "quorum: " << why << "\n";
  _exit(1);
}

uint64_t ns_of(Clock::duration time) {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
}

// Sends PING to all servers at once and waits for all replies. The connections are like the library's own.
class Pings {
 public:
  explicit Pings(const std::string& servers) {
    for (const client::Address& address : client::open_place(servers).servers)
      run([&] { links_.push_back(client::make_link(loop_, address)); });
  }
  ~Pings() {
    run([this] { links_.clear(); });
  }

  void once() {
    std::promise<void> all;
    size_t missing = links_.size();
    loop_.post([&] {
      for (const auto& link : links_) {
        link->send({"PING"}, DurationMs{1000}, [&](const client::Reply& reply) {
          if (reply.text != "PONG") fail("PING was answered with " + reply.text);
          if (--missing == 0) all.set_value();
        });
      }
    });
    all.get_future().get();
  }

 private:
  void run(const std::function<void()>& work) {
    std::promise<void> done;
    loop_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().get();
  }

  client::Loop loop_;
  std::vector<std::unique_ptr<client::Link>> links_;
};

// Measures an uncontended lock and PINGs alternately, so that both see the same state of the machine.
void time_locks(const Options& options) {
  Pings pings(options.servers);
  Client client(options.servers);
  Histogram pinged;
  Histogram locked;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  for (uint64_t n = 0; Clock::now() < end; ++n) {
    const auto began = Clock::now();
    pings.once();
    const auto between = Clock::now();
    Result<Hold> acquired = client.try_lock("lock:" + std::to_string(n % 1000));
    const auto done = Clock::now();
    if (!acquired) fail(acquired.message);
    if (!acquired->unlock()) fail("a lock was lost");
    if (n < 100) continue;  // these include the connection setup
    pinged.record(ns_of(between - began));
    locked.record(ns_of(done - between));
  }
  const auto us = [](const Histogram& times, double q) {
    return static_cast<double>(times.quantile_ns(q)) / 1000;
  };
  fmt::print(R"({{"count": {}, "ping": {:.1f}, "lock": {:.1f}, "ping_p99": {:.1f}, "lock_p99": {:.1f}}})"
             "\n",
             locked.count(), us(pinged, 0.5), us(locked, 0.5), us(pinged, 0.99), us(locked, 0.99));
}

// Measures uncontended locks, acquired and released by several threads that share one client.
void time_pairs(const Options& options) {
  Client client(options.servers);
  std::atomic<bool> stop = false;
  std::atomic<uint64_t> pairs = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.clients; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t n = 0; !stop; ++n) {
        Result<Hold> acquired =
            client.try_lock("lock:" + std::to_string(i) + ":" + std::to_string(n % 1000));
        if (!acquired) fail(acquired.message);
        if (!acquired->unlock()) fail("a lock was lost");
        ++pairs;
      }
    });
  }
  std::this_thread::sleep_for(500ms);
  const auto began = Clock::now();
  const uint64_t before = pairs;
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const uint64_t made = pairs - before;
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  fmt::print(R"({{"rate": {:.1f}}})"
             "\n",
             static_cast<double>(made) / took);
}

class Contender;

// What all contenders share.
struct Contention {
  std::atomic<int> holders = 0;
  const Contender* last = nullptr;   // the client that had the lock last; only the holder may use it
  std::atomic<uint64_t> passed = 0;  // grants to another client than the last one
};

// One of the clients that acquire the same lock again and again.
class Contender {
 public:
  Contender(const Options& options, Contention& all) : options_(options), all_(all) {}

  void work(const std::atomic<bool>& stop) {
    Client client(options_.servers);
    while (!stop) {
      Result<Hold> acquired = options_.polls ? poll(client, stop) : client.lock_for("wanted", 60s);
      if (!acquired && stop) return;
      if (!acquired) fail(acquired.message);
      if (++all_.holders != 1) fail("two clients hold the lock at the same time");
      ++grants_;
      if (std::exchange(all_.last, this) != this) ++all_.passed;
      if (options_.hold_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(options_.hold_us));
      --all_.holders;
      if (!acquired->unlock()) fail("a lock was lost");
    }
  }
  uint64_t grants() const { return grants_; }

 private:
  // Retries like the Redlock libraries.
  Result<Hold> poll(Client& client, const std::atomic<bool>& stop) {
    while (true) {
      Result<Hold> acquired = client.try_lock("wanted");
      if (acquired || stop) return acquired;
      std::this_thread::sleep_for(std::chrono::microseconds(pause_(random_)));
    }
  }

  const Options& options_;
  Contention& all_;
  std::atomic<uint64_t> grants_ = 0;
  std::mt19937 random_{std::random_device{}()};
  std::uniform_int_distribution<int> pause_{10'000, 100'000};
};

void contend(const Options& options) {
  Contention shared;
  std::atomic<bool> stop = false;
  std::vector<std::unique_ptr<Contender>> contenders;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < options.clients; ++i)
    contenders.push_back(std::make_unique<Contender>(options, shared));
  for (const auto& contender : contenders) threads.emplace_back([&] { contender->work(stop); });
  std::this_thread::sleep_for(1s);
  std::vector<uint64_t> before;
  for (const auto& contender : contenders) before.push_back(contender->grants());
  const uint64_t passed_before = shared.passed;
  const auto began = Clock::now();
  std::this_thread::sleep_for(std::chrono::duration<double>(options.seconds));
  const uint64_t passed = shared.passed - passed_before;
  uint64_t all = 0;
  uint64_t least = UINT64_MAX;
  uint64_t most = 0;
  for (size_t i = 0; i < contenders.size(); ++i) {
    const uint64_t gained = contenders[i]->grants() - before[i];
    all += gained;
    least = std::min(least, gained);
    most = std::max(most, gained);
  }
  const double took = std::chrono::duration<double>(Clock::now() - began).count();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  fmt::print(R"({{"rate": {:.1f}, "passed": {:.1f}, "least": {}, "most": {}}})"
             "\n",
             static_cast<double>(all) / took, static_cast<double>(passed) / took, least, most);
}

int run(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  std::string mode;
  po::options_description all(
      "quorum MODE --servers WHERE [options]; MODE is uncontended, contended or pairs");
  auto add = all.add_options();
  add("help", "this text");
  add("mode", po::value(&mode)->required(),
      "uncontended: a lock's time beside a PING's; contended: grants; pairs: locks and unlocks");
  add("servers", po::value(&options.servers)->required(), "as the client library takes them");
  add("clients", po::value(&options.clients), "contended: how many; pairs: threads of one (100)");
  add("seconds", po::value(&options.seconds), "how long (3)");
  add("hold-us", po::value(&options.hold_us), "contended: how long a client keeps the lock (0)");
  add("polls", po::bool_switch(&options.polls), "contended: tries again after 10 to 100 ms, at random");
  po::positional_options_description first;
  first.add("mode", 1);
  po::variables_map given;
  po::store(po::command_line_parser(argc, argv).options(all).positional(first).run(), given);
  if (given.contains("help")) return std::cout << all, 0;
  po::notify(given);
  if (mode == "uncontended") return time_locks(options), 0;
  if (mode == "pairs" && options.clients > 0) return time_pairs(options), 0;
  if (mode == "contended" && options.clients > 0) return contend(options), 0;
  fail("no such mode, or no clients");
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  try {
    return holdfast::bench::run(argc, argv);
  } catch (const std::exception& error) {
    holdfast::bench::fail(error.what());
  }
}
