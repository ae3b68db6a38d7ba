// A random run of clients that wait by ticket, as data: so it can be reduced to the necessary steps. At
// each moment each client reaches a majority of servers that run, in both directions. So liveness is
// promised.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ticket_world.h"

namespace holdfast::simulation::ticket {

struct Step {
  enum class Kind : uint8_t {
    kCut,        // between a client and a server
    kRestart,    // of a server, with its data
    kForgetful,  // restart without data: then the server grants nothing for a while
    kFreeze,     // a server stands still
    kLeftover,   // a dead client has a hold on a server
    kVanish,     // a client vanishes, and another one takes its place
    kSilence,    // a client gets no answers any more, and another one takes its place
  };
  enum class Ways : uint8_t { kBoth, kThere, kBack };
  Kind kind = Kind::kCut;
  int64_t at_us = 0;  // from the begin of the faults
  int64_t for_us = 0;
  size_t client = 0;  // its place: another one may take it
  size_t server = 0;
  Ways ways = Ways::kBoth;
};

struct Plan {
  uint64_t seed = 1;
  size_t servers = 3;
  size_t clients = 6;
  Locks locks = Locks::kExclusive;
  int64_t delay_us = 300;
  int64_t pace_us = 0;  // of the changes of cuts, on average
  int64_t faulty_us = 8'000'000;
  std::vector<Step> steps;
};

Plan plan_of(uint64_t seed);
// The world in which the steps happen, with what is promised there.
Case case_of(const Plan& plan);
std::string written(const Plan& plan);

}  // namespace holdfast::simulation::ticket
