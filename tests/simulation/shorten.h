// The reduction of a failed run to the necessary steps. HOLDFAST_SIM_SHORTEN=0 omits it: it can take many
// times as long as the run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

namespace holdfast::simulation {

// Removes the steps that the failure does not need: halves, quarters and so on down to single steps.
// `fails(steps)` plays the remaining ones.
template <class Step, class Fails>
std::vector<Step> shortened(std::vector<Step> steps, Fails fails) {
  if (const char* wanted = std::getenv("HOLDFAST_SIM_SHORTEN"); wanted && std::string_view(wanted) == "0")
    return steps;
  for (size_t chunk = std::max<size_t>(steps.size() / 2, 1); chunk > 0;) {
    bool changed = false;
    for (size_t at = 0; at < steps.size();) {
      std::vector<Step> fewer = steps;
      const size_t end = std::min(at + chunk, steps.size());
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at),
                  fewer.begin() + static_cast<std::ptrdiff_t>(end));
      if (fails(fewer)) {
        steps = std::move(fewer);
        changed = true;
      } else {
        at += chunk;
      }
    }
    if (chunk > 1 || !changed) chunk /= 2;
  }
  return steps;
}

}  // namespace holdfast::simulation
