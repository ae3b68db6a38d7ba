// The named cases: the rows of the table in docs/safety.md.
#pragma once

#include <string>
#include <vector>

#include "ticket_world.h"

namespace holdfast::simulation::ticket {

// All cases, with three servers and six clients.
const std::vector<Case>& named_cases();
const Case& case_named(const std::string& name);
// Random faults, all at once, with lost packets, lost data and long holds: only safety is promised.
Case random_trouble(uint64_t seed);

}  // namespace holdfast::simulation::ticket
