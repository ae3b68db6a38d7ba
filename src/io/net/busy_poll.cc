// Spins only while it pays: the waits before were short, few requests share a wake-up, and no other thread
// wants the core.
#include "io/net/busy_poll.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr uint64_t kMeanOf = 16;       // reads
constexpr uint64_t kMostCounted = 64;  // of the others, so that a client that was idle does not count much

}  // namespace

bool BusyPoll::needs_cores(uint64_t now_ns, const Setting& setting) const {
  const bool old = cores_at_ns_ == 0 || now_ns - cores_at_ns_ >= kCoresEveryNs;
  return setting.automatic && old && has_reason();
}

void BusyPoll::set_cores(uint64_t now_ns, const Cores& cores) {
  cores_ = cores;
  cores_at_ns_ = now_ns;
}

bool BusyPoll::has_reason() const {
  return short_waits_ >= kFewestShort && others_sum_ <= kMostOthers * kMeanOf && debt_ns_ <= kMostDebtNs;
}

bool BusyPoll::has_core() const {
  return cores_.usable >= kFewestCores && cores_.runnable_threads <= cores_.online;
}

void BusyPoll::note_read(uint64_t others) {
  others_sum_ += std::min(others, kMostCounted) - others_sum_ / kMeanOf;
}

bool BusyPoll::begin_wait(uint64_t now_ns, const Setting& setting) {
  pay((now_ns - began_ns_) / kDebtShare);
  began_ns_ = now_ns;
  missed_ = false;
  automatic_ = setting.automatic;
  if (automatic_) {
    spin_ns_ = has_reason() && has_core() ? kSpinNs : 0;
  } else {
    spin_ns_ = setting.fixed_ns;
  }
  return spin_ns_ > 0;
}

bool BusyPoll::goes_on(uint64_t now_ns, uint64_t others_ns) {
  if (spin_ns_ == 0) return false;
  if (others_ns > 0) {
    ++counts_.preemptions;
    debt_ns_ += others_ns;
  }
  const bool ends = now_ns - began_ns_ >= spin_ns_ || (automatic_ && others_ns > 0);
  if (!ends) return true;
  end_spin(now_ns);
  missed_ = true;
  debt_ns_ += now_ns - began_ns_;
  return false;
}

void BusyPoll::end_wait(uint64_t now_ns) {
  const bool hit = spin_ns_ > 0;
  if (hit) {
    end_spin(now_ns);
    ++counts_.hits;
    pay(kHitNs);
  }
  const bool is_short = hit || (!missed_ && now_ns - began_ns_ <= kShortWaitNs);
  short_waits_ = is_short ? std::min(short_waits_ + 1, kFewestShort) : 0;
}

void BusyPoll::end_spin(uint64_t now_ns) {
  ++counts_.spins;
  counts_.spun_ns += now_ns - began_ns_;
  spin_ns_ = 0;
}

}  // namespace holdfast
