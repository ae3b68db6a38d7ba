// Whether the server can grant new locks to new clients, and if not, why.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/types.h"

namespace holdfast {

class Engine;
struct EngineState;

struct ReadyCheck {
  std::string_view name;
  bool ok = true;
  std::string why;  // empty if ok
};

// The checks, always in this order: loading, recovering, journal, snapshot, memory, clients.
std::vector<ReadyCheck> readiness(const EngineState& s, Now now);
std::vector<ReadyCheck> readiness(const Engine& engine, Now now);
bool is_ready(const std::vector<ReadyCheck>& checks);

}  // namespace holdfast
