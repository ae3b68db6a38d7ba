// The program of the long runs. Arguments: the first seed, the number of steps in total, the steps of a
// run; or `--script FILE [SEED]`, which plays a script.
#include <malloc.h>

#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "server_runs.h"

namespace holdfast::simulation {
namespace {

void add(Counts& to, const Counts& more) {
  to.steps += more.steps;
  to.starts += more.starts;
  to.requests += more.requests;
  to.kills += more.kills;
  to.crashes += more.crashes;
  to.stops += more.stops;
  to.disk_operations += more.disk_operations;
  to.simulated_s += more.simulated_s;
  to.rare.add(more.rare);
}

void print(const Counts& c, uint64_t runs, uint64_t failed) {
  std::printf("%" PRIu64 " runs, %" PRIu64 " steps, %" PRIu64 " starts, %" PRIu64 " requests, %" PRIu64
              " kills, %" PRIu64 " crashes, %" PRIu64 " stops, %" PRIu64 " disk operations, %" PRIu64
              " simulated days; %" PRIu64 " failed\n%s\n",
              runs, c.steps, c.starts, c.requests, c.kills, c.crashes, c.stops, c.disk_operations,
              c.simulated_s / 86400, failed, c.rare.text().c_str());
  std::fflush(stdout);
}

int play_file(const std::string& file, uint64_t seed) {
  std::ifstream in(file);
  std::stringstream text;
  text << in.rdbuf();
  const RunResult result = play_server_script(seed, text.str());
  std::printf("%s\n", result.fault.empty() ? "no fault" : result.fault.c_str());
  return result.fault.empty() ? 0 : 1;
}

int run(uint64_t seed, uint64_t steps, uint64_t steps_of_run, uint64_t most_failures) {
  Counts counts;
  uint64_t runs = 0;
  uint64_t failed = 0;
  for (uint64_t told = 0; counts.steps < steps && failed < most_failures; ++seed) {
    const RunResult result = run_server_seed(seed, steps_of_run);
    add(counts, result.counts);
    ++runs;
    if (!result.fault.empty()) {
      ++failed;
      std::printf("seed %" PRIu64 " fails: %s\n%s", seed, result.fault.c_str(), result.script.c_str());
      std::fflush(stdout);
    }
    constexpr uint64_t kTold = 1'000'000;
    if (counts.steps / kTold != told) print(counts, runs, failed);
    told = counts.steps / kTold;
  }
  print(counts, runs, failed);
  return failed == 0 ? 0 : 1;
}

uint64_t argument(int argc, char** argv, int at, uint64_t otherwise) {
  return argc > at && argv[at][0] != '\0' ? std::strtoull(argv[at], nullptr, 10) : otherwise;
}

}  // namespace
}  // namespace holdfast::simulation

int main(int argc, char** argv) {
  namespace sim = holdfast::simulation;
  // Keeps freed memory: pages from the system take a third of the time otherwise.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 16 << 20);
  if (argc > 2 && std::string(argv[1]) == "--script")
    return sim::play_file(argv[2], sim::argument(argc, argv, 3, 1));
  return sim::run(sim::argument(argc, argv, 1, 1), sim::argument(argc, argv, 2, 100'000),
                  sim::argument(argc, argv, 3, 1000), sim::argument(argc, argv, 4, 3));
}
