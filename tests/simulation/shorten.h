// The reduction of a failed run to the necessary steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace holdfast::simulation {

// Removes the steps that the failure does not need: halves, quarters and so on down to single steps.
// `fails(steps)` plays the remaining ones.
template <class Step, class Fails>
std::vector<Step> shortened(std::vector<Step> steps, Fails fails) {
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
