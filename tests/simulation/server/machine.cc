// Replaces io/os/clock.cc, io/os/cores.cc and io/os/host_info.cc in the simulation.
#include "machine.h"

#include <fmt/format.h>

#include "io/os/clock.h"
#include "io/os/cores.h"
#include "io/os/host_info.h"
#include "scheduler.h"

namespace holdfast {

using simulation::Machine;
using simulation::Scheduler;

namespace simulation {

Machine& Machine::get() {
  static Machine machine;
  return machine;
}

void Machine::reboot() {
  constexpr int64_t kMs = 1000;
  booted_us = Scheduler::get().now_us() / kMs * kMs;
  ++boots;
}

// Like read_clock() of the server: the clock begins with 1 ms.
Now Machine::now() const {
  const int64_t boot_us = Scheduler::get().now_us() - booted_us;
  return {TimeMs{boot_us / 1000 + 1}, boot_us + booted_us + wall_ahead_ms * 1000};
}

std::string Machine::boot_id() const { return fmt::format("boot-{}", boots); }

}  // namespace simulation

Now read_clock() { return Machine::get().now(); }

int64_t read_stopwatch_us() {
  Scheduler::get().spend(Machine::get().stopwatch_us);
  return Scheduler::get().now_us();
}

void fill_random(std::span<uint8_t> bytes) {
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(Machine::get().dice.below(256));
}

uint64_t random_number() { return Machine::get().dice.below(UINT64_MAX); }

std::string random_hex(size_t digits) {
  std::string text;
  while (text.size() < digits) text += "0123456789abcdef"[Machine::get().dice.below(16)];
  return text;
}

// Now and then other threads want the cores.
Cores read_cores(const std::string&) {
  constexpr uint64_t kMostThreads = 4;
  return {.online = 2, .usable = 2, .runnable_threads = Machine::get().dice.below(kMostThreads)};
}

uint64_t let_others_run() {
  constexpr uint64_t kOthersNs = 20'000;
  return Machine::get().dice.one_in(100) ? kOthersNs : 0;
}

std::string read_boot_id() { return Machine::get().boot_id(); }
std::string read_clock_id() { return Machine::get().boot_id() + "-clock"; }
Result<uint32_t> make_room_for_clients(uint32_t clients, uint32_t) { return clients; }
HostFacts read_host_facts(int64_t, const std::string&, TimeMs) { return {}; }
std::string read_allocator_report() { return ""; }

}  // namespace holdfast
