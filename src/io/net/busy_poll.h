// Decides whether the loop polls for its next event without a sleep (a spin). A spin saves the time of a
// wake-up, and uses the core meanwhile. Knows no clock and no system: the time and the facts about the
// cores are arguments. One loop uses it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "io/os/cores.h"

namespace holdfast {

class BusyPoll {
 public:
  // The option busy-poll.
  struct Setting {
    bool automatic = false;
    uint64_t fixed_ns = 0;  // of each spin, if it is not automatic; 0: no spins
  };

  // Since the start.
  struct Counts {
    uint64_t spins = 0;
    uint64_t hits = 0;         // spins that an event ended
    uint64_t preemptions = 0;  // spins that let another thread run on their core
    uint64_t spun_ns = 0;
  };

  // The automatic mode. It spins after kFewestShort short waits in a row. A wait is short if it was a hit
  // or a sleep of at most kShortWaitNs, which has the time of a wake-up in it.
  static constexpr uint64_t kSpinNs = 50'000;  // the longest spin
  static constexpr uint64_t kShortWaitNs = 100'000;
  static constexpr unsigned kFewestShort = 8;
  // If the loop mostly reads from more other clients than this between a reply and the next request of that
  // client, a spin does not raise the throughput: the other requests end its sleep early.
  static constexpr uint64_t kMostOthers = 2;
  // The debt is the time of the spins that found nothing, and the time for which other threads wanted the
  // core. Each hit pays kHitNs, and each kDebtShare nanoseconds pay one. Above kMostDebtNs there are no
  // spins. So spins without success take at most 1 % of a core, beside those that hits have paid.
  static constexpr uint64_t kHitNs = 10'000;
  static constexpr uint64_t kDebtShare = 100;
  static constexpr uint64_t kMostDebtNs = 200'000;
  // A spin needs a second core for the clients, and no thread that waits for a core.
  static constexpr uint64_t kFewestCores = 2;
  static constexpr uint64_t kCoresEveryNs = 200'000'000;  // how often these facts are read, at most

  // Whether the automatic mode would spin if the cores permit it, but the facts about the cores are old.
  bool needs_cores(uint64_t now_ns, const Setting& setting) const;
  void set_cores(uint64_t now_ns, const Cores& cores);

  // The loop has read from a client, after `others` reads from other clients since the last reply to it.
  void note_read(uint64_t others);

  // An iteration is over, and the loop waits for the next event. Returns whether it spins. The loop then
  // calls goes_on() before each poll, until that returns false: the loop may sleep. `others_ns` is the time
  // since the last call for which other threads ran on this core.
  bool begin_wait(uint64_t now_ns, const Setting& setting);
  bool goes_on(uint64_t now_ns, uint64_t others_ns);
  // The next iteration begins.
  void end_wait(uint64_t now_ns);

  const Counts& counts() const { return counts_; }

 private:
  bool has_reason() const;
  bool has_core() const;
  bool many_are_busy() const;
  void end_spin(uint64_t now_ns);
  void pay(uint64_t ns) { debt_ns_ -= ns < debt_ns_ ? ns : debt_ns_; }

  Counts counts_;
  Cores cores_;
  uint64_t cores_at_ns_ = 0;  // 0: never read
  uint64_t began_ns_ = 0;     // of the present wait, or the last one
  uint64_t spin_ns_ = 0;      // limit of the present spin; 0: none
  bool automatic_ = false;
  bool missed_ = false;       // the present wait began with a spin that found nothing
  double others_mean_ = 0;    // of note_read()
  unsigned short_waits_ = 0;  // in a row, at most kFewestShort
  uint64_t debt_ns_ = 0;
};

}  // namespace holdfast
