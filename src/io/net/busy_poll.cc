// Spins only while it pays: the waits before were short, few clients are busy at once, and no other thread
// wants the core.
#include "io/net/busy_poll.h"

#include <algorithm>

namespace holdfast {
namespace {

constexpr double kMeanOf = 16;  // reads

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
  return short_waits_ >= kFewestShort && !many_are_busy() && debt_ns_ <= kMostDebtNs;
}

bool BusyPoll::has_core() const {
  return cores_.usable >= kFewestCores && cores_.runnable_threads <= cores_.online;
}

// No read counts for much more than the limit: a client that waited for a lock on another connection, or
// was idle, would count for many others.
void BusyPoll::note_read(uint64_t others) {
  const auto counted = static_cast<double>(std::min(others, kMostOthers + 1));
  others_mean_ += (counted - others_mean_) / kMeanOf;
}

bool BusyPoll::many_are_busy() const { return others_mean_ > static_cast<double>(kMostOthers) + 0.5; }

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
